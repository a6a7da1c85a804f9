//! What a call needs before its tool can run: an instance, a permit, its turn in the batch.

use toolcrib_tool::ToolError;

use super::pipeline_run::{Candidate, PipelineRun};
use crate::admission::Permit;
use crate::call::batch::Presence;
use crate::lifecycle::Instance;
use crate::registry::ToolSlot;

impl<'a> PipelineRun<'a> {
    /// The instance that the call runs on: the shared one, or a new one, which has to pass the
    /// checks that the shared one passed before consent.
    pub(super) async fn instance(
        &self,
        slot: &'a ToolSlot,
        call: &mut Candidate<'a>,
    ) -> Result<Instance<'a>, ToolError> {
        if let Some(shared) = call.shared.take() {
            return Ok(shared);
        }
        let own = Box::pin(Instance::own(&slot.entry.body, &call.cx, call.limit)).await?;
        let check = call.check_of(&own);
        check.passes(&call.checked.arguments).await?;
        self.check_code(Some(check))?;
        Ok(own)
    }

    /// The permit of the call: the breaker is closed, a slot is free, the rate allows it.
    pub(super) async fn admit(
        &self,
        slot: &'a ToolSlot,
        call: &Candidate<'a>,
    ) -> Result<Permit<'a>, ToolError> {
        let (state, edition) = (self.state(), call.checked.compiled.edition);
        let definition = &slot.entry.definition;
        let admission = &state.shared.admission;
        admission.admit(definition, edition, &state.identity, self.origin.lineage).await
    }

    /// Waits until the calls that must not run beside this one have ended.
    pub(super) async fn take_its_turn(&self, slot: &ToolSlot) -> Presence {
        let lineage = self.origin.lineage;
        let alone = lineage.runs_alone(&slot.entry.definition);
        Presence::enter(lineage.barrier(), alone).await
    }
}
