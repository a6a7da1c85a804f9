//! Calls that need not run because their answer is there, and answers that others wait for.

use std::sync::Arc;

use toolcrib_tool::{ToolError, ToolOutput};

use super::pipeline_run::{Leave, PipelineRun, Source};
use crate::cache::{Asked, Key, Run, Scope};

impl PipelineRun<'_> {
    /// Ends the call with the answer that is there or on its way. If there is none, returns the duty to run
    /// the call; `None` for tools whose calls always run.
    pub(super) async fn answered_before(
        &mut self,
        key: Option<&Key>,
    ) -> Result<Option<Run>, Leave> {
        let Some(key) = key else { return Ok(None) };
        match self.state().shared.answers.ask(key, self.scope()).await {
            Asked::Run(run) => Ok(Some(run)),
            Asked::Kept(kept) => {
                (self.source, self.spilled) = (Source::Cache, Some(kept.spilled));
                Err(Leave::Answered(Arc::unwrap_or_clone(kept.output)))
            }
            Asked::Shared(outcome, spilled) => {
                (self.source, self.spilled) = (Source::SameCall, Some(spilled));
                let outcome = outcome.map(Arc::unwrap_or_clone).map_err(Arc::unwrap_or_clone);
                Err(outcome.into())
            }
        }
    }

    /// Hands the outcome to those who wait for the same; `shareable`: it depends on nothing beyond its key.
    pub(super) fn publish(
        &mut self,
        run: Run,
        outcome: Result<ToolOutput, ToolError>,
        shareable: bool,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = outcome.map(Arc::new).map_err(Arc::new);
        let answers = &self.state().shared.answers;
        self.spilled = Some(answers.publish(run, self.scope(), &outcome, shareable));
        outcome.map(Arc::unwrap_or_clone).map_err(Arc::unwrap_or_clone)
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            session: self.state().session.as_deref(),
            batch: self.origin.batch,
            nested: self.origin.lineage.depth() > 0,
        }
    }
}
