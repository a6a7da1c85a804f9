//! The MCP Inspector's command line.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::conversation::{Call, Conversation, Revision, assert_served, questions};
use crate::crib::{BINARY, Crib, Server};
use crate::installed::{self, Clients};
use crate::process::{CLIENT_LIMIT, Running};

#[test]
fn the_inspector_is_served_over_stdio() {
    let Some(clients) = installed::clients() else { return };
    let crib = Crib::shipped();
    for revision in Revision::ALL {
        let seen = converse(clients, &crib.over_stdio(), revision, &questions());
        assert_not_found_in_the_list(assert_served(&seen, revision));
    }
}

#[test]
fn the_inspector_is_served_over_http() {
    let Some(clients) = installed::clients() else { return };
    let crib = Crib::shipped();
    let server = crib.over_http();
    for revision in Revision::ALL {
        let seen = converse(clients, &server, revision, &questions());
        assert_not_found_in_the_list(assert_served(&seen, revision));
    }
}

/// Runs the Inspector once per request, because a run has one method.
fn converse(
    clients: &Clients,
    server: &Server,
    revision: Revision,
    calls: &[Call],
) -> Conversation {
    let inspector = Inspector::new(clients, server, revision);
    let connected = inspector.run(&["--method", "initialize"]);
    // `--strict` turns a schema that some client cannot read into a failure.
    let listed = inspector.run(&["--method", "tools/list", "--strict"]);
    let replies = calls.iter().map(|Call { name, arguments }| {
        let arguments = arguments.to_string();
        inspector.run(&[
            "--method",
            "tools/call",
            "--tool-name",
            name,
            "--tool-args-json",
            &arguments,
        ])
    });
    let member = |reply: &Value, name: &str| match reply["result"].get(name) {
        Some(value) => value.clone(),
        None => panic!("no {name} in {reply}"),
    };
    Conversation {
        protocol_version: member(&connected, "protocolVersion").as_str().unwrap().to_owned(),
        tools: member(&listed, "tools").as_array().unwrap().clone(),
        replies: replies.collect(),
    }
}

/// The Inspector, configured for one server.
struct Inspector<'c> {
    clients: &'c Clients,
    /// Replaces the home folder, so that no user's settings are read or written.
    home: TempDir,
    era: &'static str,
}

impl<'c> Inspector<'c> {
    fn new(clients: &'c Clients, server: &Server, revision: Revision) -> Self {
        let home = TempDir::new().unwrap();
        let server = match server {
            Server::Stdio { arguments } => {
                json!({"type": "stdio", "command": BINARY, "args": arguments})
            }
            Server::Http { url, token, .. } => {
                let headers = json!({"Authorization": format!("Bearer {token}")});
                json!({"type": "streamable-http", "url": url, "headers": headers})
            }
        };
        let servers = json!({"mcpServers": {"toolcrib": server}});
        fs::write(home.path().join("servers.json"), servers.to_string()).unwrap();
        let era = match revision {
            Revision::Handshake => "legacy",
            Revision::Stateless => "modern",
        };
        Self { clients, home, era }
    }

    /// `{"result": …}` as printed; `{"error": …}` where the Inspector has no result.
    fn run(&self, arguments: &[&str]) -> Value {
        let finished = Running::start(&self.clients.node, |command| {
            command
                .arg(&self.clients.inspector)
                .args(["--cli", "--format", "json", "--protocol-era", self.era])
                .arg("--config")
                .arg(self.home.path().join("servers.json"))
                .args(["--server", "toolcrib"])
                .args(arguments)
                .env("HOME", self.home.path())
                .env("MCP_INSPECTOR_SECRET_STORE", "memory");
        })
        .finish(CLIENT_LIMIT);
        let said = format!("{arguments:?}: {}{}", finished.stdout, finished.stderr);

        // A result that is an error has its own exit code; the error object repeats it.
        if let Ok(result) = serde_json::from_str::<Value>(&finished.stdout) {
            let failed = result["result"]["isError"] == true;
            assert_eq!(finished.status.code(), Some(if failed { TOOL_ERROR } else { 0 }), "{said}");
            return result;
        }
        let error = finished.stderr.lines().find_map(|line| {
            serde_json::from_str(line).ok().filter(|line: &Value| line.get("error").is_some())
        });
        error.unwrap_or_else(|| panic!("{said}"))
    }
}

/// The Inspector's exit code for a tool that failed.
const TOOL_ERROR: i32 = 5;

/// The Inspector looks up a name in the list and does not ask the server for a missing one.
fn assert_not_found_in_the_list(unknown: &Value) {
    assert_eq!(unknown["error"]["code"], "tool_not_found", "{unknown}");
}
