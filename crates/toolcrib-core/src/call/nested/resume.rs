//! Resuming a call after its nested call was decided on.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_tool::{CallId, ErrorKind, ToolError, ToolResult};

use super::{LiveCalls, Repetition, ResumePermit, RootStart, make};
use crate::call::pipeline;
use crate::call::tool_run::cut_short;
use crate::call::turn::Turn;
use crate::suspension::{Answer, Grant, Granted, Suspension};

impl LiveCalls {
    /// Resumes a call of this process. Returns the grant and the permit if the call is not alive here. `refused`
    /// is the reason if its client lost its rights.
    pub(crate) async fn resume(
        &self,
        turn: &Turn,
        grant: Grant,
        permit: ResumePermit,
        refused: Option<String>,
    ) -> Result<Answer, (Grant, ResumePermit)> {
        let Some(living) = self.take(grant.suspension().id()) else { return Err((grant, permit)) };
        // It is counted as running for as long as it lives.
        drop(permit);
        Ok(living.resume(turn, grant, refused).await)
    }
}

impl Turn {
    /// Resumes a call whose future is gone by making it again.
    pub(crate) async fn resume_again(&self, grant: Grant, permit: ResumePermit) -> Answer {
        let turn = self.with_values(grant.suspension().caller().values());
        let grant = Arc::new(grant);
        // For a nested call, its root call is made again.
        let start = RootStart { permit: Some(permit), ..RootStart::alone() };
        let (call, start) = match grant.suspension().outermost_call() {
            Some(call) => (call, RootStart { repetition: Some(Repetition::of(grant)), ..start }),
            None => (grant.call(), RootStart { grant: Some(grant), ..start }),
        };
        make(&turn, call, start).await.into_answer()
    }

    /// Resumes a call whose future was in another process, or has ended here.
    pub(crate) async fn resume_gone(&self, grant: Grant, permit: ResumePermit) -> Answer {
        let suspension = grant.suspension();
        let within = suspension.within();
        let is_ours = within.is_some_and(|within| {
            within.alive_in.as_deref() == Some(self.state.shared.live_calls.executor())
        });
        let is_repeatable = within.is_some_and(crate::suspension::Within::is_repeatable);
        let is_wanted = !matches!(grant.granted(), Granted::Cancelled);
        if is_repeatable && is_wanted && !is_ours {
            return self.resume_again(grant, permit).await;
        }
        let error = match grant.granted() {
            Granted::Cancelled => {
                let message = "the call was cancelled while a call that it had made waited";
                cut_short(ToolError::new(ErrorKind::Cancelled, message), is_repeatable)
            }
            _ if is_ours => {
                let message = "the call ended before the call that it had made was decided on";
                cut_short(ToolError::new(ErrorKind::Cancelled, message), is_repeatable)
            }
            _ => unfinished(suspension),
        };
        self.refused_answer(suspension, error)
    }

    /// The answer of a waiting call that does not go on.
    pub(crate) fn refused_answer(&self, suspension: &Suspension, error: ToolError) -> Answer {
        if let Some(call) = suspension.outermost_call() {
            pipeline::refused(self, call, error).into_answer()
        } else {
            let (id, tool) = (CallId::new(suspension.call_id()), suspension.called_tool());
            Answer::Done(ToolResult::failure(id, tool, error, Duration::ZERO))
        }
    }
}

/// The error for a call that was running in a process that has ended.
pub(crate) fn unfinished(suspension: &Suspension) -> ToolError {
    let (outer, inner) = (suspension.called_tool(), suspension.tool());
    ToolError::outcome_unknown(format!(
        "the server ended while `{outer}` was at work and waited for its call of `{inner}`; `{inner}` \
         was not run, and what `{outer}` had done by then is not known"
    ))
}
