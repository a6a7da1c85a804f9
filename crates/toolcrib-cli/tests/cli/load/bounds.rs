//! Limits of what a program, a server, a helper or a file can consume or block: never the server, and no other call.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::connection::Connection;
use crate::harness::crib::{Crib, run};
use crate::harness::http::Http;
use crate::harness::server::{Server, command};
use crate::harness::upstream::add_server;

/// Reserves up to four gigabytes without using them.
const HOG: &str = r"
toolcrib: 1
tools:
  - name: hog
    description: Take memory.
    run:
      argv:
        - python3
        - -I
        - -S
        - -c
        - |-
          import mmap
          kept = []
          try:
              for _ in range(16):
                  kept.append(mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
          except (OSError, MemoryError):
              pass
          print(len(kept) * 256)
";

#[test]
fn a_confined_program_has_a_bound_of_memory_that_nobody_had_to_ask_for() {
    let crib = Crib::new(&[("hog.yaml", HOG)]);
    let taken = crib.run(&["call", "hog"]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let taken: u32 = taken.stdout.trim().parse().expect("a number");
    assert!((512..2048).contains(&taken), "it took {taken} MiB");
}

/// A copy of the program, whose helper starts nothing as soon as a file exists.
fn with_a_helper_that_may_hang(folder: &Path, hang: &Path) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_toolcrib"));
    let (program, real) = (folder.join("toolcrib"), folder.join("real-jail"));
    for (from, to) in [(built, &program), (&built.with_file_name("toolcrib-jail"), &real)] {
        // A link, because a copy cannot be started while another test starts a process.
        fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop)).expect("a copy");
    }
    let text = format!(
        "#!/bin/sh\n[ -e {} ] && exec sleep 300\nexec {} \"$@\"\n",
        hang.display(),
        real.display()
    );
    let helper = folder.join("toolcrib-jail");
    fs::write(&helper, text).expect("a helper");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a mode");
    program
}

/// Kills a process after a time, unless the returned value is dropped before.
fn kill_after(time: Duration, process: u32) -> Sender<()> {
    let (sender, over) = channel();
    thread::spawn(move || {
        if over.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            let _ = command("kill").args(["-s", "KILL", &process.to_string()]).status();
        }
    });
    sender
}

#[test]
fn starts_that_do_not_come_about_hold_up_no_other_call_and_are_given_up() {
    const STARTS: u64 = 16;
    let greet = concat!("toolcrib: 1\n", include_str!("../../greet.yaml"));
    let crib = Crib::new(&[("greet.yaml", greet)]);
    let folder = tempfile::tempdir().expect("a folder");
    let hang = folder.path().join("hang");
    let mut program = command(with_a_helper_that_may_hang(folder.path(), &hang));
    // More starts than threads, each of which hangs, as for a grant on a file system that does not
    // respond.
    program.arg("mcp").env("TOKIO_WORKER_THREADS", "2");
    let mut server = Server::spawn(&crib, program).greeted();
    let over = kill_after(Duration::from_secs(60), server.id());
    fs::write(&hang, "").expect("a file");
    let call = |id: u64, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    for id in 0..STARTS {
        server.send(&call(100 + id, "greet", json!({"name": "Ada"})));
    }
    thread::sleep(Duration::from_millis(500));
    server.send(&call(99, "calculator", json!({"expression": "6*7"})));
    let mut answers = Vec::new();
    while answers.len() <= usize::try_from(STARTS).expect("few") {
        let line = server.receive_line();
        assert!(!line.is_empty(), "after a minute there were these answers only: {answers:?}");
        let message: Value = serde_json::from_str(&line).expect("a message");
        if let Some(id) = message["id"].as_u64() {
            assert!(id == 99 || message["result"]["isError"] == json!(true), "{message}");
            answers.push(id);
        }
    }
    assert_eq!(answers[0], 99, "the sum waited for the starts: {answers:?}");
    drop(over);
}

