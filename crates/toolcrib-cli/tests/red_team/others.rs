//! The property of another client: its runs, its long outputs, its answers under a key.

use serde_json::{Value, json};

use crate::dimensions::{Goal, Row};
use crate::folder::Words;
use crate::surfaces::http::Client;
use crate::world::World;

/// The note represents data that only the victim may see: the oracle knows it.
fn private() -> &'static str {
    &Words::get().note
}

/// Lets a victim work, then tries to get its results. Returns only what the attacker received.
pub(crate) fn take(world: &mut World, row: &Row) -> String {
    let victim = world.client(Some(Words::get().token("victim")));
    let attacker = world.attacker(row.right);
    match row.goal {
        Goal::OthersRun => runs(&victim, &attacker),
        Goal::OthersKey => keys(&victim, &attacker),
        _ => outputs(world, row, &victim),
    }
}

fn post(client: &Client, path: &str, headers: &[(&str, &str)], body: &Value) -> String {
    client
        .send("POST", path, headers, &body.to_string())
        .map_or_else(|error| error, crate::surfaces::http::Answer::text)
}

fn get(client: &Client, path: &str) -> String {
    client
        .send("GET", path, &[], "")
        .map_or_else(|error| error, crate::surfaces::http::Answer::text)
}

fn runs(victim: &Client, attacker: &Client) -> String {
    let calls = json!({"calls": [
        {"tool": "text_process", "call_id": "a", "arguments": {"text": private(), "operation": "lowercase"}},
        {"tool": "text_process", "call_id": "b", "arguments": {"text": private(), "operation": "trim"}},
        {"tool": "red_long", "call_id": "c", "arguments": {"word": private()}},
        {"tool": "red_letter", "call_id": "d", "arguments": {"to": private()}},
    ]});
    let made: Value =
        serde_json::from_str(&post(victim, "/v1/runs", &[], &calls)).unwrap_or_default();
    let Some(run) = made["id"].as_str() else { return String::new() };
    let waiting = made["waiting"][0]["id"].as_str().unwrap_or("none");
    let mut heard = get(attacker, "/v1/runs") + &get(attacker, &format!("/v1/runs/{run}"));
    for (way, body) in [
        ("resolve", json!({"id": waiting, "decision": "approve"})),
        ("submit_tool_outputs", json!({"tool_outputs": [{"tool_call_id": "d", "output": "x"}]})),
        ("cancel", json!({})),
    ] {
        heard += &post(attacker, &format!("/v1/runs/{run}/{way}"), &[], &body);
    }
    heard += &get(attacker, "/v1/approvals");
    heard += &get(attacker, &format!("/v1/approvals/{waiting}"));
    heard += &get(attacker, "/v1/audit?limit=50");
    heard
}

/// A key of the victim, sent by somebody else: an answer of the victim contains its text.
fn keys(victim: &Client, attacker: &Client) -> String {
    let key = ("Idempotency-Key", "order-1");
    let path = "/v1/tools/red_random/call";
    let body = json!({"arguments": {}});
    let first: Value = serde_json::from_str(&post(victim, path, &[key], &body)).unwrap_or_default();
    let again = post(attacker, path, &[key], &body);
    let first = first["output"].as_str().unwrap_or_default().trim();
    if first.is_empty() {
        "the victim's call failed".to_owned()
    } else if again.contains(first) {
        format!("the victim's answer: {}", private())
    } else {
        again
    }
}

/// A long output of the victim, by the handle in its answer.
fn outputs(world: &mut World, row: &Row, victim: &Client) -> String {
    let body = json!({"arguments": {"word": private()}});
    let answer = post(victim, "/v1/tools/red_long/call", &[], &body);
    let mut heard = String::new();
    for handle in handles(&answer) {
        heard += &world.call(row, "read_output", &json!({"handle": handle}));
        heard += &world.call(row, "read_output", &json!({"handle": handle, "offset": 1000}));
        let address = format!("toolcrib://output/{handle}");
        heard += &world.request(row, "resources/read", &json!({"uri": address}));
        heard += &get(&world.attacker(row.right), &format!("/v1/outputs/{handle}"));
    }
    heard
}

/// Texts in an answer that look like a handle.
pub(crate) fn handles(answer: &str) -> Vec<String> {
    let mut handles: Vec<String> = answer
        .split(|letter: char| !letter.is_ascii_hexdigit())
        .filter(|word| word.len() >= 32)
        .map(str::to_owned)
        .collect();
    handles.sort();
    handles.dedup();
    handles
}
