//! The Python MCP SDK.

use serde_json::{Value, json};

use crate::conversation::{Call, Conversation, Revision, assert_served, questions};
use crate::crib::{BINARY, Crib, Server};
use crate::installed::{self, Clients};
use crate::process::{CLIENT_LIMIT, Running};

#[test]
fn the_python_sdk_is_served_over_stdio() {
    let Some(clients) = installed::clients() else { return };
    let crib = Crib::shipped();
    for revision in Revision::ALL {
        let (seen, _) = converse(clients, &crib.over_stdio(), revision, &questions());
        assert_names_a_near_tool(assert_served(&seen, revision));
    }
}

#[test]
fn the_python_sdk_is_served_over_http() {
    let Some(clients) = installed::clients() else { return };
    let crib = Crib::shipped();
    let server = crib.over_http();
    for revision in Revision::ALL {
        let (seen, _) = converse(clients, &server, revision, &questions());
        assert_names_a_near_tool(assert_served(&seen, revision));
    }
}

#[test]
fn a_wrong_token_is_refused_before_anything_is_said() {
    let Some(clients) = installed::clients() else { return };
    let mut server = Crib::shipped().over_http();
    let Server::Http { token, .. } = &mut server else { unreachable!("it was asked for") };
    // As long as the correct one, with a different last character.
    let last = if token.ends_with('0') { '1' } else { '0' };
    token.pop();
    token.push(last);

    for revision in Revision::ALL {
        let (seen, _) = run(clients, &server, revision, &[]);
        assert!(seen["refused"].is_string() && seen.get("tools").is_none(), "{seen}");
        let statuses = seen["statuses"].as_array().unwrap();
        assert!(!statuses.is_empty() && statuses.iter().all(|status| status == 401), "{seen}");
    }
}

/// Has one conversation; also returns what the client, and over stdio the server, wrote to standard
/// error.
pub(crate) fn converse(
    clients: &Clients,
    server: &Server,
    revision: Revision,
    calls: &[Call],
) -> (Conversation, String) {
    let (mut seen, stderr) = run(clients, server, revision, calls);
    let mut list = |name: &str| match seen[name].take() {
        Value::Array(items) => items,
        _ => panic!("no {name} in {seen}\n{stderr}"),
    };
    let (tools, replies) = (list("tools"), list("replies"));
    let protocol_version = seen["protocol_version"].as_str().unwrap().to_owned();
    (Conversation { protocol_version, tools, replies }, stderr)
}

/// Runs `python_sdk.py`, which says what it is given and what it prints.
fn run(clients: &Clients, server: &Server, revision: Revision, calls: &[Call]) -> (Value, String) {
    let server = match server {
        Server::Stdio { arguments } => json!({"command": BINARY, "args": arguments}),
        Server::Http { url, token, .. } => json!({"url": url, "token": token}),
    };
    let mode = match revision {
        Revision::Handshake => "legacy",
        Revision::Stateless => "auto",
    };
    let calls: Vec<Value> = calls
        .iter()
        .map(|Call { name, arguments }| json!({"name": name, "arguments": arguments}))
        .collect();
    let request = json!({"server": server, "mode": mode, "calls": calls});

    let finished = Running::start(&clients.python, |command| {
        command.arg(installed::source("python_sdk.py")).arg(request.to_string());
    })
    .finish(CLIENT_LIMIT);
    assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
    (serde_json::from_str(&finished.stdout).unwrap(), finished.stderr)
}

fn assert_names_a_near_tool(unknown: &Value) {
    let error = &unknown["error"];
    assert_eq!(error["code"], -32602, "{unknown}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("calculatr") && message.contains("calculator"), "{message}");
}
