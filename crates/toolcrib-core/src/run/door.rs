//! What a run needs of the turn it drives.

use std::future::Future;

use toolcrib_tool::{ToolCall, ToolError, ToolOutput};

use crate::clock::Timestamp;
use crate::suspension::{Answer, Grant, Suspension, SuspensionStore};

/// A turn with a suspension store, as a [`Run`](super::Run) sees it. Sealed: nobody else can resume
/// calls.
pub trait Door: Sealed + Sync {
    /// Makes the calls; answers in their order.
    #[doc(hidden)]
    fn start_batch(&self, calls: Vec<ToolCall>) -> impl Future<Output = Vec<Answer>> + Send;

    /// Lets a call go on that was granted something.
    #[doc(hidden)]
    fn resume(&self, grant: Grant) -> impl Future<Output = Answer> + Send;

    /// Holds what a client sent against what the tool promises.
    #[doc(hidden)]
    fn accept(&self, suspension: &Suspension, output: ToolOutput) -> Result<ToolOutput, ToolError>;

    /// Where suspended calls wait, if anywhere.
    #[doc(hidden)]
    fn store(&self) -> Option<&dyn SuspensionStore>;

    /// On whose behalf.
    #[doc(hidden)]
    fn identity(&self) -> &str;

    /// The time.
    #[doc(hidden)]
    fn now(&self) -> Timestamp;
}

/// Keeps other crates from being a door.
pub trait Sealed {}
