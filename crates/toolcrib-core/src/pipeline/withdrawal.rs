//! Calls that are withdrawn: by their turn, by a drop, or because their executor ends.

use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::future::{Either, select};
use tokio::time::Instant;
use toolcrib_tool::{ErrorKind, ToolError};

use crate::execution::{cut_short, poll_once};
use crate::lifecycle::withdrawn;
use crate::registry::Slot;
use crate::turn::State;

/// Who has withdrawn a call.
pub(super) enum Withdrawn {
    /// Its turn was cancelled, or its future dropped.
    ByCaller,
    /// The executor's grace is over.
    ByShutdown,
}

impl Withdrawn {
    pub(super) fn error(self, started: Instant, slot: Option<&Slot>) -> ToolError {
        let read_only = slot.is_none_or(|slot| slot.entry.definition.annotations().read_only);
        match self {
            Self::ByShutdown => withdrawn(read_only),
            Self::ByCaller => {
                let spent = started.elapsed();
                let message = format!("it was withdrawn after {spent:.1?}");
                cut_short(ToolError::new(ErrorKind::Cancelled, message), read_only)
            }
        }
    }
}

/// Runs `work` until the call is withdrawn. Work that is through at once pays nothing for that.
pub(super) async fn unless_cancelled<F: Future>(
    state: &State,
    mut work: Pin<&mut F>,
) -> Result<F::Output, Withdrawn> {
    if state.cancellation.is_cancelled() {
        return Err(Withdrawn::ByCaller);
    }
    if let Poll::Ready(output) = poll_once(work.as_mut()).await {
        return Ok(output);
    }
    let turn = pin!(state.cancellation.cancelled());
    let executor = pin!(state.shared.shutdown.cancelled());
    match select(work, select(turn, executor)).await {
        Either::Left((output, _)) => Ok(output),
        Either::Right((Either::Left(_), _)) => Err(Withdrawn::ByCaller),
        Either::Right((Either::Right(_), _)) => Err(Withdrawn::ByShutdown),
    }
}
