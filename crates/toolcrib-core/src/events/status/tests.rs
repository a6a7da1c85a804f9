//! Updates of a status are merged, its phases only rise, and the outcome of the call has the last word.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("not an object: {other}"),
    }
}

#[test]
fn updates_are_merged_over_one_execution() {
    let mut machine = StatusMachine::default();
    let first = StatusUpdate::wait().with_tip("queued").with_param("a", json!({"x": 1, "l": [1]}));
    assert_eq!(machine.update(first.clone()), Some(first));
    let shown = machine
        .update(StatusUpdate::doing().with_param("a", json!({"y": 2, "l": []})).with_result(1))
        .unwrap();
    assert_eq!(shown.phase, Phase::Doing);
    assert_eq!(shown.tip.as_deref(), Some("queued"));
    assert_eq!(Value::Object(shown.params), json!({"a": {"x": 1, "y": 2, "l": []}}));
    let shown = machine.update(StatusUpdate::doing().with_result(json!([2]))).unwrap();
    assert_eq!(shown.result, Some(json!([2])));
}

#[test]
fn a_phase_never_goes_back() {
    let mut machine = StatusMachine::default();
    machine.update(StatusUpdate::doing());
    let shown = machine.update(StatusUpdate::wait().with_tip("for the disk")).unwrap();
    assert_eq!((shown.phase, shown.tip.as_deref()), (Phase::Doing, Some("for the disk")));
}

#[test]
fn a_terminal_status_waits_for_the_result_and_nothing_follows_it() {
    let mut machine = StatusMachine::default();
    assert_eq!(machine.update(StatusUpdate::success().with_result(1)), None);
    assert_eq!(machine.update(StatusUpdate::doing().with_result(2)), None);
    assert_eq!(machine.update(StatusUpdate::error("late")), None);
    assert_eq!(machine.ignored(), 2);
    let closed = machine.close(Closing::Success).unwrap();
    assert_eq!((closed.phase, closed.result), (Phase::Success, Some(json!(1))));
    assert_eq!(machine.update(StatusUpdate::doing()), None);
    assert_eq!(machine.close(Closing::Success), None);
    assert_eq!(machine.ignored(), 3);
}

#[test]
fn the_outcome_of_the_call_wins() {
    let closed = |said: StatusUpdate, closing| {
        let mut machine = StatusMachine::default();
        machine.update(said.with_param("kept", true));
        let closed = machine.close(closing).unwrap();
        assert_eq!(Value::Object(closed.params), json!({"kept": true}));
        (closed.phase, closed.error, closed.result)
    };
    let failed = Closing::Error("disk full");
    let error = |text: &str| Some(text.to_owned());
    assert_eq!(
        closed(StatusUpdate::success().with_result(1), failed),
        (Phase::Error, error("disk full"), None)
    );
    assert_eq!(
        closed(StatusUpdate::error("no room left"), failed),
        (Phase::Error, error("no room left"), None)
    );
    assert_eq!(
        closed(StatusUpdate::error("a warning"), Closing::Success),
        (Phase::Success, None, None)
    );
    // An open status is ended by the return.
    assert_eq!(
        closed(StatusUpdate::doing().with_result(1), failed),
        (Phase::Error, error("disk full"), Some(json!(1)))
    );
    assert_eq!(closed(StatusUpdate::wait(), Closing::Success), (Phase::Success, None, None));
}

#[test]
fn a_call_without_a_status_ends_without_one() {
    assert_eq!(StatusMachine::default().close(Closing::Success), None);
    assert_eq!(StatusMachine::default().close(Closing::Error("failed")), None);
}

/// Values with few names, so that the objects meet.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i8>().prop_map(Value::from),
        "[ab]".prop_map(Value::from),
        proptest::collection::vec(0..3, 0..3).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        proptest::collection::hash_map("[abc]", inner, 0..3)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    })
}

fn any_members() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::hash_map("[abc]", any_value(), 0..3)
        .prop_map(|members| members.into_iter().collect())
}

/// Every path to something that is not an object with members, and what is there.
fn leaves(members: &Map<String, Value>) -> Vec<(Vec<String>, Value)> {
    let mut found = Vec::new();
    for (key, value) in members {
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                found.extend(leaves(inner).into_iter().map(|(mut path, leaf)| {
                    path.insert(0, key.clone());
                    (path, leaf)
                }));
            }
            other => found.push((vec![key.clone()], other.clone())),
        }
    }
    found
}

fn at<'a>(members: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(members.get(first)?, |value, key| value.get(key))
}

fn both(mut known: Map<String, Value>, news: Map<String, Value>) -> Map<String, Value> {
    merge(&mut known, news);
    known
}

proptest! {
    #[test]
    fn everything_new_is_there_after_a_merge(known in any_members(), news in any_members()) {
        let merged = both(known, news.clone());
        for (path, leaf) in leaves(&news) {
            let found = at(&merged, &path);
            // An empty object says nothing about what an object holds already.
            let fits = if leaf == json!({}) { found.is_some_and(Value::is_object) } else { found == Some(&leaf) };
            prop_assert!(fits, "{path:?}: {found:?} is not {leaf}");
        }
    }

    #[test]
    fn what_nobody_spoke_of_stays(known in any_members(), news in any_members()) {
        let merged = both(known.clone(), news.clone());
        for (path, leaf) in leaves(&known) {
            // Touched: the news say something of this path, of one above it or one below it.
            let touched = (1..path.len()).any(|upto| {
                at(&news, &path[..upto]).is_some_and(|value| !value.is_object())
            }) || at(&news, &path).is_some();
            prop_assert!(touched || at(&merged, &path) == Some(&leaf), "{path:?}");
        }
    }

    #[test]
    fn saying_it_twice_changes_nothing(known in any_members(), news in any_members()) {
        let once = both(known, news.clone());
        prop_assert_eq!(both(once.clone(), news), once);
    }

    #[test]
    fn whatever_a_tool_sends_the_phases_rise_and_end_once(
        phases in proptest::collection::vec(0..4_usize, 0..8),
        failed in any::<bool>(),
    ) {
        let words = [Phase::Wait, Phase::Doing, Phase::Success, Phase::Error];
        let mut machine = StatusMachine::default();
        let mut shown: Vec<Phase> = phases
            .iter()
            .filter_map(|&word| machine.update(StatusUpdate::new(words[word])))
            .map(|update| update.phase)
            .collect();
        prop_assert!(shown.iter().all(|phase| !phase.is_terminal()));
        let closing = if failed { Closing::Error("failed") } else { Closing::Success };
        shown.extend(machine.close(closing).map(|update| update.phase));
        prop_assert!(shown.is_sorted());
        let end = if failed { Phase::Error } else { Phase::Success };
        prop_assert_eq!(shown.last().copied(), (!phases.is_empty()).then_some(end));
    }

    #[test]
    fn a_merge_replaces_what_is_no_object(value in any_value()) {
        let known = object(json!({"a": [1, 2]}));
        let news = object(json!({ "a": value }));
        prop_assert_eq!(both(known, news.clone()), news);
    }
}
