//! The status of one execution: a state machine for status updates.

use serde_json::{Map, Value};
use toolcrib_tool::{Phase, StatusUpdate};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing<'a> {
    /// It succeeded.
    Success,
    /// It failed, with this message for people.
    Error(&'a str),
}

/// The status of one execution: `WAIT → DOING → SUCCESS | ERROR`.
///
/// - `params` and `metadata` of the updates are merged: objects recursively, while arrays and
///   scalars are replaced. A `result`, a `tip` and an `error` replace the previous one.
/// - A phase never goes back. An update with an earlier phase (`WAIT` after `DOING`) keeps the
///   current phase; the rest of the update counts.
/// - A terminal update is held until the call's result is recorded. Later updates are ignored and
///   counted.
/// - The outcome of the call decides in the end: see [`close`](Self::close).
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
    /// The merged status; more updates may follow.
    Open(StatusUpdate),
    /// A terminal status that waits for the call's result.
    Held(StatusUpdate),
    /// Over.
    Closed,
}

impl StatusMachine {
    /// Applies an update; returns the merged status to publish.
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

    /// Ends the status with the call; returns the terminal status to publish, or `None` if the call
    /// had no status.
    ///
    /// If a tool reported `SUCCESS` and failed, `ERROR` is published without the `result`; if it
    /// reported `ERROR` and succeeded, `SUCCESS` without the `error`.
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

/// The merged status after an update.
fn merged(mut known: StatusUpdate, update: StatusUpdate) -> StatusUpdate {
    let StatusUpdate { phase, tip, params, result, error, metadata, .. } = update;
    // The phases are declared in chronological order.
    known.phase = known.phase.max(phase);
    known.tip = tip.or(known.tip);
    known.result = result.or(known.result);
    known.error = error.or(known.error);
    merge(&mut known.params, params);
    merge(&mut known.metadata, metadata);
    known
}

/// Merges `news` into `known`: objects recursively, everything else is replaced.
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
