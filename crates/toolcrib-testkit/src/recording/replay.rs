//! Answers calls from a recording, without running a tool.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcrib_core::RegistrySnapshot;
use toolcrib_tool::{Arguments, Body, BoxFuture, CallContext, Tool, ToolError, ToolOutcome};

use super::{RecordedOutcome, Recording};

/// Answers calls with the recorded answers for the same tool and arguments, in the recorded order. A call that was not
/// recorded, or not as often, fails with kind `unavailable`, and the message names it. Clones share one replay.
///
/// Arguments are compared by meaning: the order of keys and blanks make no difference.
#[derive(Debug, Clone)]
pub struct Replay {
    rest: Arc<Mutex<RemainingAnswers>>,
}

/// Tool and canonical arguments → the remaining answers.
type RemainingAnswers = HashMap<(String, String), VecDeque<RecordedOutcome>>;

impl Replay {
    /// Plays this recording from its beginning.
    pub fn new(recording: Recording) -> Self {
        let mut rest = RemainingAnswers::new();
        for call in recording.calls {
            rest.entry(call.key()).or_default().push_back(call.outcome);
        }
        Self { rest: Arc::new(Mutex::new(rest)) }
    }

    /// A copy of a snapshot for a separate registry in which every tool answers from the recording, including
    /// unavailable tools. Tools that the client runs stay with the client.
    pub fn wrap(&self, snapshot: &RegistrySnapshot) -> RegistrySnapshot {
        snapshot.with_bodies(|entry| match entry.body {
            Body::Client => None,
            _ => Some(Body::shared(Arc::new(self.clone()))),
        })
    }

    /// The unused answers: tool, arguments as JSON, and how many; sorted.
    pub fn unused(&self) -> Vec<(String, String, usize)> {
        let rest = self.rest();
        let left = rest.iter().filter(|(_, answers)| !answers.is_empty());
        let mut unused: Vec<_> = left
            .map(|((tool, arguments), answers)| (tool.clone(), arguments.clone(), answers.len()))
            .collect();
        unused.sort();
        unused
    }

    fn rest(&self) -> MutexGuard<'_, RemainingAnswers> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next answer, if it is of the wanted kind.
    fn next(
        &self,
        arguments: &Arguments,
        cx: &CallContext,
        wanted: impl FnOnce(&RecordedOutcome) -> bool,
    ) -> Option<RecordedOutcome> {
        let key = (cx.definition().name().to_owned(), arguments.exact().to_json());
        let mut rest = self.rest();
        let answers = rest.get_mut(&key)?;
        if answers.front().is_some_and(wanted) { answers.pop_front() } else { None }
    }
}

impl Tool for Replay {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let Some(outcome) = self.next(&arguments, cx, |_| true) else {
                return Err(ToolError::unavailable(format!(
                    "the recording has no further call of `{}` with {}",
                    cx.definition().name(),
                    arguments.exact().to_json()
                ))
                .with_hint("For the developer: record the session again."));
            };
            outcome.into_outcome()
        })
    }

    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let refused =
                |outcome: &RecordedOutcome| matches!(outcome, RecordedOutcome::Refused(_));
            match self.next(arguments, cx, refused) {
                Some(refused) => refused.into_outcome().map(|_| ()),
                None => Ok(()),
            }
        })
    }
}
