//! Tools, agents and models for tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_agent::model::{Endpoint, EndpointTimeouts, ModelClient};
use toolcrib_agent::sub_agents::tools;
use toolcrib_agent::{Agent, AgentBuilder, JournalEntry, RetryPolicy, RunReport};
use toolcrib_core::suspension::{MemorySuspensions, SuspensionStore};
use toolcrib_core::{Executor, Registry, Scratch, TurnOptions};
use toolcrib_testkit::model_server::{ModelServer, Reply};
use toolcrib_tool::{Approval, ToolDefinition, ToolError};
use toolcrib_wire::model::{Item, Wire};

/// How often each tool has run.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) add: AtomicUsize,
    pub(crate) write: AtomicUsize,
    pub(crate) deploy: AtomicUsize,
}

impl Counts {
    pub(crate) fn all(&self) -> [usize; 3] {
        [&self.add, &self.write, &self.deploy].map(|count| count.load(Ordering::SeqCst))
    }
}

/// An executor with the tools `add` (read-only), `write` (neither read-only nor idempotent), `deploy` (needs
/// approval), `slow` (never ends), `finish` (ends the run), and those for
/// sub-agents.
pub(crate) fn executor(counts: &Arc<Counts>) -> Executor {
    executor_with(counts, Arc::new(MemorySuspensions::new()))
}

/// The same with another store of suspensions.
pub(crate) fn executor_with(
    counts: &Arc<Counts>,
    suspensions: Arc<dyn SuspensionStore>,
) -> Executor {
    let define = |name: &str| {
        let builder = ToolDefinition::builder(name).description("A tool of a test.");
        builder.input_schema(json!({"type": "object", "additionalProperties": true}))
    };
    let of = |counts: &Arc<Counts>| Arc::clone(counts);
    let [adds, writes, deploys] = [of(counts), of(counts), of(counts)];
    let registry = tools::entries().unwrap().into_iter().fold(Registry::scratch(), Scratch::entry);
    let registry = registry
        .tool_as(define("add").read_only(true).build().unwrap(), move |arguments: Value, _| {
            adds.add.fetch_add(1, Ordering::SeqCst);
            async move {
                let number = |key: &str| arguments[key].as_i64().ok_or(key.to_owned());
                let sum = |a: i64, b: i64| (a + b).to_string();
                match (number("a"), number("b")) {
                    (Ok(a), Ok(b)) => Ok(sum(a, b)),
                    (Err(key), _) | (_, Err(key)) => {
                        Err(ToolError::invalid_args(format!("`{key}` has to be a number")))
                    }
                }
            }
        })
        .tool_as(define("write").build().unwrap(), move |_: Value, _| {
            let count = writes.write.fetch_add(1, Ordering::SeqCst) + 1;
            async move { format!("written, for the {count}. time") }
        })
        .tool_as(
            define("deploy").approval(Approval::Always).build().unwrap(),
            move |_: Value, _| {
                deploys.deploy.fetch_add(1, Ordering::SeqCst);
                async { "deployed" }
            },
        )
        .tool_as(define("slow").build().unwrap(), |_: Value, _| async {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            "done"
        })
        .tool_as(
            define("finish").terminal(true).build().unwrap(),
            |arguments: Value, _| async move {
                arguments["result"].as_str().unwrap_or("nothing").to_owned()
            },
        )
        .build()
        .unwrap();
    Executor::builder(registry).suspensions(suspensions).build()
}

/// Retries that do not slow tests down.
pub(crate) fn quick_retries() -> RetryPolicy {
    let mut retry = RetryPolicy::default();
    retry.first_wait = Duration::from_millis(1);
    retry
}

pub(crate) fn builder(counts: &Arc<Counts>, model: Arc<dyn ModelClient>) -> AgentBuilder {
    Agent::builder(executor(counts), model)
        .instructions("Use the tools.")
        .turn_options(TurnOptions::default().may_approve(true))
        .retry(quick_retries())
}

/// The model behind a server.
pub(crate) fn endpoint(server: &ModelServer) -> Endpoint {
    let mut timeouts = EndpointTimeouts::default();
    (timeouts.first_event, timeouts.idle) = (Duration::from_secs(10), Duration::from_millis(300));
    Endpoint::new(server.wire(), &server.base_url(), "scripted")
        .allow("127.0.0.0/8".parse().unwrap())
        .timeouts(timeouts)
}

/// A server with replies, and an agent that uses it.
pub(crate) async fn served(
    wire: Wire,
    counts: &Arc<Counts>,
    replies: impl IntoIterator<Item = Reply>,
) -> (ModelServer, AgentBuilder) {
    let server = ModelServer::start(wire, replies).await;
    let builder = builder(counts, Arc::new(endpoint(&server)));
    (server, builder)
}

/// The conversation as lines.
pub(crate) fn transcript(report: &RunReport) -> Vec<String> {
    use toolcrib_wire::model::View;
    let line = |item: &Item| match item {
        Item::Input(input) => format!("{:?}: {}", input.role, input.content[0].as_text()),
        Item::Result(result) => format!("{}: {}", result.call_id(), result.text()),
        Item::Model(item) => match item.view() {
            View::Message { text, .. } => format!("model: {text}"),
            View::Reasoning { text } => format!("reasoning: {text}"),
            View::Call(call) => format!("{} {}{}", call.id, call.name, call.arguments),
            other => format!("{other:?}"),
        },
        _ => String::new(),
    };
    report.run().conversation().iter().flatten().map(line).collect()
}

/// Records the names of entries and what streams.
#[derive(Debug, Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<String>>);

impl Seen {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The kind of an entry, as it is stored.
pub(crate) fn kind(entry: &JournalEntry) -> String {
    match serde_json::to_value(entry).unwrap() {
        Value::String(kind) => kind,
        Value::Object(entry) => entry.keys().next().unwrap().clone(),
        other => panic!("{other}"),
    }
}
