//! Calls that need not run because there is an answer, and publishing answers to followers.

use std::sync::Arc;

use toolcrib_tool::{ToolError, ToolOutput};

use super::pipeline_run::{AnswerSource, PipelineExit, PipelineRun};
use crate::cache::{CacheKey, LeaderDuty, Lookup, LookupScope};

impl PipelineRun<'_> {
    /// Answers the call from the cache or from a running call. Otherwise returns the duty to run
    /// the call; `None` for tools whose calls always run.
    pub(super) async fn answered_before(
        &mut self,
        key: Option<&CacheKey>,
    ) -> Result<Option<LeaderDuty>, PipelineExit> {
        let Some(key) = key else { return Ok(None) };
        match self.state().shared.answers.ask(key, self.scope()).await {
            Lookup::Miss(run) => Ok(Some(run)),
            Lookup::Hit(kept) => {
                (self.source, self.spilled) = (AnswerSource::Cache, Some(kept.spilled));
                Err(PipelineExit::Answered(Arc::unwrap_or_clone(kept.output)))
            }
            Lookup::Shared(outcome, spilled) => {
                (self.source, self.spilled) = (AnswerSource::SameCall, Some(spilled));
                let outcome = outcome.map(Arc::unwrap_or_clone).map_err(Arc::unwrap_or_clone);
                Err(outcome.into())
            }
        }
    }

    /// Publishes the outcome to followers. `shareable` states that it depends only on its key.
    pub(super) fn publish(
        &mut self,
        run: LeaderDuty,
        outcome: Result<ToolOutput, ToolError>,
        shareable: bool,
    ) -> Result<ToolOutput, ToolError> {
        let outcome = outcome.map(Arc::new).map_err(Arc::new);
        let answers = &self.state().shared.answers;
        self.spilled = Some(answers.publish(run, self.scope(), &outcome, shareable));
        outcome.map(Arc::unwrap_or_clone).map_err(Arc::unwrap_or_clone)
    }

    fn scope(&self) -> LookupScope<'_> {
        LookupScope {
            session: self.state().session.as_deref(),
            batch: self.origin.batch,
            nested: self.origin.lineage.depth() > 0,
        }
    }
}
