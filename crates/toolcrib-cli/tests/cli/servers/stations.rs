//! Combined promises of the stages of a call, through the built program: approval and time limits, keys and unknown
//! outcomes, tools that run alone and calls by name, refusals and their cost.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::{Http, ask};
use crate::harness::server::{Server, command};
use crate::harness::upstream::add_server;

const TOOLS: &str = r"
toolcrib: 1
tools:
  - name: remove
    description: Remove something.
    approval: always
    limits: {timeout: 2s}
    run: {argv: [bash, -c, 'sleep 0.5; echo removed']}
  - name: ship
    description: Ship to a project.
    approval: always
    context: {project_id: {from: ctx.project_id}}
    run: {argv: [echo, shipped, to, '${ctx.project_id}']}
  - name: look
    description: Look. Read-only.
    annotations: {read_only: true}
    input: {properties: {n: {type: integer}}}
    run: {argv: [bash, -c, 'echo look begins >> log; sleep 0.7; echo look ends >> log']}
  - name: migrate
    description: Change everything.
    parallel: false
    run: {argv: [bash, -c, 'echo migrate begins >> log; sleep 0.7; echo migrate ends >> log']}
  - name: strict
    description: Take a path.
    input: {properties: {path: {type: string}}, additionalProperties: false}
    run: {argv: [echo, '--', '${args.path}']}
";

fn crib(more: &str) -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    crib.config(&format!("state: {{dir: state}}\nbuiltins: {{meta: true}}\n{more}"));
    crib
}

/// The approver takes longer to decide than the tool may run.
#[cfg(target_os = "linux")]
#[test]
fn the_time_limit_of_a_tool_begins_when_its_call_is_approved() {
    let crib = crib("");
    let line = format!("{} call remove", env!("CARGO_BIN_EXE_toolcrib"));
    // `script` runs a command on a terminal of its own.
    let mut terminal = command("script");
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    terminal.current_dir(crib.path()).env("TERM", "dumb").env("NO_COLOR", "1");
    terminal.env("HOME", crib.home()).env("XDG_STATE_HOME", crib.state_home());
    terminal.env("TOOLCRIB__WORKSPACE__ROOT", ".");
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut terminal = terminal.spawn().expect("`script` is there");
    thread::sleep(Duration::from_secs(4));
    let mut input = terminal.stdin.take().expect("it is piped");
    input.write_all(b"y\n").expect("it reads");
    let ended = terminal.wait_with_output().expect("it ends");
    let screen = String::from_utf8_lossy(&ended.stdout);
    assert!(screen.contains("removed") && ended.status.success(), "{screen}");
}

/// A token for a client, and its entry in the config.
fn client(crib: &Crib, name: &str, entry: &str) -> (String, String) {
    let token = format!("{name}-token-for-these-tests");
    let mut made = crib.command(&["token", name, "--hash", "--json"]);
    let said = made.write_stdin(token.clone()).output().expect("it runs").stdout;
    let said: Value = serde_json::from_slice(&said).expect("JSON");
    (
        token,
        format!("    {name}: {{hash: \"{}\", {entry}}}\n", said["hash"].as_str().expect("a hash")),
    )
}

#[test]
fn a_call_that_waits_in_one_project_is_not_run_in_the_project_of_its_approver() {
    let crib = crib("");
    let of = |project: &str| {
        format!("rights: [call, approve], context: {{user: ada, project_id: {project}}}")
    };
    let (scratch, first) = client(&crib, "scratch", &of("scratch"));
    let (production, second) = client(&crib, "production", &of("production"));
    crib.config(&format!("state: {{dir: state}}\nserver:\n  tokens:\n{first}{second}"));
    let http = Http::start(&crib, "");
    let send = |token: &str, line: &str, body: &Value| {
        ask(&http.address, token, line, Some(body)).expect("an answer")
    };
    let run = send(&scratch, "POST /v1/runs", &json!({"calls": [{"tool": "ship"}]})).json();
    let line = format!("POST /v1/runs/{}/resolve", run["id"].as_str().expect("an id"));
    let id = run["waiting"][0]["id"].clone();
    let decided = send(&production, &line, &json!({"id": id, "decision": "approve"}));
    assert!(!decided.body.contains("shipped to production"), "{}", decided.body);
}

