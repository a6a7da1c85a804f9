//! Conversations that become too long for their model.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_agent::journal;
use toolcrib_agent::model::{AttemptError, AttemptErrorKind, ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::{FailureReason, Outcome, RunState};
use toolcrib_agent::{Agent, AgentBuilder, AgentEvent, Compaction, JournalEntry, RunReport};
use toolcrib_core::run::{Journal as _, MemoryRuns, RunId};
use toolcrib_core::spill::{MemorySpill, SpillLimits, read_output_entry};
use toolcrib_core::{Executor, Registry, TurnOptions};
use toolcrib_testkit::model_server::{ModelServer, Reply};
use toolcrib_tool::{ToolCall, ToolDefinition};
use toolcrib_wire::model::{FailureKind, Item, Wire};

use crate::fixture::{endpoint, kind, quick_retries, transcript};

/// What the tool `look` answers for numbers below 100.
fn output(number: i64) -> String {
    format!("output {number}: {}", "red green blue ".repeat(100))
}

/// An executor whose tool `look` has long outputs, and which keeps outputs if `keeps`.
fn executor(keeps: bool) -> Executor {
    let definition = ToolDefinition::builder("look")
        .description("Looks.")
        .read_only(true)
        .input_schema(json!({"properties": {"number": {"type": "integer"}}}))
        .build()
        .unwrap();
    let look = |arguments: Value, _| async move {
        match arguments["number"].as_i64() {
            Some(number) if number < 100 => output(number),
            _ => "nothing".to_owned(),
        }
    };
    let store = Arc::new(MemorySpill::new(SpillLimits::default()));
    let registry = Registry::scratch().tool_as(definition, look);
    if keeps {
        let registry = registry.entry(read_output_entry(store.clone())).build().unwrap();
        Executor::builder(registry).spill(store).build()
    } else {
        Executor::builder(registry.build().unwrap()).build()
    }
}

fn agent(executor: Executor, model: &Arc<ScriptedModel>) -> AgentBuilder {
    Agent::builder(executor, model.clone()).retry(quick_retries())
}

fn look(number: i64, tokens: u64) -> ScriptedTurn {
    ScriptedTurn::call("look", json!({"number": number})).with_request_tokens(tokens)
}

fn model(turns: impl IntoIterator<Item = ScriptedTurn>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(turns).with_context_window(2_000))
}

fn summarizer(texts: &[&str]) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(texts.iter().map(|text| ScriptedTurn::text(*text))))
}

fn reason(report: &RunReport) -> FailureReason {
    match report.outcome() {
        Some(Outcome::Failed { reason, .. }) => *reason,
        other => panic!("{other:?}"),
    }
}

/// The contents of the messages of a request.
fn messages(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().map(|message| message["content"].as_str().unwrap_or("").to_owned()).collect()
}

#[tokio::test]
async fn old_outputs_become_short_inside_a_loop_and_can_be_read_again() {
    let executor = executor(true);
    let turns = (0..6).map(|number| look(number, 210 * (1 + number.unsigned_abs())));
    let model = model(turns.chain([ScriptedTurn::text("Seen.")]));
    let report = agent(executor.clone(), &model).build().run("Look around.").await.unwrap();
    assert_eq!((report.state(), report.text()), (RunState::Completed, "Seen."));
    assert_eq!(report.run().compactions(), 1);

    // The last two rounds are whole, everything before is short.
    let last = messages(&model.requests()[6]);
    let results: Vec<_> = last.iter().filter(|text| text.starts_with("output")).collect();
    let short: Vec<bool> = results.iter().map(|text| text.len() < 500).collect();
    assert_eq!(short, [true, true, true, true, false, false]);

    let turn = executor.turn(TurnOptions::default().session(report.id().as_str()));
    let stranger = executor.turn(TurnOptions::default().session("another"));
    for (number, text) in (0..4).zip(results) {
        let (_, note) = text.split_once("read_output ").unwrap();
        let (arguments, _) = note.split_once(" shows").unwrap();
        let mut arguments: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(arguments["offset"], 200);
        arguments["offset"] = 0.into();
        let call = || ToolCall::new("read", "read_output", arguments.clone());
        assert_eq!(turn.call(call()).await.text(), output(number));
        assert!(!stranger.call(call()).await.is_success(), "nobody else can read it");
    }
}

