//! MCP over standard input and output: unreadable lines are answered, and so is the next line.

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::server::Server;

const TOOLS: &str = "
toolcrib: 1
tools:
  - name: greet
    description: Greet. Read-only.
    run: {argv: [printf, hello]}
";

/// Sends a line to a server, which answers it with an error without a request id and keeps running.
#[track_caller]
fn refused(line: &[u8], code: i64, why: &str) {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    // Before the handshake and after it.
    for mut server in [Server::start(&crib, &["mcp"]), Server::mcp(&crib)] {
        server.send_line(line);
        let answer = server.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)));
        let said = answer["error"]["message"].as_str().expect("a text");
        assert!(said.contains(why), "{said}");
    }
    let mut server = Server::mcp(&crib);
    server.send_line(line);
    server.receive();
    let answer = server.call("greet", &json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
}

#[test]
fn bytes_that_are_not_utf_8() {
    refused(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}", -32700, "not UTF-8");
}

#[test]
fn a_message_that_breaks_off() {
    refused(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"na"#, -32700, "ends");
}

#[test]
fn json_that_is_too_deep() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}"#,
        "[".repeat(100_000)
    );
    refused(deep.as_bytes(), -32700, "levels of nesting");
}

#[test]
fn a_line_that_is_too_long() {
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(16 << 20));
    refused(long.as_bytes(), -32700, "longer than 16777216 bytes");
}

#[test]
fn half_a_message_at_the_end_of_input() {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    let mut server = Server::mcp(&crib);
    server.send_last(br#"{"jsonrpc":"2.0","id":1,"method":"tools/li"#);
    assert_eq!(server.receive()["error"]["code"], -32700);
    assert_eq!(server.ended(), Some(0));
}