#[test]
fn a_pipe_in_the_place_of_a_secrets_file_is_waited_for_by_nobody() {
    let crib = Crib::new(&[]);
    let (file, pipe) = (crib.data().join("file"), crib.data().join("pipe"));
    let secret = crib.data().join("secret");
    fs::write(&file, "a-secret-value").expect("a file");
    fs::copy(&file, &secret).expect("a file");
    assert!(command("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    crib.config(&format!("secrets: {{key: {{file: {}}}}}\n", secret.display()));
    let over = AtomicBool::new(false);
    let slowest = thread::scope(|scope| {
        // The path alternates between both while a server examines and opens it.
        scope.spawn(|| {
            let next = crib.data().join("next");
            for other in [&pipe, &file].into_iter().cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                fs::hard_link(other, &next).expect("another name");
                fs::rename(&next, &secret).expect("ours");
            }
        });
        let attempt = |_| {
            let begun = Instant::now();
            let mut call = crib.command(&["call", "calculator", "expression=6*7"]);
            run(call.timeout(Duration::from_secs(10)));
            begun.elapsed()
        };
        let slowest = (0..40).map(attempt).find(|taken| *taken >= Duration::from_secs(10));
        over.store(true, Ordering::Relaxed);
        slowest
    });
    assert_eq!(slowest, None, "a start waited for the pipe");
}

#[test]
fn folders_within_folders_that_a_command_leaves_behind_do_not_end_the_server() {
    // Deep enough to overflow the stack of a thread that removes it recursively. The time to make it grows with the
    // square, because Landlock looks at every folder above.
    const DEEP: u32 = 10_000;
    let crib = Crib::new(&[(
        "deep.yaml",
        &format!(
            r#"
toolcrib: 1
tools:
  - name: deep
    description: Make folders within folders.
    run:
      argv:
        - python3
        - -I
        - -S
        - -c
        - |-
          import os
          os.chdir(os.environ["HOME"])
          for _ in range({DEEP}):
              os.mkdir("d")
              os.chdir("d")
          print("made")
"#
        ),
    )]);
    // In memory if such a folder exists, because the removal takes minutes on a disk.
    let scratch = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let scratch = scratch.expect("a folder");
    let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
    program.args(["serve", "--listen", "127.0.0.1:0", "--json"]);
    program.env_remove("TOOLCRIB_TOKEN").env("TMPDIR", scratch.path());
    let http = Http::spawn(&crib, program);
    let made = http.try_ask("POST /v1/tools/deep/call", Some(&json!({"arguments": {}})));
    // The rest is removed after the answer.
    let parents = || fs::read_dir(scratch.path()).expect("ours").flatten();
    let is_empty = || {
        let left = parents().flat_map(|parent| fs::read_dir(parent.path()).into_iter().flatten());
        left.count() == 0
    };
    let lives = || http.try_ask("GET /health", None).is_some();
    let end = Instant::now() + Duration::from_secs(60);
    while lives() && !is_empty() && Instant::now() < end {
        thread::sleep(Duration::from_millis(100));
    }
    let (lives, is_empty) = (lives(), is_empty());
    drop(http);
    // A recursive implementation would not finish here either.
    let removed = command("rm").arg("-rf").arg(scratch.path()).status().expect("rm");
    assert!(removed.success());
    assert!(lives, "the server has ended: {:?}", made.map(|made| made.body));
    assert_eq!(made.map(|made| made.json()["output"].clone()), Some(json!("made\n")));
    assert!(is_empty, "what the program left is still there");
}

#[test]
fn an_answer_of_a_server_that_is_too_long_fails_its_call_before_its_time_limit() {
    let crib = Crib::new(&[]);
    // One line of 32 MiB.
    let call = r#"result = {"content": [{"type": "text", "text": "x" * (32 << 20)}]}"#;
    add_server(&crib, "wordy", "say", call);
    let http = Http::start(&crib, "");
    let until = Instant::now() + Duration::from_secs(20);
    while http.ask("GET /v1/tools/wordy_say", None).status != 200 {
        assert!(Instant::now() < until, "the server did not come up");
        thread::sleep(Duration::from_millis(50));
    }
    let begun = Instant::now();
    let answer = http.ask("POST /v1/tools/wordy_say/call", Some(&json!({"arguments": {}})));
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    assert!(answer.json()["result"]["error"]["message"].is_string(), "{}", answer.body);
    let sum = json!({"arguments": {"expression": "6*7"}});
    assert_eq!(http.ask("POST /v1/tools/calculator/call", Some(&sum)).status, 200);
}

/// A megabyte of text, which is stored for `read_output`; `same_text` is answered from the cache.
const LONG: &str = r#"
toolcrib: 1
tools:
  - name: new_text
    description: A long text.
    limits: {output: 1MiB}
    input: {properties: {number: {type: integer}}, required: [number]}
    run: {argv: [bash, -c, 'echo "$NUMBER"; head -c 1000000 /dev/zero | tr "\0" x'], env: {NUMBER: '${args.number}'}}
  - name: same_text
    description: A long text. Read-only.
    annotations: {read_only: true, idempotent: true}
    cache: {ttl: 5m}
    limits: {output: 1MiB}
    run: {argv: [bash, -c, 'echo same; head -c 1000000 /dev/zero | tr "\0" x']}
"#;

/// The number of these texts that exceeds the share of all clients together.
const TEXTS: usize = 70;

/// One client has more long outputs than fit; another one can still read its own. `call` makes the call with this
/// number.
fn long_outputs_of_one_client_leave_those_of_another(
    call: impl Fn(usize) -> (&'static str, Value),
) {
    let crib = Crib::new(&[("long.yaml", LONG)]);
    let mut config = String::from("server:\n  tokens:\n");
    let [ada, bob] = ["ada", "bob"].map(|name| {
        let made = crib.run(&["token", name, "--json"]).json();
        let _ = writeln!(config, "    {name}: {{hash: {}}}", made["hash"]);
        made["token"].as_str().expect("a token").to_owned()
    });
    crib.config(&config);
    let http = Http::start(&crib, "");
    let connect = |token: &str| Connection::open(&http.address, token).expect("it listens");
    let ask = |client: &mut Connection, tool: &str, arguments: &Value| {
        let line = format!("POST /v1/tools/{tool}/call");
        let reply = client.ask(&line, &[], &json!({"arguments": arguments})).expect("an answer");
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body["output"].as_str().expect("a text").to_owned()
    };
    let shown = ask(&mut connect(&bob), "new_text", &json!({"number": 0}));
    let mut words = shown.split(|letter: char| !letter.is_ascii_hexdigit());
    let handle = words.find(|word| word.len() == 32).expect("a handle in the text");
    let mut other = connect(&ada);
    for number in 1..=TEXTS {
        let (tool, arguments) = call(number);
        ask(&mut other, tool, &arguments);
    }
    let read = ask(&mut connect(&bob), "read_output", &json!({"handle": handle}));
    assert!(read.contains("xxx"), "{read}");
}

#[test]
fn new_long_outputs_of_one_client_leave_those_of_another() {
    long_outputs_of_one_client_leave_those_of_another(|number| {
        ("new_text", json!({"number": number}))
    });
}

#[test]
fn a_long_output_that_is_answered_from_the_cache_again_and_again_leaves_those_of_others() {
    long_outputs_of_one_client_leave_those_of_another(|_| ("same_text", json!({})));
}
