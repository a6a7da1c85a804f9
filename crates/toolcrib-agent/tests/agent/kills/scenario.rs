//! What a killed process does: a run over one protocol, with tools of one kind, whose calls wait or not.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_agent::model::Endpoint;
use toolcrib_agent::run::RunState;
use toolcrib_agent::sub_agents::tools;
use toolcrib_agent::{Agent, JournalEntry, RunReport};
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::{Submission, Waiting};
use toolcrib_core::{Executor, Registry, Scratch, TurnOptions};
use toolcrib_store::{Database, Runs, Suspensions};
use toolcrib_testkit::model_server::{ModelServer, Reply};
use toolcrib_tool::{Approval, CallContext, Layer, Source, ToolDefinition, ToolEntry};
use toolcrib_wire::model::Wire;

use super::points::{Points, Watched};

/// How often a run is resumed until it has to be over.
const MAX_RESUMES: usize = 50;

/// What is said to a run whose calls wait.
pub(crate) const SAID: &str = "Mind the rest.";

/// Whether a tool may run twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ReadOnly,
    Idempotent,
    Neither,
}

/// What else happens to calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    Approval,
    ClientTool,
    Children,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) wire: Wire,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.wire, self.kind, self.mode)
    }
}

impl Scenario {
    pub(crate) fn all() -> Vec<Self> {
        let kinds = [Kind::ReadOnly, Kind::Idempotent, Kind::Neither];
        let modes = [Mode::Plain, Mode::Approval, Mode::ClientTool, Mode::Children];
        let mut all = Vec::new();
        for &wire in Wire::ALL {
            for kind in kinds {
                all.extend(modes.map(|mode| Self { wire, kind, mode }));
            }
        }
        all
    }

    /// Models of the root and of each of its sub-agents, which reply the same to the same conversation.
    pub(crate) async fn models(self) -> [ModelServer; 3] {
        let work = |id: i64| Reply::call("work", json!({"id": id}));
        let root = match self.mode {
            Mode::Plain | Mode::Approval => {
                vec![work(0).and_call("work", json!({"id": 1})), work(2), Reply::text("Done.")]
            }
            Mode::ClientTool => vec![
                work(0).and_call("ask", json!({"id": 1})).and_call("ask", json!({"id": 2})),
                work(3),
                Reply::text("Done."),
            ],
            Mode::Children => vec![
                Reply::call("new_task", task("one")).and_call("new_task", task("two")),
                work(0),
                Reply::text("Done."),
            ],
        };
        let child = vec![work(10).and_call("work", json!({"id": 11})), Reply::text("Helped.")];
        [
            ModelServer::without_memory(self.wire, root).await,
            ModelServer::without_memory(self.wire, child.clone()).await,
            ModelServer::without_memory(self.wire, child).await,
        ]
    }

    /// An agent on the stores of a folder, as a process has it that was just started.
    pub(crate) fn agent(self, folder: &Path, urls: [&str; 3], points: &Arc<Points>) -> Agent {
        let database = Database::open(folder).unwrap();
        let store = Suspensions::new(&database);
        let suspensions = Arc::new(Watched { store, points: Arc::clone(points) });
        let journal = Arc::new(Watched { store: Runs::new(&database), points: Arc::clone(points) });
        let registry = self.registry(folder.join("effects"), points);
        let executor = Executor::builder(registry).suspensions(suspensions).build();
        let model = |url: &str| {
            let endpoint = Endpoint::new(self.wire, url, "scripted");
            Arc::new(endpoint.allow("127.0.0.0/8".parse().unwrap()))
        };
        let [one, two] = [("one", urls[1]), ("two", urls[2])]
            .map(|(name, url)| Agent::builder(executor.clone(), model(url)).name(name).build());
        Agent::builder(executor, model(urls[0]))
            .journal(journal)
            .turn_options(TurnOptions::default().may_approve(true))
            .sub_agent(one)
            .sub_agent(two)
            .build()
    }

    fn registry(self, effects: PathBuf, points: &Arc<Points>) -> Registry {
        let define = |name: &str| {
            let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
            ToolDefinition::builder(name).description("A tool of a test.").input_schema(schema)
        };
        let mut work = define("work")
            .read_only(self.kind == Kind::ReadOnly)
            .idempotent(self.kind == Kind::Idempotent);
        if self.mode == Mode::Approval {
            work = work.approval(Approval::Always);
        }
        let points = Arc::clone(points);
        let body = move |_: Value, cx: CallContext| {
            let (effects, points) = (effects.clone(), Arc::clone(&points));
            async move {
                points.pass();
                let line = format!("{} {}\n", cx.session().unwrap_or_default(), cx.call_id());
                let mut file = OpenOptions::new().create(true).append(true).open(effects).unwrap();
                file.write_all(line.as_bytes()).unwrap();
                points.pass();
                "done"
            }
        };
        let ask =
            ToolEntry::client(define("ask").build().unwrap(), Source::new(Layer::Host, "test"));
        let system = tools::entries().unwrap();
        let registry = system.into_iter().fold(Registry::scratch(), Scratch::entry);
        registry.entry(ask).tool_as(work.build().unwrap(), body).build().unwrap()
    }
}

fn task(name: &str) -> Value {
    json!({"agent_name": name, "task_name": name, "input": "Do it."})
}

/// Begins or continues the run of a folder, and decides what waits, until it is over.
pub(crate) async fn work(agent: &Agent) -> RunReport {
    let begun = agent.runs(None, 1).await.unwrap();
    let mut report = match begun.first() {
        None => agent.run("Work.").await.unwrap(),
        Some(run) => agent.resume(run.id()).await.unwrap(),
    };
    for _ in 0..MAX_RESUMES {
        if matches!(report.state(), RunState::Completed | RunState::Failed | RunState::Cancelled) {
            break;
        }
        let outputs: Vec<_> = report
            .waiting()
            .filter(|call| matches!(call.waiting(), Waiting::Client))
            .map(|call| Submission::new(call.call_id(), "from the client"))
            .collect();
        if !outputs.is_empty() || report.waiting().next().is_some() {
            say_once(agent, &report).await;
        }
        let approval = report
            .waiting()
            .find(|call| matches!(call.waiting(), Waiting::Approval { .. }))
            .map(|call| call.id().clone());
        if !outputs.is_empty() {
            agent.submit(report.id(), outputs).await.unwrap();
        } else if let Some(approval) = approval {
            agent.resolve(report.id(), &approval, Decision::approve().into()).await.unwrap();
        }
        report = agent.resume(report.id()).await.unwrap();
    }
    report
}

/// Says something to a run that waits, unless a process has said it before.
async fn say_once(agent: &Agent, report: &RunReport) {
    if times_said(agent, report).await == 0 {
        agent.steer(report.id(), SAID).await.unwrap();
    }
}

/// How often something was said to a run, by its journal.
pub(crate) async fn times_said(agent: &Agent, report: &RunReport) -> usize {
    let rows = agent.rows(report.id(), 0, 1_000).await.unwrap();
    rows.iter().filter(|(_, row)| matches!(row.entry, JournalEntry::Steered { .. })).count()
}
