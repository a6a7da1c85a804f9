//! toolcrib behind toolcrib, with the revision of MCP that has no handshake: tools are listed and called, and clients
//! are notified of changes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::server::Server;

/// Refuses the handshake of the program behind it.
const DOOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/servers/door.py");

const GREET: &str = r"
toolcrib: 1
tools:
  - name: greet
    description: Say hello.
    annotations: {read_only: true}
    run: {argv: [echo, hello]}
";

/// Sends a request to a server, and waits for its answer after any other messages.
fn asked(server: &mut Server, id: u64, method: &str, params: &Value) -> Value {
    server.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    loop {
        let message = server.receive();
        if message["id"] == id {
            return message["result"].clone();
        }
    }
}

/// Waits until a server lists a tool.
#[track_caller]
fn until_listed(server: &mut Server, tool: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    for id in 100.. {
        let list = asked(server, id, "tools/list", &json!({}));
        let tools = list["tools"].as_array().expect("a list");
        if tools.iter().any(|listed| listed["name"] == tool) {
            return;
        }
        assert!(Instant::now() < deadline, "{tool} is not listed: {list}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks a crib whose manifest names another crib's server as `far`.
fn is_followed(near: &Crib, far: &Crib) {
    let mut server = Server::mcp(near);
    until_listed(&mut server, "far_greet");
    let call = json!({"name": "far_greet", "arguments": {}});
    let answer = asked(&mut server, 2, "tools/call", &call);
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("hello\n") && text.contains("untrusted output"), "{answer}");

    far.write("ping.yaml", &GREET.replace("greet", "ping").replace("hello", "pong"));
    until_listed(&mut server, "far_ping");
    let status = near.run(&["status", "--json"]).json();
    let upstream = &status["servers"][0]["upstreams"][0];
    assert_eq!((&upstream["name"], &upstream["state"]), (&json!("far"), &json!("connected")));
}

/// A crib that reaches the other one as declared here.
fn near(declared: &str) -> Crib {
    let near = Crib::new(&[("far.yaml", &format!("toolcrib: 1\nupstream:\n{declared}"))]);
    near.config("state: {dir: state}\nmanifests: {trusted: [tools.d/far.yaml]}\n");
    near
}

#[test]
fn an_http_server_is_watched_without_a_session() {
    let far = Crib::new(&[("greet.yaml", GREET)]);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--no-auth", "--json"];
    let mut server = Server::start(&far, &arguments);
    let url = server.receive()["url"].as_str().expect("a URL").to_owned();
    let declared = format!("  - {{name: far, url: '{url}', allow_private: [127.0.0.0/8]}}\n");
    is_followed(&near(&declared), &far);
}

#[test]
fn a_server_without_a_handshake_is_supported() {
    // Trusted: a crib confines the programs that it starts itself.
    let far = Crib::new(&[("greet.yaml", GREET)]);
    let declared = format!(
        "  - {{name: far, command: [python3, -I, -S, '{DOOR}', '{}', mcp], cwd: '{}', sandbox: \
         {{profile: trusted}}}}\n",
        env!("CARGO_BIN_EXE_toolcrib"),
        far.path().display()
    );
    is_followed(&near(&declared), &far);
}
