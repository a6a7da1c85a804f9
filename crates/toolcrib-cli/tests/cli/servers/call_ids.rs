//! Ids of calls that a client leaves out: no two calls have the same, whatever makes them and after a restart.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::Http;

const TOKEN: &str = "a-token-of-the-test-0123456789";

#[test]
fn calls_without_an_id_of_their_client_have_different_ids_at_all_servers_and_after_restarts() {
    let crib = Crib::new(&[]);
    crib.config(&format!(
        "state: {{dir: state}}\nserver: {{token: {TOKEN}}}\naudit: {{file: audit.jsonl}}\n"
    ));
    let mut made = 0;
    for _ in 0..2 {
        let servers = [Http::start(&crib, TOKEN), Http::start(&crib, TOKEN)];
        let arguments = json!({"expression": "1+1"});
        let call = json!({"tool": "calculator", "arguments": arguments});
        for server in &servers {
            for (line, body, calls) in [
                ("POST /v1/tools/calculator/call", json!({"arguments": arguments}), 1),
                ("POST /v1/batch", json!({"calls": [call, call]}), 2),
                ("POST /v1/runs", json!({"calls": [call, call]}), 2),
            ] {
                for _ in 0..2 {
                    let reply = server.ask(line, Some(&body));
                    assert!(matches!(reply.status, 200 | 201), "{line}: {}", reply.body);
                    made += calls;
                }
            }
        }
        for mut server in servers {
            server.server.signal("TERM");
            assert_eq!(server.server.ended(), Some(0));
        }
        let shown = crib.run(&["call", "calculator", "expression=1+1", "--json"]).json();
        assert!(shown["call_id"].as_str().is_some_and(|id| id.starts_with("call_")), "{shown}");
        made += 1;
    }
    let text = fs::read_to_string(crib.path().join("audit.jsonl")).expect("it is written");
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ids: BTreeSet<_> =
        records.iter().map(|record| record["call_id"].as_str().expect("an id")).collect();
    assert_eq!((records.len(), ids.len()), (made, made), "{text}");
}
