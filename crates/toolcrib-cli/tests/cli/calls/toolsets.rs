//! One toolset determines what is listed, called and served.

use serde_json::{Value, json};

use crate::harness::crib::{Crib, run};

const CONFIG: &str = "toolsets:
  sums: {include: [{names: [calculator]}]}
  rest: {exclude: [{names: [calculator]}]}
";

fn crib() -> Crib {
    let crib = Crib::new(&[]);
    crib.config(CONFIG);
    crib
}

#[test]
fn a_toolset_is_listed_alone() {
    let crib = crib();
    let list = crib.run(&["list", "--toolset", "sums"]);
    assert_eq!(list.code, Some(0));
    let names: Vec<_> = list.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["NAME", "calculator", "read_output"]);
    assert!(!crib.run(&["list", "--toolset", "rest"]).stdout.contains("calculator"));
}

#[test]
fn tools_outside_the_toolset_cannot_be_called() {
    let crib = crib();
    let good = crib.run(&["call", "calculator", "expression=2+2", "--toolset", "sums"]);
    assert_eq!((good.code, good.stdout.as_str()), (Some(0), "4\n"));
    let run = crib.call("calculator", "{}", &["--toolset", "rest"]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &json!("not_found")));
}

#[test]
fn an_unknown_toolset_names_those_there_are_and_nothing_starts() {
    let crib = crib();
    for arguments in [
        &["list", "--toolset", "sum"][..],
        &["call", "calculator", "expression=1", "--toolset", "sum"][..],
        &["mcp", "--toolset", "sum"][..],
        &["serve", "--listen", "127.0.0.1:0", "--toolset", "sum"][..],
    ] {
        let run = crib.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        // A server reports at its start that its config declares no such toolset.
        let refusal = "error: there is no toolset `sum`; there are `rest`, `sums`\n";
        assert!(run.stderr.ends_with(refusal), "{run:?}");
    }
}

#[test]
fn a_client_of_a_toolset_sees_and_calls_nothing_else() {
    let crib = crib();
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": "text_process", "arguments": {}}}),
    ];
    let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
    let input = lines.join("\n") + "\n";
    let run = run(crib.command(&["mcp", "--toolset", "sums"]).write_stdin(input));
    assert_eq!(run.code, Some(0), "{run:?}");
    let answer = |id: u64| {
        let answers = run.stdout.lines().map(serde_json::from_str::<Value>);
        let mut answers = answers.map(|answer| answer.expect("JSON"));
        answers.find(|answer| answer["id"] == id).expect("an answer")
    };
    let tools = answer(2)["result"]["tools"].as_array().expect("tools").clone();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["calculator", "read_output"]);
    assert_eq!(answer(3)["error"]["code"], -32602, "{run:?}");
}
