//! Runs the tool of a call that has passed every check, within its time limit.

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;
use toolcrib_tool::{Arguments, CallContext, ErrorKind, ToolError, ToolOutput};

use super::{Candidate, Interruption, Interrupts, PipelineExit, PipelineRun, ReachedStage, Ready};
use crate::admission::Permit;
use crate::call::host::{ExecutorHost, Unfinished};
use crate::call::pipeline::output::{check_data, finished};
use crate::call::retry;
use crate::call::tool_run::{HeldResources, ToolRun, execute};
use crate::lifecycle::Instance;
use crate::registry::ToolSlot;
use crate::suspension::Waiting;

impl<'a> PipelineRun<'a> {
    /// Runs the tool within its time limit, which begins now: earlier waits (for a person, another
    /// call, a permit, an instance, a store) do not count.
    pub(super) async fn perform(
        &mut self,
        slot: &'a Arc<ToolSlot>,
        ready: Box<Ready<'a>>,
    ) -> Result<ToolOutput, PipelineExit> {
        let Ready { call, instance, permit, presence, run } = *ready;
        let Candidate { checked, cx, host, limit, .. } = call;
        let arguments = checked.arguments;
        let (state, definition) = (self.state(), &slot.entry.definition);
        let host = &*host;
        let begun = Instant::now();
        let limit = limit.and_then(|limit| Some((begun.checked_add(limit)?, limit)));
        if let Some(interruption) = self.interrupts.pending() {
            return Err(interruption
                .error(ReachedStage::Nothing, self.started, Some(definition))
                .into());
        }
        let delegate = instance.tool().delegates_to(arguments.as_str());
        host.begin(&permit, presence, arguments.clone(), limit, delegate, run);
        let end_when_dropped = EndWhenDropped(Some(host));
        let at_work = host.at_work();
        let interrupts = Interrupts { own: Some(at_work), ..self.interrupts };
        // If the tool asks a question, the call is suspended with its original arguments.
        let again = state.shared.suspensions.is_some().then(|| arguments.clone());
        let interrupted = OnceLock::new();
        let work = Work {
            slot,
            instance: &instance,
            cx: &cx,
            host,
            permit: &permit,
            interrupts,
            interrupted: &interrupted,
        };
        let outcome = match retry::policy(definition) {
            Some(policy) => {
                let attempt = || {
                    // Discards a result that an earlier attempt set.
                    host.take_result();
                    self.attempt(arguments.clone(), &work)
                };
                let paused = || interrupts.next();
                let retries = retry::with_retries(policy, || interrupts.latest(), paused, attempt);
                match Box::pin(retries).await {
                    Ok((outcome, attempts)) => retry::noted(outcome, attempts),
                    Err(interruption) => {
                        let _ = interrupted.set((interruption, ReachedStage::Work));
                        Err(interruption.error(ReachedStage::Work, self.started, Some(definition)))
                    }
                }
            }
            None => self.attempt(arguments, &work).await,
        };
        if self.emitter.is_some() {
            Box::pin(host.finish_speech()).await;
        }
        let ended = Instant::now();
        let (paused, run) = at_work.take_owed();
        let Unfinished { waiting, suspended } = host.take_unfinished();
        let waiting = waiting.filter(|_| outcome.is_err());
        // Work that continues elsewhere may still act for the call.
        end_when_dropped.end(!matches!(waiting, Some(Waiting::Pending { .. })));
        if let Some(suspended) = suspended {
            permit.finish(None);
            return Err(PipelineExit::Suspended(suspended, None));
        }
        if let Some(waiting) = waiting {
            permit.finish(None);
            // Followers do not wait for a person's answer.
            drop(run);
            return Err(Box::pin(self.suspend(slot, again.as_ref(), waiting)).await);
        }
        // A tool that was ended by its caller, never started, or passes on a nested timeout has not
        // run into its own limit.
        let failure = match (outcome.as_ref().err(), interrupted.get()) {
            (None, _) => None,
            (Some(error), None)
                if error.kind() == ErrorKind::Timeout && host.has_timed_out_within() =>
            {
                Some(ErrorKind::Cancelled)
            }
            (Some(error), None) => Some(error.kind()),
            (Some(_), Some((Interruption::Limit(_), ReachedStage::Work))) => {
                Some(ErrorKind::Timeout)
            }
            (Some(_), Some(_)) => Some(ErrorKind::Cancelled),
        };
        if permit.finish(failure) {
            state.paused(self.name);
        }
        // Waiting for a nested call does not count as work.
        self.worked = Some((ended - begun).saturating_sub(paused));
        self.spent = Some(ended - self.started);
        let outcome = match run {
            None => outcome,
            Some(run) => self.publish(run, outcome, !host.has_left_key()),
        };
        Ok(outcome?)
    }

    /// Runs the tool once and checks its output.
    async fn attempt(
        &self,
        arguments: Arguments,
        work: &Work<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let shared = &self.state().shared;
        let definition = &work.slot.entry.definition;
        let (cx, host) = (work.cx, work.host);
        let held = HeldResources {
            slot: work.permit.slot().cloned(),
            writing: shared.answers.writing(definition.resources()),
            lease: work.instance.lease(),
        };
        let (tool, interrupts) = (work.instance.tool(), &work.interrupts);
        let running = execute(tool, arguments, (cx, host), interrupts, self.started, held);
        let ToolRun { outcome, interrupted } = if self.origin.batch.is_some() {
            shared.polls.watch(self.name, running).await
        } else {
            running.await
        };
        if let Some(interrupted) = interrupted {
            // Only the first interruption counts.
            let _ = work.interrupted.set(interrupted);
        }
        let output = finished(self.name, outcome?, host)?;
        // Masked before it is stored or cut, because half a secret cannot be found.
        let output = shared.mask.outcome(Ok(output))?;
        check_data(definition, shared.registry.schemas(), output, self.config.data_bytes)
    }
}

/// Ends the work of a call, even if its future is dropped.
struct EndWhenDropped<'h>(Option<&'h ExecutorHost>);

impl EndWhenDropped<'_> {
    /// The tool has returned. With `is_over`, nothing continues elsewhere.
    fn end(mut self, is_over: bool) {
        if let Some(host) = self.0.take() {
            host.end(is_over);
        }
    }
}

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        if let Some(host) = self.0 {
            host.end(true);
        }
    }
}

/// The inputs of an attempt.
struct Work<'w> {
    slot: &'w ToolSlot,
    instance: &'w Instance<'w>,
    cx: &'w CallContext,
    host: &'w ExecutorHost,
    permit: &'w Permit<'w>,
    interrupts: Interrupts<'w>,
    /// What interrupted the work, if anything did.
    interrupted: &'w OnceLock<(Interruption, ReachedStage)>,
}
