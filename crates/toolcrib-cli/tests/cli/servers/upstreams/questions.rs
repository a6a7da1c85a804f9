//! Questions of another MCP server while several clients use it over HTTP.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::{Http, Reply, ask};
use crate::harness::server::Server;

const ADA: &str = "ada-token-for-these-tests";
const BOB: &str = "bob-token-for-these-tests";

fn hash(crib: &Crib, name: &str, token: &str) -> String {
    let output = crib.command(&["token", name, "--hash", "--json"]).write_stdin(token).output();
    let said: Value = serde_json::from_slice(&output.expect("it runs").stdout).expect("JSON");
    said["hash"].as_str().expect("a hash").to_owned()
}

fn call(server: &Http, token: &str, tool: &str, arguments: &Value) -> Reply {
    let body = json!({"calls": [{"tool": tool, "arguments": arguments}]});
    ask(&server.address, token, "POST /v1/runs", Some(&body)).expect("an answer")
}

#[test]
fn a_question_without_a_token_is_not_put_to_a_client_after_another_ones_call() {
    let crib = super::crib("");
    let tool = |name: &str| json!({"name": name, "description": "Do it.", "inputSchema": {"type": "object"}});
    let script = json!({"tools": [tool("get"), tool("ask")]}).to_string();
    fs::write(crib.data().join("script.json"), script).expect("a script");
    let (ada, bob) = (hash(&crib, "ada", ADA), hash(&crib, "bob", BOB));
    crib.config(&format!(
        "state: {{dir: state}}\nserver: {{tokens: {{ada: {{hash: \"{ada}\", rights: [call]}}, \
         bob: {{hash: \"{bob}\", rights: [call]}}}}}}\n"
    ));
    let log = crib.data().join("log");
    let server = Http::start_with_log(&crib, ADA, fs::File::create(&log).expect("a file"));

    let started = Instant::now();
    let tools = || ask(&server.address, ADA, "GET /v1/tools", None).expect("an answer").body;
    while !tools().contains("notes_ask") && started.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(50));
    }
    // Ada alone is asked.
    let asked = call(&server, ADA, "notes_ask", &json!({}));
    assert_eq!(asked.json()["status"], "requires_action", "{}", asked.body);
    assert!(asked.body.contains("Which town?"), "{}", asked.body);
    let used = call(&server, BOB, "notes_get", &json!({}));
    assert_eq!(used.json()["status"], "completed", "{}", used.body);
    // The server may ask about Bob's call now.
    let asked = call(&server, ADA, "notes_ask", &json!({}));
    assert_eq!(asked.json()["status"], "completed", "{}", asked.body);
    assert!(asked.body.contains("cancel") && !asked.body.contains("Which town?"), "{}", asked.body);
    let asked = call(&server, ADA, "notes_ask", &json!({"refers": "own"}));
    assert_eq!(asked.json()["status"], "requires_action", "with its token: {}", asked.body);
    drop(server);
    let log = fs::read_to_string(log).expect("a log");
    assert!(log.contains("a question of an MCP server was cancelled"), "{log}");
    assert!(log.contains("several c"), "the reason is logged: {log}");
}

#[test]
fn what_a_manifest_offers_of_a_server_besides_tools_reaches_mcp_clients() {
    let crib =
        super::crib("    resources: {include: ['note://*']}\n    prompts: {include: ['re*']}\n");
    let script = json!({
        "tools": [],
        "capabilities": {"resources": {}, "prompts": {}},
        "resources": [{"uri": "note://1", "name": "n"}, {"uri": "priv://1", "name": "n"}],
        "prompts": [{"name": "review"}, {"name": "other"}],
    });
    fs::write(crib.data().join("script.json"), script.to_string()).expect("a script");
    let check = crib.run(&["check", "--strict"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    let mut server = Server::mcp(&crib);
    let mut lists = |method: &str| {
        server.send(&json!({"jsonrpc": "2.0", "id": 40, "method": method, "params": {}}));
        loop {
            let message = server.receive();
            if message["id"] == 40 {
                return message["result"].clone();
            }
        }
    };
    let started = Instant::now();
    // The server may still be connecting.
    while lists("prompts/list")["prompts"] == json!([]) && started.elapsed().as_secs() < 30 {
        thread::sleep(Duration::from_millis(50));
    }
    let (prompts, resources) = (lists("prompts/list"), lists("resources/list"));
    assert_eq!(prompts["prompts"].as_array().map(Vec::len), Some(1), "{prompts}");
    assert_eq!(prompts["prompts"][0]["name"], "notes_review", "{prompts}");
    assert_eq!(resources["resources"].as_array().map(Vec::len), Some(1), "{resources}");
    assert_eq!(resources["resources"][0]["uri"], "note://1", "{resources}");
}
