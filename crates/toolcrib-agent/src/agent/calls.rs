//! Runs the calls of a turn. Calls of tools for polling are not made too often.

use std::collections::HashSet;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use toolcrib_core::events::{Event, EventReader};
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::Answer;
use toolcrib_core::{Toolset, Turn};
use toolcrib_tool::{CallId, ToolCall, ToolResult};

use super::asking::sleep_for;
use super::driver::Driver;
use super::{AgentError, AgentEvent};
use crate::entry::{JournalEntry, PlannedCall, StartedCall};
use crate::run::{after_asking, lost};
use crate::sub_agents::tools::ATTEMPT_COMPLETION;

/// Why somebody is asked about a call that ran when a process ended.
const LOST: &str = "it ran when the process of its run ended, and whether it has taken effect is not known: approve it only if \
                    it may run again";

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
        let mut asked = Vec::new();
        for call in planned {
            let PlannedCall { id, tool, arguments, lost: before } = call;
            let start = started_call(&turn, &id, &tool);
            let is_same = |before: &StartedCall| before.definition == start.definition;
            if before.as_ref().is_some_and(|before| !start.repeatable || !is_same(before)) {
                if self.run.asks_about_lost_calls() {
                    let start = StartedCall { again: true, ..start };
                    asked.push((ToolCall::new(id.as_str(), tool, arguments), start));
                    continue;
                }
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
        self.ask_about(asked).await?;
        if calls.is_empty() {
            return Ok(());
        }
        if !self.wait_for_poll(&calls).await {
            return Ok(());
        }
        // The results of these would be lost with this process if others of the round still ran then.
        let is_kept = |call: &&StartedCall| !call.repeatable && started.len() > 1;
        let kept: HashSet<CallId> =
            started.iter().filter(is_kept).map(|call| call.id.clone()).collect();
        self.append(vec![JournalEntry::CallsStarted { calls: started }]).await?;
        let (turn, events) = self.watched(turn);
        let (sender, ended) = mpsc::unbounded_channel();
        let tell = move |result: &ToolResult| {
            if kept.contains(result.call_id()) {
                // The receiver lives as long as the calls run.
                let _ = sender.send(result.clone());
            }
        };
        self.ended = Some(ended);
        let work = Box::pin(turn.start_batch_telling(calls, &tell));
        let answers = self.perform(&turn, events, work).await;
        self.ended = None;
        let entry = |answer| match answer {
            Answer::Done(result) => finished(result),
            Answer::Suspended(suspension) => JournalEntry::CallSuspended { suspension },
        };
        self.append(answers.into_iter().map(entry).collect()).await
    }

    /// Asks whether calls may run again that ran when a process ended.
    async fn ask_about(&mut self, asked: Vec<(ToolCall, StartedCall)>) -> Result<(), AgentError> {
        if asked.is_empty() {
            return Ok(());
        }
        let (calls, started): (Vec<_>, _) = asked.into_iter().unzip();
        self.append(vec![JournalEntry::CallsStarted { calls: started }]).await?;
        let options = self.agent.turn_options(&self.id, self.time_left()).asking(LOST);
        let (turn, events) = self.watched(self.agent.executor.turn(options));
        let work = Box::pin(turn.start_batch(calls));
        let answers = self.perform(&turn, events, work).await;
        let entry = |answer| match answer {
            Answer::Done(result) => finished(after_asking(result)),
            Answer::Suspended(suspension) => JournalEntry::CallSuspended { suspension },
        };
        self.append(answers.into_iter().map(entry).collect()).await
    }

    /// Waits until the tools for polling among the calls may be called again; `false` if the run has to stop meanwhile.
    pub(super) async fn wait_for_poll(&mut self, calls: &[ToolCall]) -> bool {
        let (now, pause) = (Instant::now(), self.agent.poll_every);
        let names = calls.iter().map(ToolCall::name);
        let polled: Vec<&str> = names.filter(|name| self.run.is_polled(name)).collect();
        let due = polled.iter().filter_map(|name| Some((*self.polled.get(*name)? + pause, *name)));
        if let Some((due, tool)) = due.max().filter(|(due, _)| *due > now) {
            let wait = due - now;
            self.agent.show(&AgentEvent::PollWait { run: &self.id, tool, wait });
            let (control, time_left) = (self.control.clone(), self.time_left());
            let waited = async {
                tokio::select! {
                    () = sleep(wait) => true,
                    () = control.stopped() => false,
                    () = sleep_for(time_left) => true,
                }
            };
            if !self.attend(waited).await {
                return false;
            }
        }
        for tool in polled {
            self.polled.insert(tool.into(), Instant::now());
        }
        true
    }

    /// The turn with a reader of what its calls report, if anybody views the run.
    pub(super) fn watched(&self, turn: Turn) -> (Turn, Option<EventReader>) {
        let watched = self.agent.listener.as_ref().and_then(|_| turn.with_channel());
        watched.map_or((turn, None), |(turn, events)| (turn, Some(events)))
    }

    /// Does work of a turn, and shows what its calls report meanwhile. If the run is to stop, running calls are cancelled,
    /// and their answers are still waited for.
    pub(super) async fn perform<T>(
        &mut self,
        turn: &Turn,
        mut events: Option<EventReader>,
        mut work: Pin<Box<impl Future<Output = T> + ?Sized>>,
    ) -> T {
        let (agent, run, control) = (self.agent, self.id.clone(), self.control.clone());
        let show = |event: &Event| agent.show(&AgentEvent::Call { run: &run, event });
        let performed = async {
            let mut is_stopping = false;
            let done = loop {
                tokio::select! {
                    done = &mut work => break done,
                    () = control.stopped(), if !is_stopping => {
                        is_stopping = true;
                        turn.cancel();
                    }
                    Some(event) = next_event(events.as_mut()) => show(&event),
                }
            };
            if let Some(events) = &mut events {
                events.finish();
                while let Some(event) = events.next().await {
                    show(&event);
                }
            }
            done
        };
        self.attend(performed).await
    }
}

/// The next event; never, if nobody views the run.
async fn next_event(events: Option<&mut EventReader>) -> Option<Event> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
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
        again: false,
    }
}
