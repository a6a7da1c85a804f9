//! Whose runs are, and which tools they have: the toolset with which they began, clients of a server beside the owner, and
//! definitions that change meanwhile.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::{Agent, AgentBuilder, AgentError, RunControl};
use toolcrib_core::run::MemoryRuns;
use toolcrib_core::{Executor, Registration, Registry, ToolFilter, Toolset, TurnOptions};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};

use crate::fixture::executor;

fn only(tools: &[&str]) -> Toolset {
    tools.iter().fold(Toolset::new(), |set, tool| set.include(ToolFilter::new().name(*tool)))
}

fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[tokio::test]
async fn a_run_has_the_tools_with_which_it_began_and_which_whoever_continues_it_has() {
    let model = Arc::new(ScriptedModel::answering(|_| ScriptedTurn::text("Well.")));
    let journal = Arc::new(MemoryRuns::new());
    let executor = executor(&Arc::default());
    let of = |options: TurnOptions| -> AgentBuilder {
        Agent::builder(executor.clone(), model.clone())
            .journal(journal.clone())
            .turn_options(options)
    };
    let begins = of(TurnOptions::default().toolset(only(&["add", "write"])));
    let report =
        begins.toolset(&only(&["add", "write", "slow"])).build().run("Begin.").await.unwrap();
    for (options, tools) in [
        (TurnOptions::default(), &["add", "write"][..]),
        (TurnOptions::default().toolset(only(&["write", "deploy"])), &["write"]),
        (TurnOptions::default().toolset(only(&["deploy"])), &[]),
    ] {
        let agent = of(options).build();
        agent.send(report.id(), "Go on.", &RunControl::new()).await.unwrap();
        assert_eq!(offered(model.requests().last().unwrap()), tools);
    }
    assert_eq!(offered(&model.requests()[0]), ["add", "write"]);
    let narrower = of(TurnOptions::default()).toolset(&only(&["write"])).build();
    narrower.send(report.id(), "Go on.", &RunControl::new()).await.unwrap();
    assert_eq!(
        offered(model.requests().last().unwrap()),
        ["write"],
        "the agent's own as it is now"
    );
}

#[tokio::test]
async fn clients_of_a_server_know_only_runs_that_clients_began_and_the_owner_knows_all() {
    let model = Arc::new(ScriptedModel::answering(|_| ScriptedTurn::text("Well.")));
    let journal = Arc::new(MemoryRuns::new());
    let builder = || {
        let builder = Agent::builder(executor(&Arc::default()), model.clone());
        builder.journal(journal.clone())
    };
    let (owner, client) = (builder().build(), builder().for_clients().build());
    let own = owner.run("Hello.").await.unwrap().id().clone();
    let others = client.run("Hello.").await.unwrap().id().clone();
    let control = RunControl::new();
    for refused in [
        client.load(&own).await.err(),
        client.resume(&own).await.err(),
        client.send(&own, "And?", &control).await.err(),
        client.cancel(&own, "no").await.err(),
        client.rows(&own, 0, 9).await.err(),
    ] {
        assert!(matches!(refused, Some(AgentError::Unknown)), "{refused:?}");
    }
    let ids = |runs: Vec<toolcrib_core::run::RunCursor>| -> Vec<_> {
        runs.iter().map(|run| run.id().clone()).collect()
    };
    assert_eq!(ids(client.runs(None, 9).await.unwrap()), std::slice::from_ref(&others));
    assert_eq!(owner.runs(None, 9).await.unwrap().len(), 2);
    owner.send(&others, "And?", &control).await.unwrap();
    assert!(client.load(&others).await.is_ok(), "it stays the client's");
}

