//! Questions of tools on the command line: asked on a terminal, answered by a flag, refused without
//! either.

use std::io::{Read as _, Write as _};
use std::process::Stdio;

use serde_json::json;

use crate::harness::crib::Crib;

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: book
    description: Book a room.
    run: {worker: [python3, worker.py], env: {KEY: "${secret.key}"}}
"#;

/// Asks for a town and a number of days, then whether to pay.
const WORKER: &str = r#"
import json, os, sys

town = {"type": "string", "enum": ["Bonn", "Ulm"], "description": "Where it is."}
days = {"type": "integer", "minimum": 1, "default": 2}
first = {"type": "object", "properties": {"town": town, "days": days}, "required": ["town", "days"]}
second = {"type": "object", "properties": {"pay": {"type": "boolean"}}, "required": ["pay"]}

for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:
        continue
    answer = call.get("answer", {})
    if "pay" in answer:
        said = {"output": f"{call['remembered']} paid: {answer['pay']}"}
    elif "town" in answer:
        remembered = f"{answer['days']} days in {answer['town']}"
        said = {"ask": {"message": "Pay now?", "schema": second}, "remember": remembered}
    else:
        said = {"ask": {"message": "Which \x1b[2Jroom? Not " + os.environ["KEY"], "schema": first}}
    print(json.dumps({"id": call["id"], **said}), flush=True)
"#;

