//! What viewers of a run see.

use std::time::Duration;

use toolcrib_core::run::{RunId, Seq};
use toolcrib_wire::model::ModelEvent;

use crate::JournalEntry;

/// What happens in a run, for viewers. Secrets are masked.
///
/// What is recorded is final. What streams is for display: after [`ModelLost`](JournalEntry::ModelLost), the text,
/// reasoning and calls that were shown since the request do not count, and the answer begins again.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A row was written to the journal.
    Recorded {
        /// The run.
        run: &'a RunId,
        /// The number of the row.
        seq: Seq,
        /// What it says.
        entry: &'a JournalEntry,
    },
    /// The model is answering.
    Model {
        /// The run.
        run: &'a RunId,
        /// The step of the answer.
        event: ModelEvent,
    },
    /// The model will be asked again.
    Retry {
        /// The run.
        run: &'a RunId,
        /// In how long.
        wait: Duration,
    },
}

/// Receives the events of runs. It must return quickly, because the run waits for it.
pub type EventListener = dyn Fn(&AgentEvent<'_>) + Send + Sync;
