//! Settings that take effect in a running server, on `reload` and on SIGHUP.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::{Http, ask};
use crate::harness::server::{Server, request};

const TOOLS: &str = "
toolcrib: 1
tools:
  - name: greet
    description: Say hello.
    annotations: {read_only: true}
    run: {argv: [echo, hello]}
";

const OPERATOR: &str = "operator-token-for-tests";

/// A config with the operator's token, these clients (name, rest of the entry), and more.
fn config(crib: &Crib, clients: &[(&str, &str)], more: &str) {
    let mut tokens = if clients.is_empty() { String::new() } else { "  tokens:\n".to_owned() };
    for (name, rest) in clients {
        let hash = hash_of(crib, name);
        let _ = writeln!(tokens, "    {name}: {{hash: \"{hash}\"{rest}}}");
    }
    crib.config(&format!("state: {{dir: state}}\nserver:\n  token: {OPERATOR}\n{tokens}{more}"));
}

fn token_of(name: &str) -> String {
    format!("{name}-token-for-these-tests")
}

/// The output of `toolcrib token` for a client's token.
fn hash_of(crib: &Crib, name: &str) -> String {
    let mut command = crib.command(&["token", name, "--hash", "--json"]);
    let output = command.write_stdin(token_of(name)).output().expect("it runs");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    said["hash"].as_str().expect("a hash").to_owned()
}

fn serve(clients: &[(&str, &str)]) -> (Crib, Http) {
    let crib = Crib::new(&[("greet.yaml", TOOLS)]);
    config(&crib, clients, "");
    let http = Http::start(&crib, OPERATOR);
    (crib, http)
}

fn call(http: &Http, who: &str) -> u16 {
    let answer = ask(&http.address, &token_of(who), "POST /v1/tools/greet/call", Some(&json!({})));
    answer.expect("an answer").status
}

/// Waits until the condition holds.
#[track_caller]
fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "it did not come to hold");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_revoked_token_is_refused_after_a_reload_and_a_new_one_is_let_in() {
    let (crib, http) = serve(&[("ada", ""), ("bob", "")]);
    assert_eq!((call(&http, "ada"), call(&http, "eve")), (200, 401));
    let mut stream = TcpStream::connect(&http.address).expect("it listens");
    let (address, token) = (&http.address, token_of("ada"));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    let hello = hello.to_string();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{hello}",
        hello.len()
    )
    .expect("it reads");
    let mut head = [0; 4096];
    let length = stream.read(&mut head).expect("it answers");
    let head = String::from_utf8_lossy(&head[..length]).to_lowercase();
    let session = head.split("mcp-session-id: ").nth(1).and_then(|rest| rest.lines().next());
    let session = session.expect("a session");
    let mut events = TcpStream::connect(address).expect("it listens");
    write!(
        events,
        "GET /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         accept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
    )
    .expect("it reads");
    let mut first = [0; 12];
    events.read_exact(&mut first).expect("it answers");
    assert_eq!(&first, b"HTTP/1.1 200");

    config(&crib, &[("bob", ""), ("eve", "")], "");
    assert_eq!(call(&http, "ada"), 200, "until somebody asks for a reload");
    let run = crib.run(&["reload"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("client ada removed"), "{run:?}");
    assert_eq!((call(&http, "ada"), call(&http, "bob"), call(&http, "eve")), (401, 200, 200));
    // The stream of the session has ended, cleanly or not.
    events.set_read_timeout(Some(Duration::from_secs(10))).expect("it is open");
    let ended = events.read_to_end(&mut Vec::new());
    let waits = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(!ended.is_err_and(|error| waits(&error)), "the stream is still open");
}

#[test]
fn sighup_puts_rights_and_policy_into_effect() {
    let (crib, http) = serve(&[("ada", "")]);
    let metrics =
        || ask(&http.address, &token_of("ada"), "GET /metrics", None).expect("one").status;
    assert_eq!((call(&http, "ada"), metrics()), (200, 403));
    let no_greeting = "policy: {rules: [{tool: greet, action: deny}]}\n";
    config(&crib, &[("ada", ", rights: [call, observe]")], no_greeting);
    http.server.signal("HUP");
    until(|| metrics() == 200);
    assert_eq!(call(&http, "ada"), 403, "the policy is in effect");
}

