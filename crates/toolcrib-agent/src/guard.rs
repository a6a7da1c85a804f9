//! Detects a model that repeats itself: the same calls with the same answers, alone or in a cycle.

use serde_json::Value;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_tool::ToolResult;

/// The longest cycle that is detected.
const MAX_PERIOD: usize = 4;
/// Rounds of a cycle that may run. A call of the next one is not run.
const MAX_ROUNDS: usize = 2;

/// The recent calls of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoopGuard {
    recent: Vec<(Fingerprint, Answered)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Answered {
    With(Fingerprint),
    /// Not run, because it repeated an earlier call: it continues the cycle.
    Refused,
}

impl Answered {
    fn is_same(self, other: Self) -> bool {
        self == other || self == Self::Refused || other == Self::Refused
    }
}

/// What identifies a call: its tool and its arguments, however they are written.
pub(crate) fn call_key(tool: &str, arguments: &str) -> Fingerprint {
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
    Fingerprint::of_json(&Value::from(vec![Value::from(tool), arguments]))
}

impl LoopGuard {
    /// Records a call with its answer.
    pub(crate) fn record(&mut self, key: Fingerprint, result: &ToolResult) {
        self.push(key, Answered::With(Fingerprint::of_json(&Value::from(result.text()))));
    }

    /// Records a call that was not run because it repeats others.
    pub(crate) fn record_refused(&mut self, key: Fingerprint) {
        self.push(key, Answered::Refused);
    }

    fn push(&mut self, key: Fingerprint, answered: Answered) {
        self.recent.push((key, answered));
        let excess = self.recent.len().saturating_sub(MAX_PERIOD * MAX_ROUNDS);
        self.recent.drain(..excess);
    }

