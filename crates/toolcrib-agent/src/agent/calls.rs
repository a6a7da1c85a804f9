//! Runs the calls of a turn.

use std::pin::Pin;
use std::time::Duration;

use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::Answer;
use toolcrib_core::{Toolset, Turn};
use toolcrib_tool::{CallId, ToolCall, ToolResult};

use super::AgentError;
use super::driver::Driver;
use crate::children::tools::ATTEMPT_COMPLETION;
use crate::entry::{JournalEntry, PlannedCall, StartedCall};
use crate::run::lost;

impl Driver<'_> {
    /// Runs calls. They are in the journal before they start.
    pub(super) async fn call(&mut self, planned: Vec<PlannedCall>) -> Result<(), AgentError> {
        let turn = self.turn.take();
        let turn = match (&self.agent.completion, planned.as_slice()) {
            (Some(own), [only]) if *only.tool == *ATTEMPT_COMPLETION => {
                let options = self.agent.turn_options(&self.id, self.time_left());
                own.turn(options.toolset(Toolset::new()))
            }
            _ => turn.unwrap_or_else(|| self.agent.turn(&self.id, self.time_left())),
        };
        let (mut calls, mut started, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for call in planned {
            let PlannedCall { id, tool, arguments, lost: before } = call;
            let start = started_call(&turn, &id, &tool);
            let is_same = |before: &StartedCall| before.definition == start.definition;
            if before.as_ref().is_some_and(|before| !start.repeatable || !is_same(before)) {
                let result = ToolResult::failure(id, tool.as_ref(), lost(), Duration::ZERO);
                unknown.push(finished(result));
            } else {
                calls.push(ToolCall::new(id.as_str(), tool, arguments));
                started.push(start);
            }
        }
        if !unknown.is_empty() {
            self.append(unknown).await?;
        }
        if calls.is_empty() {
            return Ok(());
        }
        if !self.wait_for_poll(&calls).await {
            return Ok(());
        }
        self.append(vec![JournalEntry::CallsStarted { calls: started }]).await?;
        let answers = self.until_stopped(&turn, Box::pin(turn.start_batch(calls))).await;
        let entry = |answer| match answer {
            Answer::Done(result) => finished(result),
            Answer::Suspended(suspension) => JournalEntry::CallSuspended { suspension },
        };
        self.append(answers.into_iter().map(entry).collect()).await
    }

    /// Does work of a turn. If the run is to stop, running calls are cancelled, and their answers are still waited for.
    pub(super) async fn until_stopped<T>(
        &self,
        turn: &Turn,
        mut work: Pin<Box<impl Future<Output = T> + ?Sized>>,
    ) -> T {
        tokio::select! {
            done = &mut work => done,
            () = self.control.stopped() => {
                turn.cancel();
                work.await
            }
        }
    }
}

pub(super) fn finished(result: ToolResult) -> JournalEntry {
    JournalEntry::CallFinished { result: Box::new(result), repetition: false }
}

/// How a call of a tool is recorded when it starts.
fn started_call(turn: &Turn, id: &CallId, tool: &str) -> StartedCall {
    let definition = turn.describe(tool);
    let annotations = definition.map(|definition| definition.annotations());
    StartedCall {
        id: id.clone(),
        repeatable: annotations.is_some_and(|hints| hints.read_only || hints.idempotent),
        terminal: definition
            .is_some_and(|definition| definition.terminal() || definition.final_output()),
        definition: definition.map(|definition| Fingerprint::of_json(&definition.to_full_value())),
    }
}
