//! Sub-agents.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_agent::budget::Budget;
use toolcrib_agent::journal;
use toolcrib_agent::model::{AttemptError, ModelClient, ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;
use toolcrib_agent::sub_agents::SubAgentLimits;
use toolcrib_agent::{Agent, AgentBuilder, JournalRow, RunReport};
use toolcrib_core::approval::Decision;
use toolcrib_core::run::{Journal as _, MemoryRuns, RunId};
use toolcrib_core::suspension::{MemorySuspensions, Suspension};
use toolcrib_core::{Executor, ToolFilter, Toolset, TurnOptions};
use toolcrib_tool::{BoxFuture, ErrorKind};
use toolcrib_wire::model::{
    Answer as WireAnswer, DecoderSettings, Item, ModelEvent, RequestHead, Wire,
};

use crate::fixture::{Counts, executor_with, kind, quick_retries, transcript};

/// What the last message of a request says.
fn last(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.last().map(text).unwrap_or_default()
}

/// What the user said first.
fn asked(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let first = messages.iter().find(|message| message["role"] == "user").unwrap();
    first["content"].as_str().unwrap().to_owned()
}

/// The tools that a request offers.
fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Starts two agents, which make one call each, and tells what they said.
fn lead(request: &Value) -> ScriptedTurn {
    match (asked(request).as_str(), last(request).as_str()) {
        ("Lead.", "Lead.") => ScriptedTurn::call(
            "multi_agent",
            json!({"tasks": [
                {"name": "one", "instruction": "Write it."},
                {"name": "two", "instruction": "Deploy it.", "tools": ["deploy"]},
            ]}),
        ),
        ("Write it.", "Write it.") => ScriptedTurn::call("write", json!({"file": "a"})),
        ("Deploy it.", "Deploy it.") => ScriptedTurn::call("deploy", json!({"to": "a"})),
        (_, answer) => ScriptedTurn::text(answer),
    }
}

struct Stores {
    counts: Arc<Counts>,
    suspensions: Arc<MemorySuspensions>,
    journal: Arc<MemoryRuns>,
}

impl Stores {
    fn new() -> Self {
        let suspensions = Arc::new(MemorySuspensions::new());
        Self { counts: Arc::default(), suspensions, journal: Arc::new(MemoryRuns::new()) }
    }

    fn executor(&self) -> Executor {
        executor_with(&self.counts, self.suspensions.clone())
    }

    fn builder(&self, model: Arc<ScriptedModel>) -> AgentBuilder {
        Agent::builder(self.executor(), model)
            .journal(self.journal.clone())
            .turn_options(TurnOptions::default().may_approve(true))
            .retry(quick_retries())
    }

    fn agent(&self) -> Agent {
        self.builder(Arc::new(ScriptedModel::answering(lead))).build()
    }

    async fn rows(&self, run: &RunId) -> Vec<JournalRow> {
        let rows = journal::read(&*self.journal, run, 0, 1_000).await.unwrap().unwrap();
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// The answer of `multi_agent` that `lead` repeats.
fn answer(report: &RunReport) -> Value {
    serde_json::from_str(report.text()).unwrap()
}

#[tokio::test]
async fn sub_agents_work_on_journals_of_their_own_and_their_approvals_are_their_roots() {
    let stores = Stores::new();
    let report = stores.agent().run("Lead.").await.unwrap();
    assert_eq!(report.state(), RunState::RequiresAction);
    assert_eq!(stores.counts.all(), [0, 1, 0]);
    let waiting: Vec<_> = report.waiting().collect();
    let [deploy] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!(deploy.tool(), "deploy");
    let child = report.run_of(deploy.id()).unwrap();
    assert_eq!(child.run().parent().map(|parent| parent.task.as_str()), Some("two"));

    // Another process decides and goes on.
    let agent = stores.agent();
    let loaded = agent.load(report.id()).await.unwrap();
    assert_eq!(loaded.waiting().next().map(Suspension::id), Some(deploy.id()));
    agent.resolve(report.id(), deploy.id(), Decision::approve().into()).await.unwrap();
    let ended = agent.resume(report.id()).await.unwrap();
    assert_eq!(ended.state(), RunState::Completed, "{:?}", transcript(&ended));
    let expected = json!({"success": true, "total": 2, "results": [
        {"task_name": "one", "success": true, "response": "written, for the 1. time"},
        {"task_name": "two", "success": true, "response": "deployed"},
    ]});
    assert_eq!(answer(&ended), expected);
    assert_eq!(stores.counts.all(), [0, 1, 1]);
    // Two answers of the root, and two of each of the others.
    assert_eq!(ended.spent().turns, 6);
    assert_eq!(ended.spent().usage.input, 600);
    assert_eq!(ended.spent().calls, 3);

    let listed = agent.runs(None, 10).await.unwrap();
    assert_eq!(listed.len(), 1, "sub-agents are listed with their root");
    assert_eq!(stores.journal.list("", None, 10).await.unwrap().len(), 3);
    assert!(stores.executor().suspensions().unwrap().all().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_run_whose_process_died_while_sub_agents_worked_gets_their_answers() {
    let stores = Stores::new();
    let agent = stores.agent();
    let report = agent.run("Lead.").await.unwrap();
    let deploy = report.waiting().next().unwrap().id().clone();
    agent.resolve(report.id(), &deploy, Decision::approve().into()).await.unwrap();
    let undisturbed = agent.resume(report.id()).await.unwrap();
    let rows = stores.rows(report.id()).await;
    let kinds: Vec<_> = rows.iter().map(|row| kind(&row.entry)).collect();
    let waits = kinds.iter().position(|kind| kind == "call_suspended").unwrap();
    assert_eq!(kinds.iter().filter(|kind| *kind == "child_finished").count(), 2);

    // Also after the ticket was taken, and before its answer was written.
    for end in waits + 1..rows.len() {
        stores.journal.erase(report.id()).await.unwrap();
        let entries = journal::entries_of(&rows[..end]).unwrap();
        stores.journal.append(report.id(), 0, &entries, None).await.unwrap();
        let resumed = stores.agent().resume(report.id()).await.unwrap();
        assert_eq!(resumed.text(), undisturbed.text(), "died after row {end} of {kinds:?}");
        assert_eq!(resumed.spent().usage, undisturbed.spent().usage, "died after row {end}");
        assert_eq!(transcript(&resumed), transcript(&undisturbed), "died after row {end}");
        assert_eq!(stores.counts.all(), [0, 1, 1], "died after row {end}");
    }
}

#[tokio::test]
async fn a_sub_agent_has_no_tool_that_its_parent_has_not() {
    let stores = Stores::new();
    let model = Arc::new(ScriptedModel::answering(|request| {
        match (asked(request).as_str(), last(request).as_str()) {
            ("Lead.", "Lead.") => ScriptedTurn::call(
                "multi_agent",
                json!({"tasks": [
                    {"name": "all", "instruction": "Work."},
                    {"name": "wide", "instruction": "Work widely.", "tools": ["write", "add"]},
                ]}),
            ),
            ("Lead.", text) if text.contains("do not have") => ScriptedTurn::call(
                "multi_agent",
                json!({"tasks": [
                    {"name": "all", "instruction": "Work."},
                    {"name": "one", "instruction": "Work narrowly.", "tools": ["add"]},
                ]}),
            ),
            ("Work.", "Work.") => ScriptedTurn::call("write", json!({})),
            (_, text) => ScriptedTurn::text(text),
        }
    }));
    let toolset = ["add", "multi_agent", "attempt_completion"]
        .iter()
        .fold(Toolset::new(), |set, name| set.include(ToolFilter::new().name(*name)));
    let agent =
        stores.builder(model.clone()).turn_options(TurnOptions::default().toolset(toolset)).build();
    let report = agent.run("Lead.").await.unwrap();
    let answer = answer(&report);
    let denied = answer["results"][0]["response"].as_str().unwrap();
    assert!(denied.contains("no tool"), "{denied}");
    assert_eq!(stores.counts.all(), [0; 3]);
    let requests = model.requests();
    let of = |asks: &str| offered(requests.iter().find(|one| asked(one) == asks).unwrap());
    assert_eq!(of("Lead."), ["add", "attempt_completion", "multi_agent"]);
    assert_eq!(of("Work."), ["add", "attempt_completion"]);
    assert_eq!(of("Work narrowly."), ["add"]);
    let refused = transcript(&report).iter().any(|line| line.contains("do not have: write"));
    assert!(refused, "a tool that the parent has not is told: {:?}", transcript(&report));
}

#[tokio::test]
async fn a_configured_agent_does_a_task_with_its_own_words_and_the_parents_rights() {
    let stores = Stores::new();
    let own = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("deploy", json!({})),
        ScriptedTurn::text("Reviewed."),
    ]));
    let reviewer = Agent::builder(stores.executor(), own.clone())
        .name("reviewer")
        .instructions("Review.")
        .turn_options(
            TurnOptions::default()
                .may_approve(true)
                .toolset(Toolset::new().include(ToolFilter::new().name("deploy"))),
        )
        .build();
    let root = Arc::new(ScriptedModel::new([
        ScriptedTurn::call(
            "new_task",
            json!({"agent_name": "nobody", "task_name": "x", "input": "y"}),
        ),
        ScriptedTurn::call(
            "new_task",
            json!({"agent_name": "reviewer", "task_name": "x", "input": "Look."}),
        ),
        ScriptedTurn::text("Done."),
    ]));
    let agent =
        stores.builder(root).turn_options(TurnOptions::default()).sub_agent(reviewer).build();
    let report = agent.run("Lead.").await.unwrap();
    let wrong = transcript(&report).iter().any(|line| line.contains("there are: reviewer"));
    assert!(wrong, "{:?}", transcript(&report));
    let deploy = report.waiting().next().unwrap().id().clone();
    let refused = agent.resolve(report.id(), &deploy, Decision::approve().into()).await;
    assert!(refused.is_err(), "the right to approve is the parent's, which has none: {refused:?}");

    let deciders = TurnOptions::default().may_approve(true);
    stores.executor().approvals(deciders).decide(&deploy, Decision::approve()).await.unwrap();
    let report = loop {
        let report = agent.resume(report.id()).await.unwrap();
        if report.state() == RunState::Completed {
            break report;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((report.text(), stores.counts.all()), ("Done.", [0, 0, 1]));
    let told = transcript(&report).iter().any(|line| line.contains(r#""response":"Reviewed.""#));
    assert!(told, "{:?}", transcript(&report));
    assert_eq!(own.requests()[0]["messages"][0]["content"], "Review.");
    assert_eq!(offered(&own.requests()[0]), ["deploy"]);
}

#[tokio::test]
async fn depth_rounds_and_budget_of_sub_agents_are_limited() {
    let stores = Stores::new();
    let model = Arc::new(ScriptedModel::answering(|request| match asked(request).as_str() {
        "Lead." if last(request) == "Lead." => ScriptedTurn::call(
            "multi_agent",
            json!({"tasks": [
                {"name": "deep", "instruction": "Start others."},
                {"name": "long", "instruction": "Go on."},
            ]}),
        ),
        "Start others." if last(request) == "Start others." => ScriptedTurn::call(
            "multi_agent",
            json!({"tasks": [{"name": "deeper", "instruction": "Dig."}]}),
        ),
        "Lead." | "Start others." => ScriptedTurn::text(last(request)),
        _ => {
            ScriptedTurn::call("write", json!({"n": request["messages"].as_array().unwrap().len()}))
        }
    }));
    let budget = Budget::default().with_max_tokens(10_000);
    let agent = stores.builder(model.clone()).budget(budget).build();
    let report = agent.run("Lead.").await.unwrap();
    let answer = answer(&report);
    let deep = answer["results"][0]["response"].as_str().unwrap();
    assert!(deep.contains("no tool"), "the second level starts none: {deep}");
    let long = answer["results"][1]["error"].as_str().unwrap();
    assert!(long.contains("max_turns"), "{long}");
    assert_eq!(stores.counts.all(), [0, 3, 0], "three rounds with calls");
    assert_eq!(answer["success"], false);

    // What sub-agents use is their parent's: little is left for the second group.
    let tight = Budget::default().with_max_tokens(400);
    let agent = Stores::new().builder(model).budget(tight).build();
    let report = agent.run("Lead.").await.unwrap();
    let long = report.run().conversation().iter().flatten();
    let long = format!("{:?}", long.collect::<Vec<_>>());
    assert!(long.contains("max_tokens"), "{long}");
}

#[tokio::test]
async fn turns_of_sub_agents_count_for_their_parent_which_keeps_one_to_answer() {
    let model = Arc::new(ScriptedModel::answering(|request| match asked(request).as_str() {
        "Lead." if last(request) == "Lead." => {
            let task = |name: &str| json!({"name": name, "instruction": "Go on."});
            ScriptedTurn::call("multi_agent", json!({"tasks": [task("a"), task("b")]}))
        }
        "Lead." => ScriptedTurn::text("Enough."),
        _ => ScriptedTurn::call("write", json!({"n": last(request)})),
    }));
    for (turns, writes, used) in [(7, 2, 6), (6, 2, 6), (4, 0, 4), (2, 0, 4)] {
        let stores = Stores::new();
        let budget = Budget::default().with_max_turns(turns);
        let agent = stores.builder(model.clone()).budget(budget).build();
        let report = agent.run("Lead.").await.unwrap();
        assert_eq!((report.text(), report.state()), ("Enough.", RunState::Completed), "{turns}");
        let spent = report.spent().turns;
        assert_eq!((stores.counts.all()[1], spent), (writes, used), "of {turns} turns");
    }
}

#[tokio::test]
async fn a_second_level_can_be_allowed() {
    let stores = Stores::new();
    let model = Arc::new(ScriptedModel::answering(|request| {
        let start = |name: &str| {
            ScriptedTurn::call(
                "new_task",
                json!({"agent_name": name, "task_name": "t", "input": "Go."}),
            )
        };
        let said = last(request);
        match offered(request).contains(&"new_task".to_owned()) {
            true if !said.contains("response") => start("helper"),
            _ if said == "Go." => ScriptedTurn::text("the bottom"),
            _ => ScriptedTurn::text(said),
        }
    }));
    let helper = Agent::builder(stores.executor(), model.clone()).name("helper").build();
    let mut limits = SubAgentLimits::default();
    limits.max_depth = 2;
    let agent = stores.builder(model).sub_agent(helper).sub_agents(limits).build();
    let report = agent.run("Lead.").await.unwrap();
    assert!(report.text().contains("the bottom"), "{}", report.text());
    assert_eq!(stores.journal.list("", None, 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn cancelling_a_run_cancels_its_sub_agents_and_leaves_no_approval_behind() {
    let stores = Stores::new();
    let agent = stores.agent();
    let report = agent.run("Lead.").await.unwrap();
    let child = report.sub_agents()[0].id().clone();
    let report = agent.cancel(report.id(), "changed my mind").await.unwrap();
    assert_eq!(report.state(), RunState::Cancelled);
    assert_eq!(agent.load(&child).await.unwrap().state(), RunState::Cancelled);
    assert!(stores.executor().suspensions().unwrap().all().await.unwrap().is_empty());
}

#[tokio::test]
async fn without_its_agent_a_task_fails_or_can_be_cancelled() {
    for cancels in [false, true] {
        let stores = Stores::new();
        let task = json!({"agent_name": "helper", "task_name": "x", "input": "Go."});
        let turns = [ScriptedTurn::call("new_task", task), ScriptedTurn::text("Done.")];
        let root = Arc::new(ScriptedModel::new(turns));
        let helper = Arc::new(ScriptedModel::new([ScriptedTurn::call("deploy", json!({}))]));
        let helper = Agent::builder(stores.executor(), helper).name("helper").build();
        let report = stores.builder(root.clone()).sub_agent(helper).build().run("Lead.").await;
        let report = report.unwrap();
        assert_eq!(report.state(), RunState::RequiresAction);
        let agent = stores.builder(root).build();
        if cancels {
            let report = agent.cancel(report.id(), "changed my mind").await.unwrap();
            assert_eq!(report.state(), RunState::Cancelled);
        } else {
            let report = agent.resume(report.id()).await.unwrap();
            let said = transcript(&report);
            assert_eq!(report.text(), "Done.", "{said:?}");
            assert!(
                said.iter().any(|line| line.contains("there is no agent `helper`")),
                "{said:?}"
            );
        }
        assert!(stores.executor().suspensions().unwrap().all().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn denying_the_call_ends_its_sub_agents() {
    let stores = Stores::new();
    let agent = stores.agent();
    let report = agent.run("Lead.").await.unwrap();
    let child = report.sub_agents()[0].id().clone();
    let group = report.run().waiting().next().unwrap().id().clone();
    agent.resolve(report.id(), &group, Decision::deny("too expensive").into()).await.unwrap();
    let report = agent.resume(report.id()).await.unwrap();
    assert!(report.text().contains("too expensive"), "{}", report.text());
    assert_eq!(agent.load(&child).await.unwrap().state(), RunState::Cancelled);
    assert_eq!(stores.counts.all(), [0, 1, 0]);
}

#[tokio::test]
async fn a_sub_agent_that_repeats_itself_ends_without_an_answer() {
    let stores = Stores::new();
    let model = Arc::new(ScriptedModel::answering(|request| match asked(request).as_str() {
        "Lead." if last(request) == "Lead." => ScriptedTurn::call(
            "multi_agent",
            json!({"tasks": [{"name": "stuck", "instruction": "Add."}]}),
        ),
        "Lead." => ScriptedTurn::text(last(request)),
        _ => ScriptedTurn::call("add", json!({"a": 1, "b": 1})),
    }));
    let mut limits = SubAgentLimits::default();
    limits.max_iterations = 20;
    let report = stores.builder(model).sub_agents(limits).build().run("Lead.").await.unwrap();
    let error = answer(&report)["results"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("repeats the same calls"), "{error}");
}

#[tokio::test]
async fn a_sixth_task_is_refused_and_none_of_the_six_begins() {
    let stores = Stores::new();
    let task = |number| json!({"name": format!("{number}"), "instruction": "Write it."});
    let tasks: Vec<_> = (0..6).map(task).collect();
    let model = ScriptedModel::new([
        ScriptedTurn::call("multi_agent", json!({"tasks": tasks})),
        ScriptedTurn::text("Refused."),
    ]);
    let agent = stores.builder(Arc::new(model)).build();
    let report = agent.run("Lead.").await.unwrap();
    let refusal = report.run().conversation().iter().flatten().find_map(|item| match item {
        Item::Result(result) => result.error_kind(),
        _ => None,
    });
    assert_eq!((report.text(), refusal), ("Refused.", Some(ErrorKind::InvalidArgs)));
    assert_eq!(agent.all_runs(None, 10).await.unwrap().len(), 1);
    assert_eq!(stores.counts.all(), [0, 0, 0]);
}

/// A model that takes a minute for an answer to a sub-agent.
struct Slow(ScriptedModel);

impl ModelClient for Slow {
    fn wire(&self) -> Wire {
        self.0.wire()
    }

    fn head(&self) -> RequestHead {
        self.0.head()
    }

    fn ask<'a>(
        &'a self,
        request: String,
        settings: DecoderSettings,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<WireAnswer, AttemptError>> {
        let is_childs = asked(&serde_json::from_str(&request).unwrap()) != "Lead.";
        Box::pin(async move {
            if is_childs {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            self.0.ask(request, settings, events).await
        })
    }
}

#[tokio::test]
async fn a_request_of_a_helper_that_takes_too_long_fails_its_task() {
    let stores = Stores::new();
    let model = Slow(ScriptedModel::answering(lead));
    let mut limits = SubAgentLimits::default();
    assert_eq!(limits.request_timeout, Duration::from_secs(60));
    limits.request_timeout = Duration::from_millis(30);
    let agent = Agent::builder(stores.executor(), Arc::new(model))
        .journal(stores.journal.clone())
        .retry(quick_retries())
        .sub_agents(limits)
        .build();
    let report = tokio::time::timeout(Duration::from_secs(30), agent.run("Lead.")).await;
    let answer = answer(&report.unwrap().unwrap());
    for result in answer["results"].as_array().unwrap() {
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("no complete answer within 30ms"), "{error}");
    }
    assert_eq!((&answer["success"], stores.counts.all()), (&json!(false), [0, 0, 0]));
}

#[tokio::test]
async fn the_tools_are_of_no_use_outside_of_a_run() {
    let stores = Stores::new();
    let turn = stores.executor().turn(TurnOptions::default());
    let arguments = json!({"tasks": [{"name": "a", "instruction": "b"}]}).to_string();
    let result = turn.call(toolcrib_tool::ToolCall::new("1", "multi_agent", arguments)).await;
    assert!(result.text().contains("only the run of an agent"), "{}", result.text());
    assert!(stores.executor().suspensions().unwrap().all().await.unwrap().is_empty());
}