#[test]
fn a_call_by_name_that_needs_approval_waits_for_it_and_is_answered() {
    let crib = crib("");
    let http = Http::start(&crib, "");
    let call = json!({"tool": "tool_call", "arguments": {"name": "remove", "arguments": {}}});
    let run = http.ask("POST /v1/runs", Some(&json!({"calls": [call]}))).json();
    assert_eq!(run["status"], "requires_action", "{run}");
    let line = format!("POST /v1/runs/{}/resolve", run["id"].as_str().expect("an id"));
    let approve = json!({"id": run["waiting"][0]["id"], "decision": "approve"});
    let over = http.ask(&line, Some(&approve)).json();
    assert_eq!(over["results"][0]["output"], "removed\n", "{over}");
}

#[test]
fn a_tool_that_runs_alone_does_so_when_it_is_called_by_name() {
    let crib = crib("");
    let http = Http::start(&crib, "");
    let calls = json!({"calls": [
        {"tool": "look", "arguments": {"n": 1}},
        {"tool": "tool_call", "arguments": {"name": "migrate", "arguments": {}}},
        {"tool": "look", "arguments": {"n": 2}},
    ]});
    let answer = http.ask("POST /v1/batch", Some(&calls));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let log = fs::read_to_string(crib.path().join("log")).expect("it was written");
    assert!(log.contains("migrate begins\nmigrate ends\n"), "{log}\n{}", answer.body);
    assert_eq!(log.matches("look ends").count(), 2, "{log}");
}

#[test]
fn thousands_of_unknown_arguments_are_refused_at_once() {
    let crib = crib("");
    let http = Http::start(&crib, "");
    let many =
        (0..20_000).map(|n| (format!("k{n:06}"), json!(1))).collect::<serde_json::Map<_, _>>();
    let begun = Instant::now();
    let answer = http.ask("POST /v1/tools/strict/call", Some(&json!({"arguments": many})));
    let taken = begun.elapsed();
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(answer.body.len() < 20_000, "{} bytes", answer.body.len());
    assert!(taken < Duration::from_secs(10), "{taken:?}");
}

#[test]
fn a_long_name_that_no_tool_has_is_not_repeated_in_messages() {
    let crib = crib("");
    let http = Http::start(&crib, "");
    let calls = json!({"calls": [{"tool": "x".repeat(1_000_000)}]});
    let answer = http.ask("POST /v1/batch", Some(&calls));
    // The answer names the called tool once.
    assert!(answer.body.len() < 1_020_000, "{} bytes", answer.body.len());
}

/// The actions of a server that dies before it answers.
const DIES: &str = r#"with open(os.path.dirname(os.path.abspath(__file__)) + "/paid", "a") as file:
    file.write("paid\n")
os._exit(1)"#;

#[test]
fn a_request_with_unknown_outcome_is_not_repeated_under_its_key() {
    let crib = crib("");
    add_server(&crib, "frail", "pay", DIES);
    let http = Http::start(&crib, "");
    let wait = || {
        let until = Instant::now() + Duration::from_secs(20);
        while http.ask("GET /v1/tools/frail_pay", None).status != 200 && Instant::now() < until {
            thread::sleep(Duration::from_millis(50));
        }
    };
    for _ in 0..3 {
        wait();
        let reply = http.ask_under("one-payment", "frail_pay", &json!({})).expect("an answer");
        assert_ne!(reply.status, 200, "{}", reply.body);
        thread::sleep(Duration::from_millis(500));
    }
    let paid = fs::read_to_string(crib.data().join("paid")).expect("it was called");
    assert_eq!(paid, "paid\n", "it was done more than once");
}