    /// Whether a call would begin or continue the third round of a cycle; returns the cycle's length.
    pub(crate) fn repeats(&self, key: Fingerprint) -> Option<usize> {
        (1..=MAX_PERIOD).find(|&period| {
            let Some(start) = self.recent.len().checked_sub(period * MAX_ROUNDS) else {
                return false;
            };
            let (first, second) = self.recent[start..].split_at(period);
            let is_cycle = first.iter().zip(second).all(|(a, b)| a.0 == b.0 && a.1.is_same(b.1));
            is_cycle && first[0].0 == key
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolcrib_tool::CallId;

    use super::*;

    /// Makes the calls of a script, each a name and an answer, and returns the positions of those that were not run.
    fn refused(script: &[(&str, &str)]) -> Vec<usize> {
        let mut guard = LoopGuard::default();
        let mut refused = Vec::new();
        for (position, (name, answer)) in script.iter().enumerate() {
            let key = call_key(name, "{}");
            if guard.repeats(key).is_some() {
                refused.push(position);
                guard.record_refused(key);
            } else {
                let output = (*answer).into();
                let result = ToolResult::success(CallId::new("1"), *name, output, Duration::ZERO);
                guard.record(key, &result);
            }
        }
        refused
    }

    #[test]
    fn the_third_round_of_a_cycle_of_up_to_four_calls_is_not_run() {
        let names = ["a", "b", "c", "d"];
        for period in 1..=4 {
            let script: Vec<_> = (0..period * 4).map(|at| (names[at % period], "same")).collect();
            let expected: Vec<_> = (period * 2..period * 4).collect();
            assert_eq!(refused(&script), expected, "period {period}");
        }
    }

    /// Calls that wait for something, or return to it after work: none of them is a loop.
    #[test]
    fn no_polling_and_no_work_in_rounds_is_stopped() {
        let numbered = |call: &'static str, count: usize| -> Vec<(&'static str, String)> {
            (0..count).map(|at| (call, format!("{call} {at}"))).collect()
        };
        let rounds = |calls: &[&'static str], count: usize| -> Vec<(&'static str, String)> {
            let round = |at: usize| calls.iter().map(move |call| (*call, format!("{call} {at}")));
            (0..count).flat_map(round).collect()
        };
        let same = |calls: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            calls.iter().map(|(call, answer)| (*call, (*answer).to_owned())).collect()
        };
        let corpus = [
            // A job's progress, a log that grows, a queue that empties.
            numbered("status", 40),
            numbered("tail", 40),
            rounds(&["status", "wait"], 20),
            rounds(&["list", "take", "mark"], 20),
            // Edit and test until it passes: the tests fail in another way each time.
            rounds(&["edit", "test"], 20),
            rounds(&["read", "edit", "build", "test"], 20),
            // Two equal answers with something else in between. Tools whose answer stays the same for longer are tools for
            // polling, which are not recorded at all.
            same(&[
                ("status", "10 %"),
                ("wait", ""),
                ("status", "10 %"),
                ("note", "1"),
                ("status", "10 %"),
            ]),
            // The same file is read again after every change of another one.
            same(&[
                ("read a", "x"),
                ("edit b", "1"),
                ("read a", "x"),
                ("edit b", "2"),
                ("read a", "x"),
                ("edit b", "3"),
            ]),
            same(&[
                ("test", "red"),
                ("test", "red"),
                ("edit", "1"),
                ("test", "red"),
                ("test", "red"),
                ("edit", "2"),
            ]),
            // The wait changes nothing, the question does.
            same(&[
                ("wait", ""),
                ("ask", "no 1"),
                ("wait", ""),
                ("ask", "no 2"),
                ("wait", ""),
                ("ask", "yes"),
            ]),
        ];
        for script in &corpus {
            let script: Vec<_> =
                script.iter().map(|(call, answer)| (*call, answer.as_str())).collect();
            assert_eq!(refused(&script), Vec::<usize>::new(), "{script:?}");
        }
    }

    /// Loops of one to four calls, after some honest work: each is stopped in its third round, so none reaches a fourth.
    #[test]
    fn every_stuck_model_is_stopped_by_the_fourth_round() {
        let loops: [&[(&str, &str)]; 8] = [
            &[("read a", "not found")],
            &[("run", "exit status 1")],
            &[("read a", "x"), ("read b", "y")],
            &[("edit", "no match"), ("read", "text")],
            &[("a", "1"), ("a", "2"), ("b", "3")],
            &[("search", "nothing"), ("list", "empty"), ("search", "nothing")],
            &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")],
            &[("edit", "done"), ("build", "error"), ("undo", "done"), ("build", "ok")],
        ];
        for before in 0..6 {
            for round in loops {
                let work: Vec<(String, String)> =
                    (0..before).map(|at| (format!("work {at}"), format!("{at}"))).collect();
                let work = work.iter().map(|(call, answer)| (call.as_str(), answer.as_str()));
                let script: Vec<_> =
                    work.chain(round.iter().copied().cycle().take(round.len() * 4)).collect();
                let first = refused(&script).first().copied();
                let third = before + round.len() * 2;
                let is_third = first.is_some_and(|at| (third..third + round.len()).contains(&at));
                assert!(is_third, "{round:?} after {before} calls: {first:?}");
            }
        }
    }

    #[test]
    fn a_call_whose_answer_changes_is_never_refused() {
        let answers: Vec<String> = (0..40).map(|at| format!("{at} % done")).collect();
        let script: Vec<_> = answers.iter().map(|answer| ("status", answer.as_str())).collect();
        assert_eq!(refused(&script), Vec::<usize>::new());
    }

    #[test]
    fn another_call_in_between_ends_the_cycle() {
        let script = [("a", "x"), ("a", "x"), ("b", "y"), ("a", "x"), ("a", "x"), ("a", "x")];
        assert_eq!(refused(&script), [5]);
    }

    #[test]
    fn arguments_are_compared_by_value() {
        assert_eq!(call_key("a", r#"{"x":1,"y":2}"#), call_key("a", r#"{ "y": 2, "x": 1 }"#));
        assert_ne!(call_key("a", r#"{"x":1}"#), call_key("b", r#"{"x":1}"#));
        assert_ne!(call_key("a", "{broken"), call_key("a", "{}"));
    }
}