#[tokio::test]
async fn a_model_is_told_the_names_of_the_agents_to_which_it_can_give_tasks() {
    let model = Arc::new(ScriptedModel::answering(|_| ScriptedTurn::text("Well.")));
    let executor = executor(&Arc::default());
    let of = |name: &str| Agent::builder(executor.clone(), model.clone()).name(name);
    let reader = of("reader").instructions("\n Read and summarize.\nThen stop.").build();
    let agent = of("lead").sub_agent(reader).sub_agent(of("writer").build()).build();
    agent.run("Lead.").await.unwrap();
    of("alone").build().run("Work.").await.unwrap();
    let requests = model.requests();
    let tools = requests[0]["tools"].as_array().unwrap();
    let is_it = |tool: &&Value| tool["function"]["name"] == "new_task";
    let tool = &tools.iter().find(is_it).unwrap()["function"];
    assert_eq!(tool["parameters"]["properties"]["agent_name"]["enum"], json!(["reader", "writer"]));
    let told = tool["description"].as_str().unwrap();
    assert!(told.ends_with("- reader: Read and summarize.\n- writer"), "{told}");
    assert!(!offered(&requests[1]).contains(&"new_task"), "there is nobody to give a task to");
}

#[tokio::test]
async fn what_a_run_has_used_in_all_includes_what_it_used_before_it_was_continued() {
    let model = Arc::new(ScriptedModel::answering(|_| ScriptedTurn::text("Well.")));
    let agent = Agent::builder(executor(&Arc::default()), model).build();
    let first = agent.run("Hello.").await.unwrap();
    let second = agent.send(first.id(), "And?", &RunControl::new()).await.unwrap();
    assert_eq!((second.spent().turns, second.run().spent_in_all().turns), (1, 2));
    let all = agent.load(first.id()).await.unwrap().run().spent_in_all();
    let tokens = first.spent().usage.total() + second.spent().usage.total();
    assert_eq!(all.usage.total(), tokens);
}

/// The tool `level` in a version that needs another argument than the others.
fn level(version: &str) -> ToolEntry {
    let definition = ToolDefinition::builder("level")
        .description(format!("Version {version}."))
        .input_schema(json!({
            "type": "object",
            "properties": {version: {"type": "integer"}},
            "required": [version],
            "additionalProperties": false,
        }))
        .build()
        .unwrap();
    let told = format!("level of {version}");
    let body = tool_fn(move |_: Value, _| {
        let told = told.clone();
        async move { told }
    });
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"))
}

/// A run whose first call replaces `level`, beside a call of it; returns the conversation and how often the second request
/// names each version.
async fn reloaded_between_rounds(pins: bool) -> (String, [bool; 2]) {
    let executor: Arc<OnceLock<Executor>> = Arc::default();
    let own = Arc::clone(&executor);
    let registry = Registry::scratch()
        .tool("reload", move |_, _| {
            let own = Arc::clone(&own);
            async move {
                let registry = own.get().unwrap().registry();
                registry.unregister(&Source::new(Layer::Host, "test"), "level").unwrap();
                let registered = registry.register(level("new")).unwrap();
                assert!(matches!(registered, Registration::Registered), "{registered:?}");
                "reloaded"
            }
        })
        .entry(level("old"))
        .build()
        .unwrap();
    let executor = executor.get_or_init(|| Executor::builder(registry).build()).clone();
    let model = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("reload", json!({})).and_call("level", json!({"old": 1})),
        ScriptedTurn::call("level", json!({"old": 2})).and_call("level", json!({"new": 2})),
        ScriptedTurn::text("Done."),
    ]));
    let agent = Agent::builder(executor, model.clone()).pin_tools(pins).build();
    let report = agent.run("Go.").await.unwrap();
    assert_eq!(report.text(), "Done.");
    let second = model.requests()[1]["tools"].to_string();
    let is_shown = ["Version old.", "Version new."].map(|version| second.contains(version));
    (crate::fixture::transcript(&report).join("\n"), is_shown)
}

#[tokio::test]
async fn the_next_round_has_the_new_definitions_and_checks_calls_against_them() {
    let (said, is_shown) = reloaded_between_rounds(false).await;
    assert_eq!(is_shown, [false, true], "{said}");
    assert!(said.contains("call_1_1: level of old"), "a round keeps its definitions: {said}");
    assert!(said.contains("call_2_0: Error") && said.contains("call_2_1: level of new"), "{said}");
}

#[tokio::test]
async fn a_run_with_pinned_tools_shows_the_first_definitions_and_calls_the_tools_there_are() {
    let (said, is_shown) = reloaded_between_rounds(true).await;
    assert_eq!(is_shown, [true, false], "{said}");
    assert!(said.contains("call_2_0: Error") && said.contains("call_2_1: level of new"), "{said}");
}