#[test]
fn a_config_that_cannot_be_used_changes_nothing_and_is_told() {
    let (crib, http) = serve(&[("ada", "")]);
    let health = || http.ask("GET /health", None).json();
    let with_server = |setting: &str| {
        format!("state: {{dir: state}}\nserver: {{token: operator-token-for-tests, {setting}}}\n")
    };
    let with_audit =
        format!("{}audit: {{file: log, max_bytes: 1MiB}}\n", with_server("no_auth: false"));
    for (broken, says) in [
        ("server: {tokens: {ada: {hash: nonsense}}}\n", "the hash that"),
        (
            "state: {dir: state}\nserver: {token: operator-token-for-tests, toolset: nowhere}\n",
            "nowhere",
        ),
        // The server was started with `--listen`, and all of these need a restart.
        (&with_server("listen: garbage"), "`server.listen`"),
        (&with_server("allowed_hosts: ['a b']"), "allowed_hosts"),
        (&with_server("allowed_origins: [here]"), "allowed_origins"),
        (&with_audit, "audit.file"),
    ] {
        crib.config(broken);
        let refused = http.ask("POST /v1/reload", None);
        assert_eq!(refused.status, 409, "{}", refused.body);
        let detail = refused.json()["detail"].as_str().expect("a text").to_owned();
        assert!(detail.starts_with("nothing was changed: ") && detail.contains(says), "{detail}");
        assert_eq!(call(&http, "ada"), 200);
        assert_eq!(
            (&health()["status"], &health()["config_refused"]),
            (&json!("degraded"), &json!(1))
        );
    }
    let status = http.ask("GET /v1/status", None).json();
    assert!(status["config"]["problem"].is_string(), "{status}");
    config(&crib, &[("ada", "")], "");
    assert_eq!(http.ask("POST /v1/reload", None).status, 200);
    assert_eq!((&health()["status"], &health()["config_refused"]), (&json!("ok"), &json!(0)));
}

#[test]
fn settings_that_need_a_restart_are_named() {
    let (crib, http) = serve(&[("ada", "")]);
    config(&crib, &[("ada", "")], "  listen: 127.0.0.1:1\nexecutor: {max_queue: 3}\n");
    let run = crib.run(&["reload", "--json"]);
    let config = &run.json()["servers"][0]["config"];
    assert_eq!(config["needs_restart"], json!(["executor.max_queue"]), "{run:?}");
    assert_eq!(config["changed"], json!([]));
    let status = crib.run(&["status"]);
    assert!(status.stdout.contains("needs a restart: executor.max_queue ("), "{status:?}");
    let place = config["restart_origins"]["executor.max_queue"].as_str().expect("a place");
    assert!(place.contains("config.yml:") && status.stdout.contains(place), "{place}: {status:?}");
    assert!(run.json()["servers"][0]["config"].to_string().contains("config.yml:"), "{run:?}");
    assert_eq!(call(&http, "ada"), 200);
}

