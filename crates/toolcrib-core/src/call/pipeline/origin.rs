//! Where a call comes from, and the answer to one that is not let in.

use tokio::time::Instant;
use toolcrib_tool::{ToolCall, ToolError, ToolResult};

use super::answer::{Answered, SideOutput};
use super::record::CallRecord;
use crate::admission::Lineage;
use crate::cache::Flights;
use crate::call::cancellation::Cancellation;
use crate::call::nested::Repetition;
use crate::call::turn::Turn;
use crate::observability::audit::trail::End;
use crate::suspension::{Grant, MadeCall};

/// Where a call comes from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The calls it was made from.
    pub(crate) lineage: &'a Lineage,
    /// What cancels the call that made it.
    pub(crate) maker: Option<&'a Cancellation>,
    /// How that one made it.
    pub(crate) made: Option<&'a MadeCall>,
    /// The flights of the batch it is part of.
    pub(crate) batch: Option<&'a Flights>,
    /// Its place in that batch, from 0.
    pub(crate) position: usize,
    /// What was decided about the call, if it was suspended.
    pub(crate) grant: Option<&'a Grant>,
    /// A call within it was suspended and decided on, and this one is made again.
    pub(crate) repetition: Option<&'a Repetition>,
}

impl<'a> Origin<'a> {
    /// Of a call made by `lineage` that is not part of a batch.
    pub(crate) fn alone(lineage: &'a Lineage) -> Self {
        let (maker, made, batch, grant, repetition) = Default::default();
        Self { lineage, maker, made, batch, position: 0, grant, repetition }
    }

    /// What cancels the call.
    pub(crate) fn cancellation(&self) -> &'a Cancellation {
        self.maker.unwrap_or_else(|| self.lineage.outermost().cancellation())
    }
}

/// The answer to a call that is not let in, or cannot go on.
pub(crate) fn refused(turn: &Turn, call: ToolCall, error: ToolError) -> Answered {
    let started = Instant::now();
    let (id, name, raw) = call.into_parts();
    let known = turn.state.slot(&name).map(|slot| &**slot);
    let when = (started, &turn.state.cancellation);
    let record = CallRecord::begin(&turn.state, &id, &name, known, &raw, when);
    let duration = started.elapsed();
    record.end(End::failed(&error, duration));
    let result = ToolResult::failure(id, name, error, duration);
    let limit = turn.state.shared.config.load().output_chars;
    Answered { result, limit, side: SideOutput::default() }
}
