//! The status of one execution: updates come in, what a person is shown comes out.

use serde_json::{Map, Value};
use toolcrib_tool::{Phase, StatusUpdate};

/// How a call really ended, as far as its status is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing<'a> {
    /// It succeeded.
    Success,
    /// It failed, and this is what to tell a person.
    Error(&'a str),
}

/// The status of one execution: `WAIT → DOING → SUCCESS | ERROR`.
///
/// - What the updates say of `params` and `metadata` is merged: objects member by member, however
///   deep; arrays and scalars are replaced. A `result`, a `tip` and an `error` replace the one
///   before.
/// - A phase never goes back. An update that would (`WAIT` after `DOING`) keeps the phase that was
///   reached; the rest of what it says counts, for it may be news.
/// - A terminal update is held until the call's result is recorded. Whatever comes after it is
///   ignored, and counted.
/// - The outcome of the call has the last word: see [`close`](Self::close).
#[derive(Debug, Default)]
pub(crate) struct StatusMachine {
    stage: Stage,
    ignored: u64,
}

#[derive(Debug, Default)]
enum Stage {
    /// Nothing was said.
    #[default]
    Unset,
    /// Said, and more may follow: everything that is known.
    Open(StatusUpdate),
    /// A terminal status waits for the result of the call.
    Held(StatusUpdate),
    /// Over.
    Closed,
}

impl StatusMachine {
    /// Takes an update; returns what to publish now, which is everything that is known.
    pub(crate) fn update(&mut self, update: StatusUpdate) -> Option<StatusUpdate> {
        let known = match std::mem::take(&mut self.stage) {
            Stage::Unset => update,
            Stage::Open(known) => merged(known, update),
            over @ (Stage::Held(_) | Stage::Closed) => {
                self.stage = over;
                self.ignored += 1;
                return None;
            }
        };
        if known.phase.is_terminal() {
            self.stage = Stage::Held(known);
            return None;
        }
        self.stage = Stage::Open(known.clone());
        Some(known)
    }

    /// Ends the status with the call; returns the terminal status to publish, or nothing where the
    /// call never had a status.
    ///
    /// A tool that said `SUCCESS` and failed is published as `ERROR`, without the `result` that
    /// never was; one that said `ERROR` and succeeded as `SUCCESS`, without the `error`.
    pub(crate) fn close(&mut self, closing: Closing<'_>) -> Option<StatusUpdate> {
        let (Stage::Open(mut last) | Stage::Held(mut last)) =
            std::mem::replace(&mut self.stage, Stage::Closed)
        else {
            return None;
        };
        match closing {
            Closing::Success => {
                last.phase = Phase::Success;
                last.error = None;
            }
            Closing::Error(message) => {
                let said = if last.phase == Phase::Error { last.error.take() } else { None };
                last.error = Some(said.unwrap_or_else(|| message.to_owned()));
                if last.phase == Phase::Success {
                    last.result = None;
                }
                last.phase = Phase::Error;
            }
        }
        Some(last)
    }

    /// How many updates came after the terminal one.
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// What is known after an update.
fn merged(mut known: StatusUpdate, update: StatusUpdate) -> StatusUpdate {
    let StatusUpdate { phase, tip, params, result, error, metadata, .. } = update;
    // The phases are declared in the order in which they follow each other.
    known.phase = known.phase.max(phase);
    known.tip = tip.or(known.tip);
    known.result = result.or(known.result);
    known.error = error.or(known.error);
    merge(&mut known.params, params);
    merge(&mut known.metadata, metadata);
    known
}

/// Merges `news` into `known`: objects member by member, everything else replaced.
fn merge(known: &mut Map<String, Value>, news: Map<String, Value>) {
    for (key, value) in news {
        match (known.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(news)) => merge(known, news),
            (Some(known), value) => *known = value,
            (None, value) => {
                known.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