fn crib() -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS), ("worker.py", WORKER)]);
    let key = crib.data().join("key");
    std::fs::write(&key, "hunter2-secret").expect("a secret");
    crib.config(&format!("secrets: {{key: {{file: '{}'}}}}\n", key.display()));
    crib
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_each_field_is_asked_for_and_a_wrong_answer_again() {
    // No days are the default; the first town is not in the list, and the second is none.
    let run = crib().on_a_terminal("call book", "0\n\nRome\n\nUlm\nyes\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    for part in [
        "question Which \\u{1b}[2Jroom? Not [masked]",
        "days (integer, required, default 2)",
        "at least 1",
        "town (string, required)  Where it is.",
        "one of \"Bonn\", \"Ulm\"",
        "- /days: expected at least 1, got 0",
        "- /town: expected one of \"Bonn\", \"Ulm\", got \"Rome\"",
        "days [2]: ",
        "2 days in Ulm paid: True",
        "question Pay now?",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    assert!(!run.stdout.contains("hunter2"), "{run:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_end_of_input_and_ctrl_c_decline_a_question() {
    for typed in ["\u{4}", "\u{3}"] {
        let crib = crib();
        let mut child = super::live_output::at_a_terminal(&crib, "book", Stdio::piped());
        let mut reader = child.stdout.take().expect("it is piped");
        let mut seen = Vec::new();
        // Earlier, Ctrl-C would interrupt the call.
        while !String::from_utf8_lossy(&seen).contains("days [2]: ") {
            let mut part = [0; 1024];
            let length = reader.read(&mut part).expect("it writes");
            assert!(length > 0, "it ended: {}", String::from_utf8_lossy(&seen));
            seen.extend(&part[..length]);
        }
        child.stdin.as_mut().expect("it is piped").write_all(typed.as_bytes()).expect("it reads");
        reader.read_to_end(&mut seen).expect("it ends");
        let seen = String::from_utf8_lossy(&seen);
        assert_eq!(child.wait().expect("it ends").code(), Some(1), "{typed:?}: {seen}");
        assert!(seen.contains("Error executing book: the user "), "{typed:?}: {seen}");
    }
}

/// Asks for a password of at least eight characters, and says whether it got the right one.
const LOGIN: &str = r#"
import json, sys

password = {"type": "string", "format": "password", "minLength": 8}
schema = {"type": "object", "properties": {"user": {"type": "string"}, "password": password},
          "required": ["user", "password"]}
for line in sys.stdin:
    call = json.loads(line)
    answer = call.get("answer")
    if answer:
        said = {"output": "right" if answer["password"] == "typed-in-8" else "wrong"}
    else:
        said = {"ask": {"message": "Who are you?", "schema": schema}}
    print(json.dumps({"id": call["id"], **said}), flush=True)
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_password_is_not_shown_while_it_is_typed_nor_when_it_is_refused() {
    let crib = Crib::new(&[("tools.yaml", TOOLS), ("worker.py", LOGIN)]);
    crib.config("secrets: {key: {env: KEY}}\n");
    let mut child = super::live_output::at_a_terminal(&crib, "book", Stdio::piped());
    let mut reader = child.stdout.take().expect("it is piped");
    let mut seen = Vec::new();
    let order = [
        ("password: ", "short-7\n"),
        ("it is not shown", ""),
        ("password: ", "typed-in-8\n"),
        ("user: ", "ada\n"),
    ];
    let mut from = 0;
    for (prompt, typed) in order {
        loop {
            let text = String::from_utf8_lossy(&seen[from..]).into_owned();
            if let Some(at) = text.find(prompt) {
                from += at + prompt.len();
                break;
            }
            let mut part = [0; 1024];
            let length = reader.read(&mut part).expect("it writes");
            assert!(length > 0, "it ended before {prompt}: {}", String::from_utf8_lossy(&seen));
            seen.extend(&part[..length]);
        }
        child.stdin.as_mut().expect("it is piped").write_all(typed.as_bytes()).expect("it reads");
    }
    reader.read_to_end(&mut seen).expect("it ends");
    let seen = String::from_utf8_lossy(&seen);
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{seen}");
    assert!(seen.contains("ada") && seen.contains("right"), "{seen}");
    for secret in ["short-7", "typed-in-8"] {
        assert!(!seen.contains(secret), "{seen}");
    }
}

#[test]
fn without_a_terminal_the_call_says_what_it_needs_and_how_to_give_it() {
    let run = crib().run(&["call", "book"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    for part in
        ["it needs an answer: Which", "[masked]", "--answer JSON", "\"enum\":[\"Bonn\",\"Ulm\"]"]
    {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
    let json = crib().run(&["call", "book", "--json"]).json();
    assert_eq!(json["error"]["kind"], "requires_approval", "{json}");
}

#[test]
fn answers_on_the_command_line_are_used_in_their_order_and_checked() {
    let answered = |answers: &[&str]| {
        let mut line = vec!["call", "book"];
        for answer in answers {
            line.extend(["--answer", answer]);
        }
        crib().run(&line)
    };
    let run = answered(&[r#"{"town": "Bonn", "days": 2}"#, r#"{"pay": false}"#]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "2 days in Bonn paid: False\n"),
        "{run:?}"
    );
    let wrong = answered(&[r#"{"town": "Rome", "days": 2}"#]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("the answer does not fit"), "{wrong:?}");
    let too_few = answered(&[r#"{"town": "Bonn", "days": 2}"#]);
    assert!(too_few.stderr.contains("it needs an answer: Pay now?"), "{too_few:?}");
    assert_eq!(answered(&["{"]).code, Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_question_of_another_mcp_server_is_asked_on_the_terminal_too() {
    let crib = crate::servers::upstreams::crib("");
    let tool = json!({"name": "ask", "description": "Do it.", "inputSchema": {"type": "object"}});
    std::fs::write(crib.data().join("script.json"), json!({"tools": [tool]}).to_string())
        .expect("a script");
    let run = crib.on_a_terminal("call notes_ask", "Ulm\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("question The MCP server `notes` asks: Which town?"), "{run:?}");
    assert!(run.stdout.contains("accept") && run.stdout.contains("\"Ulm\""), "{run:?}");
    // The server is told that it was declined, and answers.
    let run = crib.on_a_terminal("call notes_ask", "\u{4}");
    assert_eq!(run.code, Some(1), "{run:?}");
}
