//! The built program on a kernel without Landlock, which a system call filter simulates.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::crib::{self, Crib};
use crate::harness::http::ask;
use crate::harness::server::{Server, command};

/// Starts a program under a filter that answers `landlock_create_ruleset` with "no such system call"; standard error
/// goes to the file `errors`.
const LAUNCHER: &str = r#"
    my @rules = ([0x20, 0, 0, 0], [0x15, 0, 1, 444], [6, 0, 0, 0x00050026], [6, 0, 0, 0x7fff0000]);
    my $filter = join '', map { pack "S C C L", @$_ } @rules;
    my $program = pack "S x6 P", scalar @rules, $filter;
    syscall(157, 38, 1, 0, 0, 0) == 0 && syscall(317, 1, 0, $program) == 0 or die "no filter: $!";
    open STDERR, '>', 'errors' or die;
    exec @ARGV or die;
"#;

const TOOLS: &str = "toolcrib: 1
tools:
  - name: hello
    description: Say hello.
    run: {argv: [printf, all-went-well]}
  - name: careless
    description: Say hello under what there is.
    run: {argv: [printf, all-went-well]}
    sandbox: {profile: workspace, require: best_effort}
  - name: careful
    description: Say hello only where everything is enforced.
    run: {argv: [printf, all-went-well]}
    sandbox: {profile: workspace, require: required}
";

const POLICY: &str = "policy: {rules: [{tool: '*', action: allow}]}\n";

#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn can_try() -> bool {
    let can = cfg!(target_arch = "x86_64") && Path::new("/usr/bin/perl").exists();
    if !can {
        println!("skipped: the filter is one for x86-64, and perl puts it in force");
    }
    can
}

fn without_landlock(arguments: &[&str]) -> Command {
    let mut perl = command("/usr/bin/perl");
    perl.args(["-e", LAUNCHER, env!("CARGO_BIN_EXE_toolcrib")]).args(arguments);
    perl.env_remove("TOOLCRIB_TOKEN");
    perl
}

fn crib(config: &str) -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    crib.config(&format!("workspace: {{root: .}}\n{POLICY}{config}"));
    crib
}

/// A server without Landlock: the results of calls of these tools, its health, its status, and its log.
fn serve(crib: &Crib, calls: &[(&str, Value)]) -> (Vec<Value>, Value, Value, String) {
    let command = without_landlock(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let mut server = Server::spawn(crib, command);
    let said = server.receive();
    let address = said["api"].as_str().expect("a URL").trim_start_matches("http://").to_owned();
    let token = said["token"].as_str().expect("a token").to_owned();
    let asked = |line: &str, body: Option<&Value>| -> Value {
        let answer = ask(&address, &token, line, body).expect("an answer").body;
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    };
    let answers = calls.iter().map(|(tool, arguments)| {
        asked(&format!("POST /v1/tools/{tool}/call"), Some(&json!({"arguments": arguments})))
    });
    let answers = answers.collect();
    let (health, status) = (asked("GET /health", None), asked("GET /v1/status", None));
    server.signal("TERM");
    server.ended();
    (answers, health, status, fs::read_to_string(crib.path().join("errors")).expect("a log"))
}

const REASON: &str = "this kernel has no Landlock, or it is switched off";

#[test]
fn without_landlock_confined_programs_are_refused_and_the_server_says_so() {
    if !can_try() {
        return;
    }
    let crib = crib("");
    let none = json!({});
    let (answers, health, status, log) = serve(
        &crib,
        &[
            ("hello", none.clone()),
            ("careless", none.clone()),
            ("careful", none),
            ("bash", json!({"command": "echo all-went-well"})),
            ("execute_python", json!({"code": "print('all-went-well')"})),
        ],
    );
    for answer in answers {
        let text = answer.to_string();
        assert!(!text.contains("all-went-well") && text.contains(REASON), "{text}");
    }
    assert_eq!(health["status"], "degraded", "{health}");
    assert_eq!(health["not_enforced"], 1, "{health}");
    assert!(!health.to_string().contains("Landlock"), "nobody had to show a token: {health}");
    let told = status["not_enforced"][0].as_str().expect("a sentence");
    assert!(told.contains(REASON) && told.contains("pure, workspace, workspace+net"), "{told}");
    assert!(log.contains("WARN") && log.contains(REASON), "{log}");
    assert!(log.contains("programs that need it are refused"), "{log}");

    let output = without_landlock(&["doctor"]).current_dir(crib.path()).output().expect("it runs");
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(
        found.contains(REASON) && found.contains("programs that need it are refused"),
        "{found}"
    );
    assert!(found.contains("sandbox.require: best_effort"), "{found}");
}

#[test]
fn only_the_config_can_allow_weaker_confinement() {
    if !can_try() {
        return;
    }
    let crib = crib("sandbox: {require: best_effort}\n");
    let none = json!({});
    let (answers, health, _, log) = serve(
        &crib,
        &[
            ("hello", none.clone()),
            ("careless", none.clone()),
            ("bash", json!({"command": "echo all-went-well"})),
            ("careful", none),
            ("execute_python", json!({"code": "print('all-went-well')"})),
        ],
    );
    for (index, answer) in answers.iter().enumerate() {
        let text = answer.to_string();
        // A manifest with a required profile, and code that only computes, are refused as before.
        assert_eq!(text.contains("all-went-well"), index < 3, "{text}");
        assert!(text.contains(REASON), "{text}");
    }
    assert_eq!(health["status"], "degraded", "{health}");
    assert!(log.contains("programs run without it, because of `sandbox.require`"), "{log}");
}

#[test]
fn full_enforcement_causes_no_message() {
    let crib = crib("");
    let health = crib::run(&mut crib.command(&["doctor"])).stdout;
    assert!(!health.contains("not held:"), "{health}");
}
