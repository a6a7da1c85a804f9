//! Clients of OpenAI's protocols that were written elsewhere, each with a task of three turns for an agent behind a
//! scripted model: a tool of the server, a tool of the client, and an approval where the client can give it.
//!
//! A driver gets one JSON text as its last argument: `base_url`, `token`, and `folder`, where it may write. Its tool `look`
//! answers `a tree`. It prints one JSON text: `texts`, what the agent said in each turn.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply};

use crate::crib::{Crib, Server};
use crate::installed;
use crate::process::{CLIENT_LIMIT, Running};

/// The folder in which `.ci/long clients` has installed the clients that the gate does not try.
const MORE_CLIENTS: &str = "TOOLCRIB_MORE_CLIENTS";

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: say
    description: Say a text. Read-only.
    annotations: {read_only: true}
    input: {properties: {text: {type: string}}, required: [text]}
    run: {argv: [echo, "heard:", "${args.text}"]}
  - name: note
    description: Append a line to notes.txt.
    approval: always
    input: {properties: {text: {type: string}}, required: [text]}
    run: {argv: [bash, -c, 'echo "$TEXT" >> notes.txt; echo noted'], env: {TEXT: "${args.text}"}}
"#;

/// How a client does its task.
struct Task {
    /// The model's call of the client's tool.
    call: Reply,
    /// Whether the client is asked for an approval, and gives it.
    approves: bool,
}

impl Task {
    fn with_look(approves: bool) -> Self {
        Self { call: Reply::call("look", json!({"at": "x"})), approves }
    }

    /// What the model says, and the texts that the client has to show.
    fn script(self) -> (Vec<Reply>, [&'static str; 3]) {
        let third = if self.approves {
            Reply::call("note", json!({"text": "a tree"}))
        } else {
            Reply::call("say", json!({"text": "again"}))
        };
        let replies = vec![
            Reply::text("Hello, I am here."),
            Reply::call("say", json!({"text": "hi"})),
            self.call,
            Reply::text("There is a tree."),
            third,
            Reply::text("It is done."),
        ];
        (replies, ["Hello, I am here.", "There is a tree.", "It is done."])
    }
}

/// Does the task with a client, which `command` starts with the request.
async fn assert_does(program: &Path, task: Task, command: impl FnOnce(&mut Command, &Value)) {
    let approves = task.approves;
    let (replies, texts) = task.script();
    let model = ModelServer::for_several(Wire::Responses, replies).await;
    let crib = Crib::with_agent(&model.base_url());
    crib.add("tools.yaml", TOOLS);
    let server = crib.over_http();
    let Server::Http { url, token, .. } = &server else { unreachable!("it was asked for") };
    let base_url = url.replace("/mcp", "/v1");
    let request = json!({"base_url": base_url, "token": token, "folder": crib.file("client")});
    std::fs::create_dir(crib.file("client")).expect("a folder");

    let running = Running::start(program, |own| command(own, &request));
    let finished = tokio::task::spawn_blocking(|| running.finish(CLIENT_LIMIT)).await;
    let finished = finished.expect("it ends");
    let said = || format!("{}\n{}\n{:?}", finished.stdout, finished.stderr, model.violations());
    assert!(finished.status.success(), "{}", said());
    let seen: Value =
        serde_json::from_str(finished.stdout.trim()).unwrap_or_else(|_| panic!("{}", said()));
    assert_eq!(seen["texts"], json!(texts), "{}", said());
    let requests = model.requests();
    assert_eq!((requests.len(), model.violations()), (6, Vec::new()), "{}", said());
    // What each tool has answered is in the request that follows.
    for (request, output) in
        [(2, "heard: hi"), (3, "a tree"), (5, if approves { "noted" } else { "heard: again" })]
    {
        let sent = requests[request].body.to_string();
        assert!(sent.contains(output), "{output}: {sent}");
    }
    let noted = std::fs::read_to_string(crib.file("notes.txt")).unwrap_or_default();
    assert_eq!(noted, if approves { "a tree\n" } else { "" });
}

async fn assert_python_does(script: &str, approves: bool, mode: &str) {
    let Some(clients) = installed::clients() else { return };
    assert_script_does(&clients.python, script, approves, mode).await;
}

async fn assert_script_does(program: &Path, script: &str, approves: bool, mode: &str) {
    let script = installed::source("responses").join(script);
    assert_does(program, Task::with_look(approves), |command, request| {
        command.arg(script).arg(mode).arg(request.to_string()).env("PYTHONDONTWRITEBYTECODE", "1");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_python_package_does_a_task_with_whole_responses() {
    assert_python_does("openai_package.py", true, "whole").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_python_package_does_a_task_with_streams() {
    assert_python_does("openai_package.py", true, "stream").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_python_package_does_a_task_over_a_websocket() {
    assert_python_does("openai_package.py", true, "socket").await;
}

async fn assert_codex_does(websockets: bool) {
    let Some(clients) = installed::clients() else { return };
    let call = Reply::call("exec_command", json!({"cmd": "echo a tree"}));
    let script = installed::source("responses/codex.py");
    let codex = clients.packages.join("node_modules/@openai");
    assert_does(&clients.python, Task { call, approves: false }, |command, request| {
        command.arg(script).arg(codex).arg(websockets.to_string()).arg(request.to_string());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_does_a_task_over_http() {
    assert_codex_does(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_does_a_task_over_a_websocket() {
    assert_codex_does(true).await;
}

/// The clients that the gate does not try; `None`, with a message, without them.
fn more() -> Option<PathBuf> {
    let folder = std::env::var_os(MORE_CLIENTS).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {MORE_CLIENTS} names no folder: .ci/long clients installs them");
    }
    folder
}

async fn assert_more_do(script: &str, approves: bool, mode: &str) {
    let Some(folder) = more() else { return };
    let is_python = Path::new(script).extension().is_some_and(|kind| kind == "py");
    if is_python {
        return assert_script_does(&folder.join("venv/bin/python"), script, approves, mode).await;
    }
    let Some(clients) = installed::clients() else { return };
    // Packages are looked for beside the script.
    let copy = folder.join(script);
    std::fs::copy(installed::source("responses").join(script), &copy).expect("a copy");
    assert_does(&clients.node, Task::with_look(approves), |command, request| {
        command.arg(copy).arg(mode).arg(request.to_string());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_openai_agents() {
    assert_more_do("openai_agents.py", false, "responses").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_openai_agents_with_chat_completions() {
    assert_more_do("openai_agents.py", false, "chat").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_pydantic_ai() {
    assert_more_do("pydantic_ai_client.py", false, "responses").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_pydantic_ai_with_chat_completions() {
    assert_more_do("pydantic_ai_client.py", false, "chat").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_langchain() {
    assert_more_do("langchain_client.py", false, "responses").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_langchain_with_chat_completions() {
    assert_more_do("langchain_client.py", false, "chat").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_ai_sdk_with_open_responses() {
    assert_more_do("ai_sdk.mjs", false, "responses").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_ai_sdk_with_chat_completions() {
    assert_more_do("ai_sdk.mjs", false, "chat").await;
}
