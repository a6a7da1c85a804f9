//! With `--log-format json` each line that a server writes to standard error is a JSON object.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::Http;
use crate::harness::server::{Server, command};

/// One valid tool that naps, and one file that is broken.
const MANIFESTS: [(&str, &str); 2] = [
    (
        "nap.yaml",
        "toolcrib: 1\ntools:\n  - name: nap\n    description: Sleep.\n    run: {argv: [sleep, '30']}\n  \
         - name: gone\n    description: There is no such program.\n    run: {argv: [no-such-program]}\n",
    ),
    ("broken.yaml", "toolcrib: 1\ntools:\n  - name: broken\n    descripton: A slip.\n"),
];

fn toolcrib(arguments: &[&str]) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(arguments).args(["--log-format", "json"]).env_remove("TOOLCRIB_TOKEN");
    command
}

/// The lines of a log. Fails unless each is an object with a level and a message.
#[track_caller]
fn objects(text: &str) -> Vec<Value> {
    let object = |line: &str| {
        let value: Value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{error}: {line:?} in {text}"));
        assert!(value["level"].is_string() && value["message"].is_string(), "{line}");
        assert!(!line.contains("\\u001b"), "no colours: {line}");
        value
    };
    text.lines().map(object).collect()
}

/// Whether a message at this level contains a text.
fn says(lines: &[Value], level: &str, text: &str) -> bool {
    let contains = |line: &Value| line["message"].as_str().is_some_and(|said| said.contains(text));
    lines.iter().any(|line| line["level"] == level && contains(line))
}

#[test]
fn every_line_of_a_server_is_an_object_from_its_start_to_its_end() {
    let crib = Crib::new(&MANIFESTS);
    let nobody = crib.home().join("nobody");
    crib.config(&format!("state: {{dir: state}}\naudit: {{syslog: {}}}\n", nobody.display()));
    let path = crib.home().join("log");
    let mut serve = toolcrib(&["serve", "--listen", "127.0.0.1:0"]);
    // The announcement for people is on standard output.
    serve.args(["--json", "--no-auth"]);
    let mut http = Http::spawn_with_log(&crib, serve, File::create(&path).expect("there is room"));
    let body = json!({"arguments": {"expression": "1+"}});
    http.ask("POST /v1/tools/calculator/call", Some(&body));
    // A reload of a config with a mistake, and a call that is running at the end.
    crib.config("state: {dir: state}\nservr: {}\n");
    http.server.signal("HUP");
    let mut stream = http.stream("POST /v1/tools/nap/call HTTP/1.1", &json!({}));
    std::thread::sleep(Duration::from_secs(1));
    http.server.signal("TERM");
    assert_eq!(http.server.ended(), Some(0));
    // The call is answered, whatever the answer.
    let _ = std::io::Read::read(&mut stream, &mut [0; 16]);
    let text = fs::read_to_string(&path).expect("it is written");
    let lines = objects(&text);
    for (level, said) in [
        ("ERROR", "descripton"),
        ("WARN", "audit records cannot be sent to syslog"),
        ("WARN", "reload"),
        ("INFO", "waiting for 1 call"),
        ("ERROR", "audit records were not sent to syslog"),
    ] {
        assert!(says(&lines, level, said), "{level} {said}: {text}");
    }
}

#[test]
fn every_line_of_a_refused_start_is_an_object() {
    let crib = Crib::new(&[]);
    let log = |arguments: &[&str]| {
        let mut start = toolcrib(arguments);
        start.current_dir(crib.path()).env("HOME", crib.home()).stdin(Stdio::null());
        start.env("XDG_STATE_HOME", crib.state_home()).env_remove("STATE_DIRECTORY");
        let output = start.output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).expect("text");
        let lines = objects(&text);
        assert!(lines.iter().any(|line| line["level"] == "ERROR"), "{text}");
        lines
    };
    for server in ["serve", "mcp"] {
        assert!(says(&log(&[server, "--no-such-option"]), "ERROR", "--no-such-option"));
        assert!(says(&log(&[server, "--config", "missing.yml"]), "ERROR", "missing.yml"));
        crib.config("servr: {}\nstate: 7\n");
        assert!(says(&log(&[server]), "ERROR", "servr"));
        crib.config("state: {dir: state}\naudit: {file: tools.d}\n");
        assert!(says(&log(&[server]), "ERROR", "audit.file"));
        fs::remove_file(crib.path().join("config.yml")).expect("it is ours");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    crib.config("state: {dir: state}\n");
    assert!(says(&log(&["serve", "--listen", &address]), "ERROR", &address));
}

#[test]
fn every_line_of_a_server_over_standard_input_is_an_object() {
    let crib = Crib::new(&MANIFESTS);
    crib.config("state: {dir: state}\n");
    let path = crib.home().join("log");
    let log = File::create(&path).expect("there is room");
    let mut server = Server::spawn_with_log(&crib, toolcrib(&["mcp", "-v"]), log.into()).greeted();
    server.send_line(b"this is no message");
    server.send(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "nap"}}),
    );
    std::thread::sleep(Duration::from_secs(1));
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
    let text = fs::read_to_string(&path).expect("it is written");
    let lines = objects(&text);
    assert!(says(&lines, "ERROR", "descripton"), "{text}");
    assert!(says(&lines, "INFO", "waiting for 1 call"), "{text}");
}
