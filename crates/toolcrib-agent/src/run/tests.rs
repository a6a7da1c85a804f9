//! Rows in every order.

use std::time::Duration;

use toolcrib_core::clock::Timestamp;
use toolcrib_tool::{CallId, ToolResult};
use toolcrib_wire::model::{Item, ModelItem, StopReason, Wire};

use super::*;
use crate::entry::{Compacted, FORMAT, JournalRow, StartedCall, Summary};

fn started() -> JournalEntry {
    JournalEntry::Started {
        format: FORMAT,
        identity: String::new(),
        agent: "agent".to_owned(),
        budget: Budget::default(),
        poll_tools: Vec::new(),
        parent: None,
        toolset: None,
        for_client: false,
        metadata: std::collections::BTreeMap::new(),
        lost_calls: crate::LostCalls::Tell,
    }
}

fn requested_from(model: &str, round: u32, attempt: u32) -> JournalEntry {
    JournalEntry::ModelRequested { round, attempt, model: model.to_owned(), last: None }
}

fn compacted(left_out: Option<Vec<usize>>) -> JournalEntry {
    let summary = left_out.map(|left_out| Summary { left_out, item: Item::user("It was said.") });
    JournalEntry::Compacted(Compacted {
        shortened: Vec::new(),
        without_media: Vec::new(),
        summary,
        before: 100,
        after: 50,
        usage: None,
        cost: None,
    })
}

fn item(raw: &str) -> ModelItem {
    ModelItem::read(Wire::Chat, "test", raw).unwrap()
}

/// Every kind of entry, with calls `a` and `b`.
fn entries() -> Vec<JournalEntry> {
    let call = |id: &str| {
        item(&format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"look","arguments":"{{}}"}}}}"#
        ))
    };
    let answered = |items: Vec<ModelItem>, stop| JournalEntry::ModelAnswered {
        items,
        usage: None,
        cost: None,
        stop,
        names: std::collections::BTreeMap::new(),
        hidden: std::collections::BTreeMap::new(),
    };
    let start = |id: &str| StartedCall {
        id: CallId::new(id),
        repeatable: false,
        terminal: false,
        definition: None,
        again: false,
    };
    let finished = |id: &str| JournalEntry::CallFinished {
        result: Box::new(ToolResult::success(
            CallId::new(id),
            "look",
            "seen".into(),
            Duration::ZERO,
        )),
        repetition: false,
    };
    let requested = |round| requested_from("test", round, 1);
    vec![
        JournalEntry::Input { items: vec![Item::user("Hello.")] },
        JournalEntry::Steered { items: vec![Item::user("In German!")] },
        requested(1),
        requested(2),
        JournalEntry::ModelLost {
            reason: "cut".to_owned(),
            began: true,
            shown_chars: 3,
            context_exceeded: true,
        },
        JournalEntry::SummaryRequested { round: 2, attempt: 1, model: "test".to_owned() },
        compacted(Some(vec![0, 1, 2])),
        compacted(None),
        answered(vec![call("a"), call("b")], StopReason::Calls),
        answered(vec![call("a")], StopReason::Length),
        answered(vec![item(r#"{"role":"assistant","content":"Hi."}"#)], StopReason::End),
        JournalEntry::CallsStarted { calls: vec![start("a"), start("b")] },
        finished("a"),
        finished("b"),
        JournalEntry::Paused { reason: "later".to_owned() },
        JournalEntry::Resumed,
        JournalEntry::Finished { outcome: Outcome::Cancelled { reason: "enough".to_owned() } },
    ]
}

fn row(entry: JournalEntry) -> JournalRow {
    JournalRow::new(Timestamp::from_unix_millis(0), entry)
}

/// Calls and results in pairs, in what would be sent.
fn check(run: &AgentRun, path: &[usize]) {
    let mut open = HashSet::new();
    for item in run.conversation().iter().flatten() {
        match item {
            Item::Model(item) => {
                if let toolcrib_wire::model::View::Call(call) = item.view() {
                    assert!(open.insert(call.id.clone()), "{path:?}");
                }
            }
            Item::Result(result) => assert!(open.remove(result.call_id()), "{path:?}"),
            _ => assert!(open.is_empty(), "{path:?}: input between calls and their results"),
        }
    }
    let step = run.next();
    if matches!(step, Step::Ask { .. } | Step::Over) {
        assert!(open.is_empty(), "{path:?}: {step:?}");
    }
    if let Step::Append(entries) = step {
        // What the run says must follow can follow.
        let mut next = run.clone();
        for entry in entries {
            next.apply(row(entry)).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        }
    }
}

/// Applies every sequence of up to `depth` more entries.
fn explore(run: &AgentRun, all: &[JournalEntry], path: &mut Vec<usize>, depth: usize) -> usize {
    check(run, path);
    if depth == 0 {
        return 1;
    }
    let mut count = 1;
    for (index, entry) in all.iter().enumerate() {
        let mut next = run.clone();
        if next.apply(row(entry.clone())).is_ok() {
            path.push(index);
            count += explore(&next, all, path, depth - 1);
            path.pop();
        }
    }
    count
}

#[test]
fn no_order_of_rows_separates_a_call_from_its_result() {
    let run = AgentRun::begin(row(started())).unwrap();
    let count = explore(&run, &entries(), &mut Vec::new(), 7);
    assert!(count > 10_000, "{count} sequences");
}

#[test]
fn time_counts_while_the_run_is_active_only() {
    let mut run = AgentRun::begin(row(started())).unwrap();
    let mut at = |millis: u64, entry| {
        run.apply(JournalRow::new(Timestamp::from_unix_millis(millis), entry)).unwrap();
        run.spent().time.as_millis()
    };
    assert_eq!(at(10, JournalEntry::Input { items: vec![Item::user("Hello.")] }), 10);
    assert_eq!(at(30, JournalEntry::Paused { reason: String::new() }), 30);
    assert_eq!(at(1_000, JournalEntry::Resumed), 30);
    assert_eq!(at(1_005, requested_from("test", 1, 1)), 35);
    // Its process ended, and another one went on later.
    assert_eq!(at(9_000, JournalEntry::Resumed), 35);
    assert_eq!(at(9_001, requested_from("test", 1, 2)), 36);
}

#[test]
fn amounts_beyond_what_can_be_counted_do_not_end_the_program() {
    let mut spent = crate::budget::Spent::default();
    (spent.usage.input, spent.calls, spent.time) = (u64::MAX, u32::MAX, Duration::MAX);
    let mut sum = spent.clone();
    sum.add_sub_agent(&spent);
    assert_eq!((sum.usage.input, sum.calls), (u64::MAX, u32::MAX));
}
