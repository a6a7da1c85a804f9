//! Runs that continue from their journals.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use toolcrib_agent::journal;
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::{AgentRun, RunState};
use toolcrib_agent::{Agent, AgentError, JournalEntry, JournalRow, LostCalls, RunReport};
use toolcrib_core::approval::{Decision, Remember};
use toolcrib_core::masking::Mask;
use toolcrib_core::run::{
    Journal as _, MemoryRuns, Run, RunCursor, RunId, RunRecord, RunStore as _,
};
use toolcrib_core::suspension::Waiting;
use toolcrib_core::{Executor, Registry, TurnOptions};
use toolcrib_store::{Database, Suspensions};
use toolcrib_tool::{ToolCall, ToolDefinition};
use toolcrib_wire::model::{ModelItem, View};

use crate::fixture::{Counts, Seen, builder, executor, executor_with, transcript};

fn script() -> Vec<ScriptedTurn> {
    vec![
        ScriptedTurn::call("add", json!({"a": 1, "b": 2})).and_call("write", json!({"file": "a"})),
        ScriptedTurn::call("write", json!({"file": "b"})),
        ScriptedTurn::text("All done."),
    ]
}

async fn rows(journal: &MemoryRuns, run: &RunId) -> Vec<JournalRow> {
    let rows = journal::read(journal, run, 0, 1_000).await.unwrap().unwrap();
    rows.into_iter().map(|(_, row)| row).collect()
}

/// How many answers of the script the first rows have used.
fn answers(rows: &[JournalRow]) -> usize {
    rows.iter().filter(|row| matches!(row.entry, JournalEntry::ModelAnswered { .. })).count()
}

/// Continues a run whose process died after these rows; returns its report and how often tools ran.
async fn resumed(rows: &[JournalRow]) -> (RunReport, [usize; 3]) {
    let journal = Arc::new(MemoryRuns::new());
    let run = RunId::random().unwrap();
    journal.append(&run, 0, &journal::entries_of(rows).unwrap(), None).await.unwrap();
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new(script().into_iter().skip(answers(rows))));
    let agent = builder(&counts, model).journal(journal).build();
    let report = agent.resume(&run).await.unwrap();
    (report, counts.all())
}

#[tokio::test]
async fn a_run_continues_after_its_process_died_at_any_row() {
    let journal = Arc::new(MemoryRuns::new());
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new(script()));
    let agent = builder(&counts, model).journal(journal.clone()).build();
    let undisturbed = agent.run("Work.").await.unwrap();
    assert_eq!(counts.all(), [1, 2, 0]);
    let rows = rows(&journal, undisturbed.id()).await;
    assert_eq!(rows.len(), 14);

    for end in 2..=rows.len() {
        let (report, [adds, writes, _]) = resumed(&rows[..end]).await;
        assert_eq!(report.text(), "All done.", "died after row {end}");
        assert_eq!(report.state(), RunState::Completed);
        // What ran before the death, by the journal: a call that had started may have run.
        let mut finished = HashSet::new();
        let mut started = HashSet::new();
        for row in &rows[..end] {
            match &row.entry {
                JournalEntry::CallsStarted { calls } => {
                    started.extend(calls.iter().map(|call| call.id.as_str().to_owned()));
                }
                JournalEntry::CallEnded { result } | JournalEntry::CallFinished { result, .. } => {
                    finished.insert(result.call_id().as_str().to_owned());
                }
                _ => {}
            }
        }
        let of = |ids: &HashSet<String>, call: &str| usize::from(ids.contains(call));
        // The read-only call runs again if its answer was lost; the others never do.
        assert_eq!(adds, 1 - of(&finished, "call_1_0"), "died after row {end}");
        let expected = 2 - of(&started, "call_1_1") - of(&started, "call_2_0");
        assert_eq!(writes, expected, "died after row {end}");
        let lost = started.iter().any(|id| !finished.contains(id) && id != "call_1_0");
        let said = transcript(&report);
        assert_eq!(said.iter().any(|line| line.contains("Look before")), lost, "{end}: {said:?}");
        if end >= 5 && !lost && writes == 0 {
            assert_eq!(said, transcript(&undisturbed), "died after row {end}");
        }
    }
}

