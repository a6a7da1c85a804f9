//! Tools that find, describe and call others, for clients that never reload their list.

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::server::Server;

const GREET: &str = "toolcrib: 1
tools:
  - name: greet
    description: Say hello to somebody.
    annotations: {read_only: true}
    input: {properties: {name: {type: string}}, required: [name]}
    run: {argv: [printf, '--', 'Hello, %s', '${args.name}']}
";

fn ask(server: &mut Server, id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    server.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    loop {
        let answer = server.receive();
        if answer["id"] == id {
            return answer["result"].clone();
        }
    }
}

#[test]
fn a_client_with_an_old_list_finds_describes_and_calls_a_new_tool() {
    let crib = Crib::new(&[]);
    crib.config("state: {dir: state}\nbuiltins: {meta: true}\nmanifests: {watch: false}\n");
    let mut server = Server::mcp(&crib);
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let list = server.receive()["result"]["tools"].to_string();
    assert!(list.contains("tool_call") && !list.contains("greet"), "{list}");
    let query = json!({"query": "hello to somebody"});
    let none = ask(&mut server, 3, "tool_search", &query);
    assert!(!none["structuredContent"].to_string().contains("greet"), "{none}");

    crib.write("greet.yaml", GREET);
    assert_eq!(crib.run(&["reload"]).code, Some(0));
    let found = ask(&mut server, 4, "tool_search", &query);
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "greet", "{found}");
    let described = ask(&mut server, 5, "tool_describe", &json!({"name": "greet"}));
    assert_eq!(described["structuredContent"]["input_schema"]["required"], json!(["name"]));
    let wrong = ask(&mut server, 6, "tool_call", &json!({"name": "greet", "arguments": {}}));
    let text = wrong["content"][0]["text"].as_str().expect("a text");
    assert!(wrong["isError"] == true && text.contains("/name: required"), "{wrong}");
    let arguments = json!({"name": "greet", "arguments": {"name": "Ada"}});
    let called = ask(&mut server, 7, "tool_call", &arguments);
    assert_eq!(called["content"][0]["text"], "Hello, Ada", "{called}");
}

#[test]
fn disabled_features_are_absent() {
    let crib = Crib::new(&[("greet.yaml", GREET)]);
    let list = crib.run(&["list", "--all"]);
    assert!(list.stdout.contains("greet") && !list.stdout.contains("tool_search"), "{list:?}");
    let with = crib.run(&["call", "tool_search", "query=hello", "--set", "builtins.meta=true"]);
    assert!(with.code == Some(0) && with.stdout.contains("greet: Say hello"), "{with:?}");
}

#[test]
fn meta_tools_respect_the_toolset() {
    let crib = Crib::new(&[("greet.yaml", GREET)]);
    crib.config("builtins: {meta: true}\ntoolsets: {rest: {exclude: [{names: [greet]}]}}\n");
    let hidden = crib.run(&["call", "tool_call", "name=greet", "--toolset", "rest"]);
    assert_eq!(hidden.code, Some(1), "{hidden:?}");
    let told = format!("{}{}", hidden.stdout, hidden.stderr);
    assert!(told.contains("there is no tool of that name"), "{hidden:?}");
    let found = crib.run(&["call", "tool_search", "query=say hello", "--toolset", "rest"]);
    assert!(!found.stdout.contains("greet"), "{found:?}");
}