#[tokio::test]
async fn what_cannot_be_read_again_is_summarized_by_the_model_for_that() {
    let writer = summarizer(&["They looked at 0 and 1."]);
    let turns = [look(0, 300), look(1, 600), look(2, 900), look(3, 1_300)];
    let model = model(turns.into_iter().chain([ScriptedTurn::text("Seen.")]));
    let compaction = Compaction::default().model(writer.clone());
    let agent = agent(executor(false), &model).instructions("Be brief.").compaction(compaction);
    let report = agent.build().run("Look around.").await.unwrap();
    assert_eq!(report.text(), "Seen.");
    assert_eq!(report.spent().turns, 5, "a summary is no turn");
    assert_eq!(report.spent().usage.input, 300 + 600 + 900 + 1_300 + 100 + 100);

    let asked = &writer.requests()[0];
    assert!(asked["tools"].is_null());
    let told = messages(asked).pop().unwrap();
    assert!(told.contains("Call of look (call_1_0): {\"number\":0}"), "{told}");
    assert!(told.contains("output 1:") && !told.contains("output 2:"), "{told}");

    let said = messages(&model.requests()[4]);
    assert_eq!(said[0], "Be brief.");
    assert_eq!(said[1], "Look around.");
    assert!(said[2].starts_with("[Summary") && said[2].ends_with("They looked at 0 and 1."));
    assert_eq!((said[4].as_str(), said[6].as_str()), (output(2).as_str(), output(3).as_str()));
    assert_eq!(said.len(), 7);
}

fn too_long() -> ScriptedTurn {
    let kind = AttemptErrorKind::Provider(FailureKind::ContextExceeded);
    ScriptedTurn::error(AttemptError::new(kind, "400: prompt is too long"))
}