#[tokio::test]
async fn a_call_that_ended_keeps_its_result_although_its_process_dies_while_another_call_runs() {
    let journal = Arc::new(MemoryRuns::new());
    let counts = Arc::new(Counts::default());
    let calls = ScriptedTurn::call("write", json!({})).and_call("slow", json!({}));
    let model = Arc::new(ScriptedModel::new([calls]));
    let agent = builder(&counts, model).journal(journal.clone()).build();
    let run = agent.begin("Work.").await.unwrap().id().clone();
    let working = tokio::spawn({
        let run = run.clone();
        async move { agent.resume(&run).await.map(drop) }
    });
    let left = loop {
        let left = rows(&journal, &run).await;
        if left.iter().any(|row| matches!(row.entry, JournalEntry::CallEnded { .. })) {
            break left;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    working.abort();
    for end in [left.len() - 1, left.len()] {
        let (report, counts) = resumed(&left[..end]).await;
        let said = transcript(&report).join("\n");
        assert_eq!(counts[1], 1, "only the script's next call runs: {said}");
        assert_eq!(
            said.contains("written, for the 1. time\ncall_1_1"),
            end == left.len(),
            "{said}"
        );
        assert!(said.contains("slow: whether the tool ran is not known"), "{said}");
    }
}

/// The rows of a run up to the start of its last call of a tool, which its agent asks about if it is lost.
fn until_started(rows: &[JournalRow], tool: &str) -> Vec<JournalRow> {
    let calls = |item: &ModelItem| matches!(item.view(), View::Call(call) if call.name == tool);
    let made = |row: &JournalRow| match &row.entry {
        JournalEntry::ModelAnswered { items, .. } => items.iter().any(calls),
        _ => false,
    };
    let last = rows.iter().rposition(made).unwrap();
    let starts = |row: &JournalRow| matches!(row.entry, JournalEntry::CallsStarted { .. });
    let started = last + rows[last..].iter().position(starts).unwrap();
    rows[..=started].to_vec()
}

async fn stored(run: &RunId, rows: &[JournalRow]) -> Arc<MemoryRuns> {
    let journal = Arc::new(MemoryRuns::new());
    journal.append(run, 0, &journal::entries_of(rows).unwrap(), None).await.unwrap();
    journal
}

/// Says this to every call that waits, and continues the run. Returns its report and what the calls waited for.
async fn decided(
    agent: &Agent,
    mut report: RunReport,
    decision: &Decision,
) -> (RunReport, Vec<String>) {
    let mut reasons = Vec::new();
    while report.state() == RunState::RequiresAction {
        let call = report.waiting().next().unwrap().clone();
        let Waiting::Approval { reason, .. } = call.waiting() else { panic!("{call:?}") };
        reasons.push(reason.clone());
        agent.resolve(report.id(), call.id(), decision.clone().into()).await.unwrap();
        report = agent.resume(report.id()).await.unwrap();
    }
    (report, reasons)
}

#[tokio::test]
async fn a_call_whose_outcome_is_unknown_runs_again_only_if_somebody_approves_that() {
    let script = || {
        let calls = ScriptedTurn::call("write", json!({})).and_call("add", json!({"a": 1, "b": 2}));
        [calls, ScriptedTurn::text("All done.")]
    };
    let home = tempfile::tempdir().unwrap();
    let agent = |journal: Arc<MemoryRuns>, counts: &Arc<Counts>, answered: usize| {
        let model = Arc::new(ScriptedModel::new(script().into_iter().skip(answered)));
        // Its own process, which ends when it is dropped.
        let waiting = Suspensions::new(&Database::open(home.path()).unwrap());
        Agent::builder(executor_with(counts, Arc::new(waiting)), model)
            .turn_options(TurnOptions::default().may_approve(true))
            .journal(journal)
            .lost_calls(LostCalls::Ask)
            .build()
    };
    let (journal, counts) = (Arc::new(MemoryRuns::new()), Arc::new(Counts::default()));
    let run = agent(journal.clone(), &counts, 0).run("Work.").await.unwrap();
    let run = run.id().clone();
    let left = until_started(&rows(&journal, &run).await, "write");

    for (decision, writes) in [(Decision::approve(), 1), (Decision::deny("It is there."), 0)] {
        let (journal, counts) = (stored(&run, &left).await, Arc::new(Counts::default()));
        let next = agent(journal.clone(), &counts, 1);
        let report = next.resume(&run).await.unwrap();
        assert_eq!((report.state(), counts.all()), (RunState::RequiresAction, [1, 0, 0]));
        let (report, reasons) = decided(&next, report, &decision).await;
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(reasons[0].contains("whether it has taken effect is not known"), "{reasons:?}");
        assert_eq!((report.text(), counts.all()), ("All done.", [1, writes, 0]));
        let said = transcript(&report).join("\n");
        assert_eq!(said.contains("written, for the 1. time"), writes == 1, "{said}");
        let is_told =
            said.contains("whether the tool ran is not known") && said.contains("It is there.");
        assert_eq!(is_told, writes == 0, "{said}");

        // Its process dies again, at any moment: it never runs without an approval.
        let whole = rows(&journal, &run).await;
        drop(next);
        for end in left.len()..=whole.len() {
            let rows = &whole[..end];
            let before = AgentRun::fold(rows.iter().cloned()).unwrap();
            if before.waiting().next().is_some() {
                // It was decided on there, and this process, which records that, lives on.
                continue;
            }
            let (journal, counts) = (stored(&run, rows).await, Arc::new(Counts::default()));
            let next = agent(journal, &counts, answers(rows));
            let report = next.resume(&run).await.unwrap();
            assert_eq!(counts.all()[1], 0, "died after row {end}");
            let (report, reasons) = decided(&next, report, &Decision::approve()).await;
            assert_eq!(report.text(), "All done.", "died after row {end}");
            assert_eq!(counts.all()[1], reasons.len(), "died after row {end}: {reasons:?}");
        }
    }
}

#[tokio::test]
async fn what_was_approved_before_is_no_answer_to_whether_a_lost_call_may_run_again() {
    let (journal, counts) = (Arc::new(MemoryRuns::new()), Arc::new(Counts::default()));
    let executor = executor(&counts);
    let deploy = |to: &str| ScriptedTurn::call("deploy", json!({"to": to}));
    let agent = |journal: Arc<MemoryRuns>, script: Vec<ScriptedTurn>| {
        Agent::builder(executor.clone(), Arc::new(ScriptedModel::new(script)))
            .turn_options(TurnOptions::default().may_approve(true))
            .lost_calls(LostCalls::Ask)
            .journal(journal)
            .build()
    };
    let script = vec![deploy("a"), deploy("b"), ScriptedTurn::text("Deployed.")];
    let first = agent(journal.clone(), script);
    let report = first.run("Deploy.").await.unwrap();
    let all = Decision::Approve { remember: Remember::Tool };
    let (report, reasons) = decided(&first, report, &all).await;
    assert_eq!((reasons.len(), counts.all()), (1, [0, 0, 2]), "the second was approved with it");

    let run = report.id().clone();
    let left = until_started(&rows(&journal, &run).await, "deploy");
    let next = agent(stored(&run, &left).await, vec![ScriptedTurn::text("Deployed.")]);
    let report = next.resume(&run).await.unwrap();
    assert_eq!((report.state(), counts.all()), (RunState::RequiresAction, [0, 0, 2]));
    let (report, _) = decided(&next, report, &Decision::approve()).await;
    assert_eq!((report.text(), counts.all()), ("Deployed.", [0, 0, 3]));
}

#[tokio::test]
async fn what_is_read_equals_what_was_written() {
    let journal = Arc::new(MemoryRuns::new());
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new(script()));
    let agent = builder(&counts, model).journal(journal.clone()).build();
    let live = agent.run("Work.").await.unwrap();
    let loaded = agent.load(live.id()).await.unwrap();
    assert_eq!(loaded.run().conversation(), live.run().conversation());
    assert_eq!(loaded.run().spent(), live.run().spent());
    assert_eq!(loaded.outcome(), live.outcome());
}

#[tokio::test]
async fn batches_of_calls_in_the_same_journals_are_no_runs_of_agents() {
    let journal = Arc::new(MemoryRuns::new());
    let counts = Arc::new(Counts::default());
    let turn = executor(&counts).turn(TurnOptions::default());
    let mut batch = Run::start(&turn, vec![ToolCall::new("1", "write", "{}")]).await.unwrap();
    batch.save(&*journal).await.unwrap();
    let model = Arc::new(ScriptedModel::new(script()));
    let agent = builder(&counts, model).journal(journal.clone()).build();
    let report = agent.run("Work.").await.unwrap();

    let listed = agent.runs(None, 10).await.unwrap();
    assert_eq!(listed.iter().map(RunCursor::id).collect::<Vec<_>>(), [report.id()]);
    assert!(matches!(agent.load(batch.id()).await, Err(AgentError::Unknown)));
    assert!(matches!(agent.rows(batch.id(), 0, 10).await, Err(AgentError::Unknown)));
    assert_eq!(agent.rows(report.id(), 12, 10).await.unwrap().len(), 2);

    assert!(journal.load(report.id()).await.unwrap().is_none(), "and the other way round");
    let batches = journal.page("", None, 10).await.unwrap();
    assert_eq!(batches.iter().map(RunRecord::id).collect::<Vec<_>>(), [batch.id()]);
}

#[tokio::test]
async fn rows_that_do_not_follow_are_refused_with_their_number() {
    let journal = Arc::new(MemoryRuns::new());
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new(script()));
    let agent = builder(&counts, model).journal(journal.clone()).build();
    let report = agent.run("Work.").await.unwrap();
    let rows = rows(&journal, report.id()).await;
    // Without any one row but a last or optional one, the rest makes no sense.
    for missing in 0..rows.len() - 1 {
        let kind = crate::fixture::kind(&rows[missing].entry);
        if ["input", "model_requested"].contains(&kind.as_str()) && missing != 2 {
            continue;
        }
        let mut some = rows.clone();
        some.remove(missing);
        let Err(error) = AgentRun::fold(some) else {
            // Calls may be answered without running, and a run may end while the model is asked.
            let is_last_answer = kind == "model_answered" && missing == rows.len() - 2;
            assert!(kind == "calls_started" || is_last_answer, "without row {missing}: {kind}");
            continue;
        };
        assert!(error.to_string().starts_with("row "), "{error}");
    }
    let mut newer = serde_json::to_value(&rows[0]).unwrap();
    newer["entry"]["started"]["format"] = 2.into();
    let error = AgentRun::fold([serde_json::from_value(newer).unwrap()]).unwrap_err();
    assert!(error.to_string().contains("a newer toolcrib wrote it"), "{error}");
}