#[test]
fn a_manifest_is_trusted_and_no_longer_trusted_after_a_reload() {
    let trusted = TOOLS.replace("    run:", "    sandbox: {profile: trusted}\n    run:");
    let crib = Crib::new(&[("greet.yaml", &trusted)]);
    crib.config("state: {dir: state}\n");
    let mut server = Server::mcp(&crib);
    let mut is_refused = || server.call("greet", &json!({}))["result"]["isError"].clone();
    assert_eq!(is_refused(), true);
    for (config, refused) in [("manifests: {trusted: [tools.d/greet.yaml]}\n", false), ("", true)] {
        crib.config(&format!("state: {{dir: state}}\n{config}"));
        let run = crib.run(&["reload"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(is_refused(), refused);
    }
}

#[test]
fn a_stdio_server_applies_a_new_policy() {
    let crib = Crib::new(&[("greet.yaml", TOOLS)]);
    crib.config("state: {dir: state}\n");
    let mut server = Server::mcp(&crib);
    assert_eq!(server.call("greet", &json!({}))["result"]["isError"], false);
    crib.config("state: {dir: state}\npolicy: {rules: [{tool: greet, action: deny}]}\n");
    let run = crib.run(&["reload"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("in effect now: policy.rules"), "{run:?}");
    assert_eq!(server.call("greet", &json!({}))["result"]["isError"], true);
}

#[test]
fn the_token_made_at_the_start_stays_good() {
    let crib = Crib::new(&[("greet.yaml", TOOLS)]);
    crib.config("state: {dir: state}\n");
    let http = Http::start(&crib, "");
    assert_eq!(http.ask("POST /v1/reload", None).status, 200);
    assert_eq!(http.ask("GET /v1/tools", None).status, 200);
}

#[test]
fn a_client_that_is_removed_or_added_is_told_in_one_line() {
    let (crib, http) = serve(&[("ada", ""), ("agent", ", rights: [call, observe]")]);
    config(&crib, &[("ada", ""), ("bob", "")], "");
    let run = crib.run(&["reload"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("config: client agent removed\n"), "{run:?}");
    assert!(run.stdout.contains("config: client bob added\n"), "{run:?}");
    assert!(!run.stdout.contains("server.tokens"), "{run:?}");
    assert_eq!(call(&http, "bob"), 200);
    config(&crib, &[("ada", ""), ("agent", ", rights: [call, observe]")], "");
    let back = crib.run(&["reload"]);
    assert!(back.stdout.contains("config: client agent added\n"), "{back:?}");
    assert!(!back.stdout.contains("server.tokens"), "{back:?}");
}

#[test]
fn a_client_cannot_have_a_reserved_name() {
    let crib = Crib::new(&[("greet.yaml", TOOLS)]);
    for name in ["operator", "owner", "anyone"] {
        let token = crib.run(&["token", name]);
        assert_eq!(token.code, Some(2), "{token:?}");
        assert!(token.stderr.contains("choose another name"), "{token:?}");
        let hash = format!("blake3:{}", "0".repeat(64));
        crib.config(&format!("server: {{tokens: {{{name}: {{hash: '{hash}'}}}}}}\n"));
        let check = crib.run(&["check"]);
        assert_ne!(check.code, Some(0), "{check:?}");
        assert!(check.stderr.contains("give the client another one"), "{check:?}");
    }
}

#[test]
fn a_client_that_may_observe_learns_no_token_from_a_config_that_is_refused() {
    let observes = [("ada", ", rights: [observe]")];
    let crib = Crib::new(&[("greet.yaml", TOOLS)]);
    config(&crib, &observes, "");
    let log = crib.path().join("server.log");
    let http = Http::start_with_log(&crib, OPERATOR, std::fs::File::create(&log).expect("a file"));
    let hash = hash_of(&crib, "ada");
    let status = |who: &str| ask(&http.address, who, "GET /v1/status", None).expect("an answer");
    for broken in [
        format!("server: {{token: {OPERATOR}, lisen: x}}\n"),
        format!("server: {{tokens: {{ada: {{hash: '{hash}', right: x}}}}, token: {OPERATOR}}}\n"),
        format!("server: {{tokens: {{ada: {{hash: '{OPERATOR}'}}}}}}\n"),
        format!("server:\n  token: {OPERATOR}\n  token: {OPERATOR}\n"),
        format!("secrets: {{a: {OPERATOR}}}\n"),
    ] {
        crib.config(&format!("state: {{dir: state}}\n{broken}"));
        let refused = http.ask("POST /v1/reload", None);
        assert_eq!(refused.status, 409, "{}", refused.body);
        let seen = status(&token_of("ada"));
        let problem = seen.json()["config"]["problem"].as_str().expect("a problem").to_owned();
        assert!(problem.contains("config.yml:"), "{problem}");
        let told = crib.run(&["status", "--json"]);
        assert_eq!(told.code, Some(0), "{told:?}");
        for said in [&refused.body, &seen.body, &told.stdout, &told.stderr] {
            assert!(!said.contains(OPERATOR) && !said.contains(&hash), "{broken}\n{said}");
        }
    }
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(log.contains("cannot be used") && !log.contains(OPERATOR), "{log}");
}

#[test]
fn limits_secrets_and_built_in_tools_follow_a_reload_and_a_running_call_keeps_its_own() {
    let slow = "toolcrib: 1\ntools:\n  - name: slow\n    description: Take a moment.\n    run: {argv: [sleep, '2']}\n  \
                - name: key\n    description: Use the key.\n    run: {argv: [printenv, KEY], env: {KEY: \"${secret.key}\"}}\n    output: {format: text}\n";
    let crib = Crib::new(&[("slow.yaml", slow)]);
    crib.config("state: {dir: state}\n");
    let mut server = Server::mcp(&crib);
    let answer = |server: &mut Server, id: u64| loop {
        let message = server.receive();
        if message["id"] == id {
            break message;
        }
    };
    let listed = |server: &mut Server| {
        server.send(&json!({"jsonrpc": "2.0", "id": 40, "method": "tools/list"}));
        answer(server, 40).to_string()
    };
    let before = listed(&mut server);
    assert!(before.contains("calculator") && !before.contains("\"key\""), "{before}");

    server.send(&request(50, "slow", &json!({})));
    fs::write(crib.path().join("key.secret"), "a-long-enough-key").expect("a secret");
    crib.config(
        "state: {dir: state}\nexecutor: {max_timeout: 1s}\nbuiltins: {enabled: []}\nsecrets: {key: {file: key.secret}}\n",
    );
    let run = crib.run(&["reload"]);
    let told = "in effect now: builtins.enabled, executor.max_timeout, secrets.key.file";
    assert!(run.stdout.contains(told), "{run:?}");
    let first = answer(&mut server, 50);
    assert_eq!(first["result"]["isError"], false, "it keeps its time: {first}");

    let after = listed(&mut server);
    assert!(!after.contains("calculator") && after.contains("\"key\""), "{after}");
    let key = server.call("key", &json!({}));
    assert_eq!(key["result"]["isError"], false, "{key}");
    assert!(!key.to_string().contains("a-long-enough-key"), "it is masked: {key}");
    let late = server.call("slow", &json!({}));
    assert_eq!(late["result"]["isError"], true, "{late}");
}

/// A tool that runs a script if there is one, and another that makes it.
const MAKING: &str = "
toolcrib: 1
tools:
  - name: made
    description: Runs a script.
    annotations: {read_only: true}
    run: {argv: [sh, -c, 'test ! -e x.sh || . ./x.sh']}
  - name: maker
    description: Writes in the workspace.
    annotations: {read_only: true}
    run: {argv: [dd, of=x.sh], stdin: echo evil}
";

/// Each kind of lock, with each process that could run the file, before and after each kind of review.
#[test]
fn a_made_file_is_run_by_no_process_before_a_review_whatever_the_lock_says() {
    for lock in ["off", "warn", "enforce"] {
        for process in ["the same server", "a server after a restart", "a command"] {
            for review in ["reload", "lock"] {
                let row = format!("lock {lock}, {process}, {review}");
                let crib = Crib::new(&[("making.yaml", MAKING)]);
                crib.config(&format!("state: {{dir: state}}\nregistry: {{lock: {lock}}}\n"));
                let locked = crib.run(&["lock"]);
                assert_eq!(locked.code, Some(0), "{row}: {locked:?}");
                let mut server = Server::mcp(&crib);
                for tool in ["made", "maker"] {
                    let done = server.call(tool, &json!({}));
                    assert_eq!(done["result"]["isError"], false, "{row}: {tool}: {done}");
                }
                if process == "a server after a restart" {
                    server.close_input();
                    assert_eq!(server.ended(), Some(0), "{row}");
                    server = Server::mcp(&crib);
                } else if process == "a command" {
                    server.close_input();
                    assert_eq!(server.ended(), Some(0), "{row}");
                }
                let mut run = || match process {
                    "a command" => format!("{:?}", crib.run(&["call", "made"])),
                    _ => server.call("made", &json!({})).to_string(),
                };
                let before = run();
                assert!(!before.contains("evil"), "{row}: {before}");
                let is_named = before.contains("could create or change")
                    || (lock == "enforce" && before.contains("has changed since toolcrib.lock"));
                assert!(is_named, "{row}: {before}");
                if review == "lock" {
                    assert_eq!(crib.run(&["lock"]).code, Some(0), "{row}");
                }
                let reviewed = crib.run(&["reload"]);
                let after = run();
                if lock == "enforce" && review == "reload" {
                    // A reload reviews files, but accepts nothing for the lock.
                    assert!(!after.contains("evil"), "{row}: {after}");
                    assert!(after.contains("has changed since toolcrib.lock"), "{row}: {after}");
                    assert_eq!(crib.run(&["lock"]).code, Some(0), "{row}");
                    crib.run(&["reload"]);
                    assert!(run().contains("evil"), "{row}");
                } else {
                    assert!(after.contains("evil"), "{row}: {reviewed:?}: {after}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_a_program_made_is_run_by_no_later_command_before_a_review() {
    let crib = Crib::new(&[("making.yaml", MAKING)]);
    let call = |tool: &str| crib.run(&["call", tool]);
    assert_eq!(call("made").code, Some(0), "nothing is there to run");
    assert_eq!(call("maker").code, Some(0));
    let run = call("made");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stderr.contains("could create or change") && !run.stdout.contains("evil"),
        "{run:?}"
    );
    let reviewed = crib.run(&["reload"]);
    assert_eq!(reviewed.code, Some(0), "{reviewed:?}");
    assert!(reviewed.stdout.contains("x.sh: programs of this server could have"), "{reviewed:?}");
    assert!(call("made").stdout.contains("evil"));
    assert_eq!(
        crib.run(&["reload"]).code,
        Some(1),
        "nothing is left to review, and no server runs"
    );
}