#[tokio::test]
async fn a_refusal_of_the_provider_leads_to_one_compaction_and_then_ends_the_run() {
    for refusals in [1, 2] {
        let turns = [look(0, 50), look(1, 60), look(2, 70), look(3, 80)].into_iter();
        let turns = turns.chain((0..refusals).map(|_| too_long()));
        // The context is not known.
        let model = Arc::new(ScriptedModel::new(turns.chain([ScriptedTurn::text("Seen.")])));
        let report = agent(executor(true), &model).build().run("Look.").await.unwrap();
        assert_eq!(report.run().compactions(), 1);
        if refusals == 1 {
            assert_eq!(report.text(), "Seen.");
        } else {
            assert_eq!(reason(&report), FailureReason::ContextExceeded);
            let Some(Outcome::Failed { message, .. }) = report.outcome() else { panic!() };
            assert!(message.contains("prompt is too long"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_refusal_of_a_conversation_with_nothing_to_leave_out_ends_the_run() {
    let model = model([too_long(), ScriptedTurn::text("Hi.")]);
    let report = agent(executor(true), &model).build().run("Hello.").await.unwrap();
    assert_eq!(reason(&report), FailureReason::ContextExceeded);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_third_summary_in_a_row_ends_the_run() {
    let writer = summarizer(&["One.", "Two.", "Three."]);
    // Every answer says that the context is full again.
    let turns = (0..9).map(|number| look(number, 1_500));
    let model = model(turns);
    let compaction = Compaction::default().model(writer.clone());
    let report =
        agent(executor(false), &model).compaction(compaction).build().run("Look.").await.unwrap();
    assert_eq!(reason(&report), FailureReason::ContextExceeded);
    assert_eq!(writer.requests().len(), 2);
    // The summary before is part of the next one.
    assert!(messages(&writer.requests()[1])[1].contains("One."));
}

#[tokio::test]
async fn a_summary_that_is_as_long_as_what_it_replaces_ends_the_run() {
    let long = "It was long. ".repeat(400);
    let writer = summarizer(&[&long]);
    let turns = [look(0, 300), look(1, 600), look(2, 1_300)];
    let model = model(turns.into_iter().chain([ScriptedTurn::text("Seen.")]));
    let compaction = Compaction::default().model(writer);
    let report =
        agent(executor(false), &model).compaction(compaction).build().run("Look.").await.unwrap();
    assert_eq!(reason(&report), FailureReason::ContextExceeded);
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn a_summary_that_fails_is_asked_for_again_and_ends_the_run_in_the_end() {
    let down = || {
        let kind = AttemptErrorKind::Provider(FailureKind::Overloaded);
        ScriptedTurn::error(AttemptError::new(kind, "overloaded"))
    };
    let turns = || [look(0, 300), look(1, 600), look(2, 900), look(3, 1_300)].into_iter();
    for (failures, expected) in [(2, RunState::Completed), (9, RunState::Failed)] {
        let script = (0..failures).map(|_| down()).chain([ScriptedTurn::text("They looked.")]);
        let writer = Arc::new(ScriptedModel::new(script));
        let model = model(turns().chain([ScriptedTurn::text("Seen.")]));
        let compaction = Compaction::default().model(writer.clone());
        let agent = agent(executor(false), &model).compaction(compaction).build();
        let report = agent.run("Look.").await.unwrap();
        assert_eq!(report.state(), expected, "{:?}", report.outcome());
        let lost = if failures == 2 { 2 } else { 4 };
        assert_eq!(report.spent().unknown_requests, lost, "each may have cost something");
    }
}

#[tokio::test]
async fn a_run_continues_after_its_process_died_at_any_row_of_a_compaction() {
    let script = || {
        let turns = [look(0, 300), look(1, 600), look(2, 900), look(3, 1_300)].into_iter();
        turns.chain([ScriptedTurn::text("Seen.")])
    };
    let journal = Arc::new(MemoryRuns::new());
    let compaction = || Compaction::default().model(summarizer(&["They looked.", "They looked."]));
    let agent_with = |journal: &Arc<MemoryRuns>, answered: usize| {
        let model = model(script().skip(answered));
        agent(executor(false), &model).compaction(compaction()).journal(journal.clone()).build()
    };
    let whole = agent_with(&journal, 0).run("Look.").await.unwrap();
    let rows = journal::read(&*journal, whole.id(), 0, 1_000).await.unwrap().unwrap();
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    let kinds: Vec<_> = rows.iter().map(|row| kind(&row.entry)).collect();
    assert!(kinds.contains(&"compacted".to_owned()), "{kinds:?}");
    for end in 2..rows.len() {
        let journal = Arc::new(MemoryRuns::new());
        let run = RunId::random().unwrap();
        let entries = journal::entries_of(&rows[..end]).unwrap();
        journal.append(&run, 0, &entries, None).await.unwrap();
        let answered = kinds[..end].iter().filter(|kind| *kind == "model_answered").count();
        let report = agent_with(&journal, answered).resume(&run).await.unwrap();
        assert_eq!(transcript(&report), transcript(&whole), "died after row {end}");
    }
}

#[tokio::test]
async fn between_compactions_consecutive_requests_share_all_earlier_bytes() {
    for &wire in Wire::ALL {
        let replies = (0..12).map(|number| {
            // Every fourth output is long.
            let number = if number % 4 == 3 { number } else { 100 + number };
            Reply::call("look", json!({"number": number}))
        });
        let server = ModelServer::for_compaction(wire, replies.chain([Reply::text("Seen.")])).await;
        // The server's usage is small, so what counts is the estimate of the newest output.
        let model = Arc::new(endpoint(&server).context_window(600));
        let compacted = Arc::new(Mutex::new(Vec::new()));
        let (seen, counted) = (compacted.clone(), Arc::new(Mutex::new(0)));
        let agent = Agent::builder(executor(true), model)
            .instructions("Look.")
            .compaction(Compaction::default().model(summarizer(&["They looked."; 9])))
            .on_event(move |event| {
                let AgentEvent::Recorded { entry, .. } = event else { return };
                let mut requests = counted.lock().unwrap();
                eprintln!(
                    "{}",
                    &serde_json::to_string(entry).unwrap().chars().take(600).collect::<String>()
                );
                match entry {
                    JournalEntry::ModelRequested { .. } => *requests += 1,
                    JournalEntry::Compacted(_) => seen.lock().unwrap().push(*requests),
                    _ => {}
                }
            })
            .build();
        let report = agent.run("Look around.").await.unwrap();
        assert_eq!(server.violations(), Vec::<String>::new(), "{wire}");
        assert_eq!(report.text(), "Seen.", "{wire}: {:?}", report.outcome());
        let compacted = compacted.lock().unwrap();
        assert!(!compacted.is_empty(), "{wire}");
        let requests = server.requests();
        assert_eq!(requests.len(), 13);
        for (number, pair) in (1..).zip(requests.windows(2)) {
            let shared = pair[0].text.strip_suffix("]}").expect("the tail of a request");
            let is_longer = pair[1].text.starts_with(shared);
            assert_eq!(is_longer, !compacted.contains(&number), "{wire}: request {number}");
        }
    }
}

#[tokio::test]
async fn old_pictures_become_lines() {
    let image =
        toolcrib_tool::Content::Image { data: vec![0; 99], mime_type: "image/png".to_owned() };
    let said = toolcrib_wire::model::Input {
        role: toolcrib_wire::model::Role::User,
        content: vec![toolcrib_tool::Content::text("What is this?"), image],
    };
    let turns = [look(0, 300), look(1, 600), look(2, 1_250)];
    let model = model(turns.into_iter().chain([ScriptedTurn::text("A cat.")]));
    let agent = agent(executor(true), &model).build();
    let report = agent.run(vec![Item::Input(said)]).await.unwrap();
    assert_eq!(report.text(), "A cat.");
    assert!(model.requests()[0]["messages"][0]["content"].is_array());
    let last = messages(&model.requests()[3]);
    assert_eq!(last[0], "What is this?\n\n[image image/png, 99 bytes]");
}