#[test]
fn the_ends_of_programs_are_known_to_a_server_that_was_started_with_their_signal_ignored() {
    let crib = Crib::new(&[(
        "seven.yaml",
        "toolcrib: 1\ntools:\n  - name: seven\n    description: End with a number.\n    \
         run: {argv: [bash, -c, 'echo before; exit 7']}\n",
    )]);
    let mut program = command("bash");
    program.args([
        "-c",
        "trap '' CHLD; exec \"$@\"",
        "bash",
        env!("CARGO_BIN_EXE_toolcrib"),
        "mcp",
    ]);
    let mut server = Server::spawn(&crib, program).greeted();
    let ended = server.call("seven", &json!({}));
    assert!(ended.to_string().contains("exit_code\":7"), "{ended}");
    let computed = server.call("execute_python", &json!({"code": "print(6 * 7)"}));
    assert_eq!(computed["result"]["content"][0]["text"], "42\n", "{computed}");
}

#[test]
fn scratch_folders_of_a_killed_server_are_removed_at_the_next_start() {
    let crib = Crib::new(&[(
        "nap.yaml",
        "toolcrib: 1\ntools:\n  - name: nap\n    description: Sleep.\n    run: {argv: [sleep, '60']}\n",
    )]);
    let scratch = tempfile::tempdir().expect("a folder");
    let start = || {
        let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
        program.arg("mcp").env("TMPDIR", scratch.path());
        Server::spawn(&crib, program).greeted()
    };
    let parents = || fs::read_dir(scratch.path()).expect("ours").flatten();
    let left =
        || parents().flat_map(|parent| fs::read_dir(parent.path()).into_iter().flatten()).count();
    let within = |seconds: u64, reached: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(seconds);
        while !reached() && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
        }
        reached()
    };
    let mut server = start();
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "nap", "arguments": {}}}));
    assert!(within(20, &|| left() > 0), "the call has not begun");
    server.signal("KILL");
    drop(server);
    let before = left();
    let mut server = start();
    server.call("calculator", &json!({"expression": "6*7"}));
    assert!(within(20, &|| left() == 0), "of {before} there are {} left", left());
}

#[test]
fn check_refuses_commands_whose_options_or_programs_a_value_would_choose() {
    for (argv, name) in [
        ("[find, '--', '${args.a}', -name, '*.log']", "find"),
        ("[git, log, '--${args.a}']", "an option's name"),
        ("[env, '${args.a}', date]", "env"),
        ("[make, '--', '${args.a}']", "make"),
        ("[sed, -e, 's/${args.a}/x/', notes]", "sed"),
        ("[awk, '${args.a}', notes]", "awk"),
        ("[xargs, '${args.a}']", "xargs"),
    ] {
        let crib = Crib::new(&[(
            "ours.yaml",
            &format!(
                "toolcrib: 1\ntools:\n  - name: ours\n    description: Ask our own program.\n    \
                 input: {{properties: {{a: {{type: string}}}}, required: [a]}}\n    run: {{argv: {argv}}}\n"
            ),
        )]);
        let check = crib.run(&["check"]);
        let refused = check.code == Some(1) && check.stderr.contains("args.a");
        assert!(refused, "{name}: {check:?}");
    }
}

#[test]
fn a_name_that_an_older_yaml_takes_for_a_truth_value_is_a_name() {
    let crib = Crib::new(&[(
        "letters.yaml",
        "toolcrib: 1\ntools:\n  - name: letters\n    description: y\n    \
         input: {properties: {n: {type: string}}, required: [n]}\n    run: {argv: [printf, '--', '%s', '${args.n}']}\n",
    )]);
    let called = crib.run(&["call", "letters", "n=yes"]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "yes\n"), "{called:?}");
}
