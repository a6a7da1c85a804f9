//! The access of a run to its turn.

use std::future::Future;

use toolcrib_tool::{ToolCall, ToolError, ToolOutput};

use crate::Turn;
use crate::call::nested::{ResumeLocation, ResumePermit};
use crate::call::pipeline::check_data;
use crate::storage::clock::Timestamp;
use crate::suspension::{
    Answer, Grant, RedeemError, Resolution, StoreError, Suspension, SuspensionStore, client_output,
};

/// A turn with a suspension store, as a [`Run`](super::Run) uses it. Sealed, so that only this
/// crate can resume calls.
pub trait TurnAccess: Sealed + Sync {
    /// Makes the calls and returns their answers in order.
    #[doc(hidden)]
    fn start_batch(&self, calls: Vec<ToolCall>) -> impl Future<Output = Vec<Answer>> + Send;

    /// Resumes a call with its grant.
    #[doc(hidden)]
    fn resume(&self, grant: Grant, permit: ResumePermit) -> impl Future<Output = Answer> + Send;

    /// Lets a call go on, or fails while the host shuts down.
    #[doc(hidden)]
    fn permit_for(&self, _resolution: &Resolution) -> Result<ResumePermit, RedeemError> {
        Ok(ResumePermit::default())
    }

    /// Validates a client's output against the tool's output schema.
    #[doc(hidden)]
    fn accept(&self, suspension: &Suspension, output: ToolOutput) -> Result<ToolOutput, ToolError>;

    /// Checks changed arguments of a suspended call like a model's.
    #[doc(hidden)]
    fn check_changed(
        &self,
        _suspension: &Suspension,
        _arguments: &str,
    ) -> impl Future<Output = Result<(), ToolError>> + Send {
        async { Ok(()) }
    }

    /// Where a suspended call can be gone on with.
    #[doc(hidden)]
    fn resume_location(
        &self,
        _suspension: &Suspension,
    ) -> impl Future<Output = Result<ResumeLocation, StoreError>> + Send {
        async { Ok(ResumeLocation::Here) }
    }

    /// The suspension store, if there is one.
    #[doc(hidden)]
    fn store(&self) -> Option<&dyn SuspensionStore>;

    /// Whether it may approve calls.
    #[doc(hidden)]
    fn may_approve(&self) -> bool;

    /// On whose behalf.
    #[doc(hidden)]
    fn identity(&self) -> &str;

    /// The decider's name for the audit log.
    #[doc(hidden)]
    fn name(&self) -> &str;

    /// The time.
    #[doc(hidden)]
    fn now(&self) -> Timestamp;
}

/// Prevents implementations in other crates.
pub trait Sealed {}

impl Sealed for Turn {}

impl TurnAccess for Turn {
    fn start_batch(&self, calls: Vec<ToolCall>) -> impl Future<Output = Vec<Answer>> + Send {
        Turn::start_batch(self, calls)
    }

    fn resume(&self, grant: Grant, permit: ResumePermit) -> impl Future<Output = Answer> + Send {
        self.resume_permitted(grant, permit)
    }

    fn permit_for(&self, resolution: &Resolution) -> Result<ResumePermit, RedeemError> {
        self.state.permit_for(resolution)
    }

    fn accept(&self, suspension: &Suspension, output: ToolOutput) -> Result<ToolOutput, ToolError> {
        let known = self
            .state
            .slot(suspension.tool())
            .filter(|slot| slot.fingerprint() == suspension.definition_hash());
        // If the tool is gone or has changed, the call's answer reports that.
        let Some(slot) = known else { return Ok(output) };
        let shared = &self.state.shared;
        let output = client_output(&slot.entry.definition, output)?;
        // Before it is held against its schema, which quotes parts of what does not fit.
        let output = shared.mask.outcome(Ok(output))?;
        let schemas = shared.registry.schemas();
        check_data(&slot.entry.definition, schemas, output, shared.config.load().data_bytes)
    }

    fn check_changed(
        &self,
        suspension: &Suspension,
        arguments: &str,
    ) -> impl Future<Output = Result<(), ToolError>> + Send {
        Turn::check_changed(self, suspension, arguments)
    }

    fn resume_location(
        &self,
        suspension: &Suspension,
    ) -> impl Future<Output = Result<ResumeLocation, StoreError>> + Send {
        self.state.resume_location(suspension)
    }

    fn store(&self) -> Option<&dyn SuspensionStore> {
        self.state.shared.suspensions.as_deref()
    }

    fn may_approve(&self) -> bool {
        Turn::may_approve(self)
    }

    fn identity(&self) -> &str {
        &self.state.identity
    }

    fn name(&self) -> &str {
        Turn::name(self)
    }

    fn now(&self) -> Timestamp {
        self.state.shared.now()
    }
}
