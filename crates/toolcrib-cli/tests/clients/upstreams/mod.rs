//! Mock providers that were written elsewhere, with their faults: npm's `@copilotkit/aimock` and the Python package `llmock`,
//! which also judges its client. `toolcrib run` works against them in the three protocols.
//!
//! A driver starts the provider, runs an agent once for each case and checks the outcome. It gets one JSON text, as its
//! argument or in `LLMOCK_REQUEST`:
//!
//! | member | |
//! |---|---|
//! | `program` | the binary |
//! | `folder` | where it works. The driver writes `config.yml` there, and the tool `note` appends to `notes.txt` |
//! | `config` | the config, whose provider `upstream` lacks its `base_url` |
//! | `wire` | `chat`, `responses` or `anthropic` |
//! | `packages` | where the packages of npm are |

use std::fs;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::crib::BINARY;
use crate::installed::{self, Clients};
use crate::process::{Finished, Running};

/// A driver takes some 20 s, of which most are waits before requests that are sent again.
const LIMIT: Duration = Duration::from_secs(150);

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: note
    description: Append a line to the notes.
    input: {properties: {text: {type: string}}, required: [text]}
    run: {argv: [bash, -c, 'echo "$TEXT" >> notes.txt; echo noted'], env: {TEXT: "${args.text}"}}
"#;

/// Starts a driver with its request.
type Driver = fn(&Clients, &str) -> Running;

fn aimock(clients: &Clients, request: &str) -> Running {
    Running::start(&clients.node, |command| {
        command.arg(installed::source("upstreams/aimock.mjs")).arg(request);
    })
}

fn llmock(clients: &Clients, request: &str) -> Running {
    Running::start(&clients.python, |command| {
        command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--llmock-report"]);
        command.arg(installed::source("upstreams/llmock_faults.py"));
        command.env("LLMOCK_REQUEST", request).env("PYTHONDONTWRITEBYTECODE", "1");
    })
}

fn assert_survives(driver: Driver, wire: &str) {
    let Some(clients) = installed::clients() else { return };
    let folder = TempDir::new().unwrap();
    let tools = folder.path().join("tools.d");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("tools.yaml"), TOOLS).unwrap();
    let config = json!({
        "manifests": {"dirs": [&tools]},
        "state": {"dir": "state"},
        "workspace": {"root": "."},
        "providers": {"upstream": {"kind": wire, "limits": {"first_event": "20s", "idle": "2s"}}},
        "agents": {"default": {"model": "upstream/mock", "instruction": "Use the tools."}},
    });
    let request = json!({
        "program": BINARY,
        "folder": folder.path(),
        "config": config,
        "wire": wire,
        "packages": clients.packages,
    });
    let Finished { status, stdout, stderr } = driver(clients, &request.to_string()).finish(LIMIT);
    assert!(status.success(), "{wire}: {stdout}\n{stderr}");
    println!("{wire}:\n{stdout}");
}

#[test]
fn agents_survive_the_faults_of_aimock_over_chat_completions() {
    assert_survives(aimock, "chat");
}

#[test]
fn agents_survive_the_faults_of_aimock_over_responses() {
    assert_survives(aimock, "responses");
}

#[test]
fn agents_survive_the_faults_of_aimock_over_messages() {
    assert_survives(aimock, "anthropic");
}

#[test]
fn llmock_finds_agents_resilient_over_chat_completions() {
    assert_survives(llmock, "chat");
}

#[test]
fn llmock_finds_agents_resilient_over_responses() {
    assert_survives(llmock, "responses");
}

#[test]
fn llmock_finds_agents_resilient_over_messages() {
    assert_survives(llmock, "anthropic");
}
