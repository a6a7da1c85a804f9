//! Typical use by an agent host, with each client library that hosts are written with: it lists tools, calls them, is
//! refused, gets progress, cancels a call, and is notified of a tool that is saved meanwhile.
//!
//! A client gets one JSON text as its argument:
//!
//! | member | |
//! |---|---|
//! | `server` | `{"command", "args"}` or `{"url", "token"}` |
//! | `era` | `handshake` or `stateless` |
//! | `awaited` | a tool to wait for, since it is another server's |
//! | `calls` | calls to make, one after the other |
//! | `slow` | a call during which progress is to be heard of |
//! | `endless`, `begun` | a call to give up once a file is there |
//! | `late`, `file`, `text` | a tool that is there once a text is written to a file, which the server has to tell of |
//! | `clients`, `sdk` | where packages of npm are, and which of them it is |
//!
//! It prints `{"protocol_version", "tools", "replies", "slow", "progress", "cancelled", "tools_after", "after"}`, where
//! `after` is the answer to the first of `calls`, repeated at the end, and every reply is `{"result"}` or `{"error"}`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::conversation::{Revision, success};
use crate::crib::{BINARY, Crib, Server};
use crate::installed::{self, Clients};
use crate::process::{CLIENT_LIMIT, Running};

/// The scripted server of the MCP crate's tests, whose tool `slow` reports progress.
const UPSTREAM: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib-mcp/tests/mcp/upstream/server.py");

const TOOLS: &str = concat!(
    include_str!("../../greet.yaml"),
    r#"
  - name: fail
    description: Fail.
    run: {argv: [bash, -c, 'echo no such thing >&2; exit 3']}
  - name: nap
    description: Sleep.
    limits: {timeout: 10m}
    input: {properties: {mark: {type: string}}, required: [mark]}
    run: {argv: [bash, -c, 'touch "$MARK"; sleep 600'], env: {MARK: '${args.mark}'}}
"#
);

const LATE: &str = "
toolcrib: 1
tools:
  - {name: late, description: Come late., run: {argv: [echo, late]}}
";

/// A client library, and how it is started.
enum Library {
    Python(&'static str),
    TypeScript(&'static str),
}

#[test]
fn the_python_sdk_lives_with_the_server() {
    live(&Library::Python("python_sdk.py"), &Revision::ALL);
}

#[test]
fn fastmcp_lives_with_the_server() {
    live(&Library::Python("fastmcp_client.py"), &Revision::ALL);
}

#[test]
fn the_typescript_client_lives_with_the_server() {
    live(&Library::TypeScript("client"), &Revision::ALL);
}

#[test]
fn the_typescript_sdk_lives_with_the_server() {
    // It is older than the revision without a handshake.
    live(&Library::TypeScript("sdk"), &[Revision::Handshake]);
}

fn live(library: &Library, revisions: &[Revision]) {
    let Some(clients) = installed::clients() else { return };
    for &revision in revisions {
        for over_http in [false, true] {
            let crib = crib();
            let server = if over_http { crib.over_http() } else { crib.over_stdio() };
            let seen = converse(clients, library, &crib, &server, revision);
            assert_lived(&seen, revision);
            assert_given_up(&crib);
        }
    }
}

fn crib() -> Crib {
    let crib = Crib::empty();
    let script = crib.file("script.json");
    let slow =
        json!({"name": "slow", "description": "Take long.", "inputSchema": {"type": "object"}});
    fs::write(&script, json!({"tools": [slow]}).to_string()).unwrap();
    let folder = crib.file("");
    let upstream = format!(
        "toolcrib: 1\nupstream:\n  - name: notes\n    command: [python3, -I, -S, '{UPSTREAM}', \
         '{script}']\n    sandbox: {{read: ['{UPSTREAM}'], write: ['{folder}']}}\n"
    );
    crib.add("tools.yaml", &(upstream + TOOLS));
    crib
}

fn converse(
    clients: &Clients,
    library: &Library,
    crib: &Crib,
    server: &Server,
    revision: Revision,
) -> Value {
    let server = match server {
        Server::Stdio { arguments } => json!({"command": BINARY, "args": arguments}),
        Server::Http { url, token, .. } => json!({"url": url, "token": token}),
    };
    let era = match revision {
        Revision::Handshake => "handshake",
        Revision::Stateless => "stateless",
    };
    let begun = crib.file("begun");
    let mut request = json!({
        "server": server,
        "era": era,
        "awaited": "notes_slow",
        "calls": [
            {"name": "greet", "arguments": {"name": "Ada"}},
            {"name": "greet", "arguments": {"nmae": "Ada"}},
            {"name": "fail", "arguments": {}},
            {"name": "gret", "arguments": {}},
        ],
        "slow": {"name": "notes_slow", "arguments": {}},
        "endless": {"name": "nap", "arguments": {"mark": begun}},
        "begun": begun,
        "late": "late",
        "file": crib.file("tools.d/late.yaml"),
        "text": LATE,
    });
    let (program, script) = match library {
        Library::Python(script) => (&clients.python, *script),
        Library::TypeScript(sdk) => {
            request["sdk"] = (*sdk).into();
            request["clients"] = clients.packages.to_str().unwrap().into();
            (&clients.node, "typescript_sdk.cjs")
        }
    };
    let finished = Running::start(program, |command| {
        command.arg(installed::source("everyday").join(script)).arg(request.to_string());
    })
    .finish(CLIENT_LIMIT);
    let said = format!("{script}, {era}: {}\n{}", finished.stdout, finished.stderr);
    assert!(finished.status.success(), "{said}");
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn assert_lived(seen: &Value, revision: Revision) {
    assert_eq!(seen["protocol_version"], revision.name(), "{seen}");
    let has = |list: &str, name: &str| {
        seen[list].as_array().is_some_and(|names| names.iter().any(|own| own == name))
    };
    assert!(has("tools", "greet") && !has("tools", "late"), "{seen}");
    assert!(has("tools_after", "late"), "{seen}");

    let [greeted, mistaken, failed, unknown] = seen["replies"].as_array().unwrap().as_slice()
    else {
        panic!("{seen}")
    };
    for answer in [greeted, &seen["after"]] {
        assert_eq!(success(answer), "Hello, Ada!");
    }
    for (reply, part) in [(mistaken, "did you mean `name`?"), (failed, "no such thing")] {
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert!(reply["result"]["content"][0]["text"].as_str().unwrap().contains(part), "{reply}");
    }
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("greet"), "{unknown}");

    assert!(success(&seen["slow"]).contains(r#""name": "slow""#), "{seen}");
    let told: Vec<_> = seen["progress"].as_array().unwrap().iter().collect();
    let steps: Vec<_> = told
        .iter()
        .map(|one| (one["progress"].as_f64(), one["total"].as_f64(), one["message"].as_str()))
        .collect();
    let step = |at, name| (Some(at), Some(3.0), Some(name));
    assert_eq!(steps, [step(1.0, "step 1"), step(2.0, "step 2"), step(3.0, "step 3")]);
    assert_eq!(seen["cancelled"], true, "{seen}");
}

/// A call that a client cancels ends at the server too, and is recorded as cancelled.
fn assert_given_up(crib: &Crib) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let audit = fs::read_to_string(Path::new(&crib.file("audit.jsonl"))).unwrap();
        let records = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut naps = records.filter(|record| record["tool"] == "nap");
        if let Some(nap) = naps.next() {
            assert_eq!(nap["outcome"], "cancelled", "{nap}");
            assert!(naps.next().is_none(), "{audit}");
            return;
        }
        assert!(Instant::now() < deadline, "{audit}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
