//! A listener with a few tools behind it.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolcrib_core::audit::{AuditRecord, AuditSink, AuditTrail};
use toolcrib_core::bounds::Bounds;
use toolcrib_core::events::EventBus;
use toolcrib_core::run::{Journal, MemoryRuns};
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Executor, Registration, Registry, RegistryBuilder, ToolFilter, Toolset};
use toolcrib_http::reports::{Reloaded, ServerStatus};
use toolcrib_http::{
    AnswerLimits, AnswerStore, Backend, ClientConfig, HttpError, HttpServer, MemoryAnswers,
    ServerConfig, ServerSettings, Token,
};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{
    Approval, CallContext, Layer, Source, StatusUpdate, Tool, ToolDefinition,
    ToolDefinitionBuilder, ToolEntry, ToolError, tool_fn,
};

pub(crate) const TOKEN: &str = "a-token-for-tests-only";

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) settings: ServerSettings,
    pub(crate) executor: Executor,
    /// The calls of the tool `wait`.
    pub(crate) waits: Arc<Waits>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), HttpError>>,
}

/// Reports calls that would never end by themselves.
#[derive(Default)]
pub(crate) struct Waits {
    pub(crate) begun: Notify,
    pub(crate) dropped: Notify,
}

/// One such call, as long as it lives.
struct Wait(Arc<Waits>);

impl Wait {
    fn begin(waits: &Arc<Waits>) -> Self {
        waits.begun.notify_one();
        Self(Arc::clone(waits))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

impl Running {
    /// Requests a shutdown; returns the serving task.
    pub(crate) fn stop(self) -> JoinHandle<Result<(), HttpError>> {
        self.stop.send(()).unwrap();
        self.serving
    }

    /// Shuts down and waits for the end.
    pub(crate) async fn end(self) {
        let serving = self.stop();
        timeout(Duration::from_secs(15), serving).await.expect("an end in time").unwrap().unwrap();
    }
}

/// Settings for a free port and the tests' token.
pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)).into(),
        token: Some(Token::new(TOKEN).unwrap()),
        ..ServerConfig::default()
    }
}

/// The maximum number of keys of one client.
pub(crate) const KEYS: usize = 40;
/// The maximum number of runs and waiting calls of one client.
pub(crate) const RUNS: usize = 30;

/// The backend: an executor with in-memory stores.
pub(crate) struct Crib {
    executor: Executor,
    runs: Arc<MemoryRuns>,
    answers: Arc<MemoryAnswers>,
    audit: Arc<Audit>,
}

/// An audit log in memory.
#[derive(Default)]
struct Audit(Mutex<Vec<Value>>);

impl AuditSink for Audit {
    fn record(&self, record: &AuditRecord) {
        self.0.lock().unwrap().push(serde_json::to_value(record).unwrap());
    }
}

impl Backend for Crib {
    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn toolset(&self, name: &str) -> Option<Toolset> {
        let names = match name {
            "echoes" => "echo*",
            "greetings" => "greet*",
            _ => return None,
        };
        Some(Toolset::new().include(ToolFilter::new().name(names)))
    }

    fn runs(&self) -> Option<Arc<dyn Journal>> {
        Some(Arc::clone(&self.runs) as _)
    }

    fn answers(&self) -> Option<Arc<dyn AnswerStore>> {
        Some(Arc::clone(&self.answers) as _)
    }

    fn status(&self) -> ServerStatus {
        ServerStatus { reserved: vec!["a".to_owned()], ..ServerStatus::default() }
    }

    fn reload(&self) -> Result<Reloaded, String> {
        Err("nothing was changed: a.yaml is broken".to_owned())
    }

    fn audit_tail(&self, records: usize) -> Option<io::Result<Vec<Value>>> {
        let all = self.audit.0.lock().unwrap();
        Some(Ok(all[all.len().saturating_sub(records)..].to_vec()))
    }
}

/// A crib with the tools of these tests, and MCP in front of it.
pub(crate) fn served(waits: Arc<Waits>) -> (Crib, McpServer) {
    served_with(waits, [])
}

