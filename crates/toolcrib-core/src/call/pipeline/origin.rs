//! Where a call comes from, and the answer to a call that is not admitted.

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
    /// Its ancestors.
    pub(crate) lineage: &'a Lineage,
    /// The parent call's cancellation token.
    pub(crate) maker: Option<&'a Cancellation>,
    /// How the parent made it.
    pub(crate) made: Option<&'a MadeCall>,
    /// The single-flight table of its batch.
    pub(crate) batch: Option<&'a Flights>,
    /// Its index in the batch, from 0.
    pub(crate) position: usize,
    /// The decision, if the call was suspended.
    pub(crate) grant: Option<&'a Grant>,
    /// Set if a nested call was decided on and this call is made again.
    pub(crate) repetition: Option<&'a Repetition>,
    /// Set if the call has waited, and whoever lets it go on has asked whether it may.
    pub(crate) is_permitted: bool,
}

impl<'a> Origin<'a> {
    /// For a call made by `lineage` that is not part of a batch.
    pub(crate) fn alone(lineage: &'a Lineage) -> Self {
        let (maker, made, batch, grant, repetition) = Default::default();
        Self { lineage, maker, made, batch, position: 0, grant, repetition, is_permitted: false }
    }

    /// The call's cancellation token.
    pub(crate) fn cancellation(&self) -> &'a Cancellation {
        self.maker.unwrap_or_else(|| self.lineage.outermost().cancellation())
    }
}

/// The answer to a call that is not admitted, or cannot be resumed.
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