#[tokio::test]
async fn secrets_reach_neither_the_journal_nor_the_model_nor_viewers() {
    let definition = ToolDefinition::builder("leak")
        .description("Leaks.")
        .input_schema(json!({"properties": {"why": {"type": "string"}}}))
        .build()
        .unwrap();
    let registry = Registry::scratch()
        .tool_as(definition, |_: serde_json::Value, _| async { "the key is hunter2-hunter2" })
        .build()
        .unwrap();
    let mask = Mask::new(["hunter2-hunter2".to_owned()]).unwrap();
    let executor = Executor::builder(registry).mask(mask).build();
    let model = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("leak", json!({"why": "hunter2-hunter2"})),
        ScriptedTurn::text("It is hunter2-hunter2."),
    ]));
    let journal = Arc::new(MemoryRuns::new());
    let shown = Arc::new(Seen::default());
    let show = Arc::clone(&shown);
    let agent = Agent::builder(executor, model.clone())
        .journal(journal.clone())
        .on_event(move |event| show.0.lock().unwrap().push(format!("{event:?}")))
        .build();
    let report = agent.run("What is hunter2-hunter2?").await.unwrap();
    assert_eq!(report.text(), "It is [masked].");
    let stored = serde_json::to_string(&rows(&journal, report.id()).await).unwrap();
    assert!(stored.contains("[masked]") && !stored.contains("hunter2"), "{stored}");
    assert!(!format!("{:?}", model.requests()).contains("hunter2"));
    assert!(!shown.take().concat().contains("hunter2"));
}