/// The same with more tools.
fn served_with(waits: Arc<Waits>, more: impl IntoIterator<Item = ToolEntry>) -> (Crib, McpServer) {
    let mut registry = RegistryBuilder::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = tool_fn(move |_: Value, _| {
        let number = runs.fetch_add(1, Ordering::SeqCst) + 1;
        async move { number.to_string() }
    });
    let wait = tool_fn(move |_: Value, _| {
        let wait = Wait::begin(&waits);
        async move {
            let _wait = wait;
            pending::<String>().await
        }
    });
    let speak = tool_fn(|_: Value, cx: CallContext| async move {
        cx.status(StatusUpdate::doing().with_tip("thinking"));
        cx.stream("half").await;
        cx.stream(" and half").await;
        "whole"
    });
    let whoami = tool_fn(|_: Value, cx: CallContext| async move {
        let value = |key| cx.value(key).cloned().unwrap_or_default();
        json!({"user": value("user"), "tenant": value("tenant"), "session": cx.session()})
    });
    // With `lose`, its answer is lost after its effect.
    let losses = Arc::new(AtomicUsize::new(0));
    let fail = tool_fn(move |args: Value, _| {
        let error = if args["lose"] == true {
            let number = losses.fetch_add(1, Ordering::SeqCst) + 1;
            ToolError::outcome_unknown(format!("effect {number}, and then it broke"))
        } else {
            ToolError::execution("disk full")
        };
        async move { Err::<String, _>(error) }
    });
    let greeting = json!({
        "properties": {"name": {"type": "string", "minLength": 1}},
        "required": ["name"],
        "additionalProperties": false,
    });
    let tools = [
        entry(define("echo"), tool_fn(|args: Value, _| async move { args })),
        entry(define("wait"), wait),
        entry(
            define("stuck").timeout(Duration::from_millis(20)),
            tool_fn(|_: Value, _| pending::<String>()),
        ),
        entry(
            define("rated").rate("1/h".parse().unwrap()),
            tool_fn(|_: Value, _| async { "once" }),
        ),
        entry(define("count"), count),
        entry(define("speak"), speak),
        entry(define("whoami"), whoami),
        entry(define("fail"), fail),
        entry(
            define("greet").input_schema(greeting).read_only(true),
            tool_fn(|args: Value, _| async move {
                format!("Hello, {}!", args["name"].as_str().unwrap_or_default())
            }),
        ),
        entry(
            define("remove").approval(Approval::Always),
            tool_fn(|args: Value, _| async move { format!("removed {args}") }),
        ),
        ToolEntry::client(define("pick").build().unwrap(), source()),
    ];
    for tool in tools.into_iter().chain(more) {
        assert_eq!(registry.register(tool), Registration::Registered);
    }
    let audit = Arc::<Audit>::default();
    let executor = Executor::builder(Registry::new(registry.build()))
        .suspensions(Arc::new(MemorySuspensions::within(Bounds::per_identity(RUNS))))
        .audit(AuditTrail::new(Arc::clone(&audit) as _))
        .events(EventBus::new(64))
        .build();
    let mcp = McpServer::new(executor.clone(), McpOptions::default());
    let runs = Arc::new(MemoryRuns::within(Bounds::per_identity(RUNS)));
    let answers = Arc::new(MemoryAnswers::within(AnswerLimits::default().with_keys(KEYS)));
    (Crib { executor, runs, answers, audit }, mcp)
}

fn define(name: &str) -> ToolDefinitionBuilder {
    let schema = json!({"type": "object"});
    ToolDefinition::builder(name).description("A tool for tests.").input_schema(schema)
}

fn source() -> Source {
    Source::new(Layer::Host, "fixture")
}

fn entry(definition: ToolDefinitionBuilder, body: impl Tool) -> ToolEntry {
    ToolEntry::new(definition.build().unwrap(), Arc::new(body), source())
}

/// A client whose token is its name, extended to the required length ([`token_of`]).
pub(crate) fn client(name: &str, change: impl FnOnce(&mut ClientConfig)) -> (String, ClientConfig) {
    let mut client = ClientConfig::new(Token::new(token_of(name)).unwrap().hash());
    change(&mut client);
    (name.to_owned(), client)
}

pub(crate) fn token_of(name: &str) -> String {
    format!("{name}-token-for-tests-only")
}

pub(crate) async fn start(config: ServerConfig) -> Running {
    start_with(config, []).await
}

/// The same with more tools.
pub(crate) async fn start_with(
    config: ServerConfig,
    more: impl IntoIterator<Item = ToolEntry>,
) -> Running {
    let waits = Arc::<Waits>::default();
    let (crib, mcp) = served_with(Arc::clone(&waits), more);
    let executor = crib.executor.clone();
    let server = HttpServer::bind(config, crib, mcp).await.unwrap();
    let address = server.local_addr().unwrap();
    let settings = server.settings().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async move {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
    }));
    Running { address, settings, executor, waits, stop, serving }
}
