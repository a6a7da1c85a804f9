//! Journals of agents' runs.

use std::collections::BTreeSet;

use toolcrib_agent::JournalRow;
use toolcrib_agent::run::{AgentRun, Step};
use toolcrib_wire::model::{Conversation, Item, RequestHead, ToolChoice, View, Wire};

/// Rows that are read at most: the bodies' work is quadratic in them.
const MAX_ROWS: usize = 64;
/// Entries that a run may append by itself before something else has to happen.
const MAX_OWN_STEPS: usize = 8;

/// Folds any bytes as a journal, one row a line.
pub fn agent_journal(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let rows = text.lines().take(MAX_ROWS).map(serde_json::from_str::<JournalRow>);
    // What cannot be read is refused before the fold.
    let rows: Vec<JournalRow> = rows.map_while(Result::ok).collect();
    for row in &rows {
        let stored = serde_json::to_string(row).expect("a row that was read can be written");
        let read: JournalRow = serde_json::from_str(&stored).expect("and read again");
        assert_eq!(&read, row);
    }
    let Some(first) = rows.first() else { return };
    let Ok(mut run) = AgentRun::begin(first.clone()) else {
        assert!(AgentRun::fold(rows).is_err());
        return;
    };
    check(&run);
    for (count, row) in (1_u64..).zip(&rows).skip(1) {
        if let Err(error) = run.apply(row.clone()) {
            let number = format!("row {count}: ");
            assert!(error.to_string().starts_with(&number), "{error}");
            assert_eq!(AgentRun::fold(rows.clone()).err(), Some(error));
            return;
        }
        check(&run);
    }
    let folded = AgentRun::fold(rows).expect("it was accepted row by row");
    assert_eq!(folded.version(), run.version());
    assert_eq!(folded.conversation(), run.conversation());
    assert_eq!(folded.spent(), run.spent());
    assert_eq!(folded.next(), run.next());
}

fn check(run: &AgentRun) {
    let step = run.next();
    let is_whole = are_in_pairs(run);
    let asks = matches!(step, Step::Ask { .. } | Step::Over);
    assert!(is_whole || !asks, "a call without a result before {step:?}");
    assert_eq!(run.outcome().is_some(), step == Step::Over);
    if is_whole {
        for &wire in Wire::ALL {
            can_be_sent(run, wire);
        }
    }
    ends_by_itself(run.clone());
}

/// Whether every call has its result; panics if a result has no call.
fn are_in_pairs(run: &AgentRun) -> bool {
    let mut open = BTreeSet::new();
    for item in run.conversation().iter().flatten() {
        match item {
            Item::Model(item) => {
                if let View::Call(call) = item.view() {
                    assert!(open.insert(call.id.clone()), "two open calls have one id");
                }
            }
            Item::Result(result) => assert!(open.remove(result.call_id()), "a result has no call"),
            _ => assert!(open.is_empty(), "input separates a call from its result"),
        }
    }
    open.is_empty()
}

fn can_be_sent(run: &AgentRun, wire: Wire) {
    let head = RequestHead::new("m", "fuzz");
    let mut conversation = Conversation::new(wire, &head).expect("an empty head is right");
    for group in run.conversation() {
        conversation.push(group).expect("calls and results are in pairs");
    }
    let request = conversation.request(&ToolChoice::Auto).expect("no call is open");
    let _: serde_json::Value = serde_json::from_str(&request).expect("a request is JSON");
}

/// What a run says must follow can follow, and it does not go on for ever by itself.
fn ends_by_itself(mut run: AgentRun) {
    for _ in 0..MAX_OWN_STEPS {
        let Step::Append(entries) = run.next() else { return };
        assert!(!entries.is_empty());
        for entry in entries {
            let row = JournalRow::new(run.created_at(), entry);
            run.apply(row).expect("what must follow can follow");
        }
    }
    let step = run.next();
    assert!(!matches!(step, Step::Append(_)), "it goes on by itself: {step:?}");
}
