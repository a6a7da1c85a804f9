//! What viewers of a run see.

use std::time::Duration;

use toolcrib_core::run::{RunId, Seq};
use toolcrib_tool::{CallId, StatusUpdate};
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
    /// The model is writing the arguments of a call, and the tool has a preview of it. The call may still be lost.
    Preview {
        /// The run.
        run: &'a RunId,
        /// The call.
        call: &'a CallId,
        /// The tool's own name.
        tool: &'a str,
        /// What to show.
        status: StatusUpdate,
    },
    /// A call of a tool for polling waits, so that the tool is not asked too often.
    PollWait {
        /// The run.
        run: &'a RunId,
        /// The tool.
        tool: &'a str,
        /// How long.
        wait: Duration,
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
