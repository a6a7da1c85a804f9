//! Makes the calls of a row, lets time pass until they are answered, and interrupts them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use toolcrib_core::events::{CallStream, ChannelOptions, Listeners};
use toolcrib_core::run::Run;
use toolcrib_core::suspension::Waiting;
use toolcrib_core::{Answer, Executor, StreamItem, Turn, TurnOptions};
use toolcrib_tool::ToolCall;

use crate::factors::{Door, Interruption, Watcher};
use crate::resume::{Parked, answer_of};
use crate::scenario::{ADA, Caller, End, LONGEST, Stage, Told};
use crate::witness::{Seen, lock};

/// The id of another identity's call that holds the only slot; those that queue behind it have a
/// number after it.
pub(crate) const HOLDER: &str = "holder";

/// The answers of calls by id; the error says why there is none.
pub(crate) type Answers = Vec<(String, Result<Answer, String>)>;

/// Calls that were started together and are not answered yet.
pub(crate) struct Job {
    pub(crate) ids: Vec<&'static str>,
    pub(crate) caller: Caller,
    pub(crate) turn: Turn,
    pub(crate) task: JoinHandle<Answers>,
}

/// Events that may happen while calls are running.
#[derive(Clone, Copy)]
pub(crate) struct Events {
    /// Whether the row's interruption and change may happen now.
    pub(crate) are_due: bool,
    /// When another call takes the slot.
    pub(crate) holder_at: Option<u64>,
    /// When the pool has a free thread again.
    pub(crate) hog_until: Option<u64>,
}

/// Whether a call is made as a stream, and its caller awaits the result of a waiting call: every direct call except the
/// first.
pub(crate) fn is_streamed(door: Door, id: &str) -> bool {
    door == Door::Direct && id != "first"
}

/// The answer of a call that is read as a stream.
async fn streamed(turn: &Turn, call: ToolCall) -> Result<Answer, String> {
    let mut stream = turn.stream(call);
    let mut answer = Err("the stream ended without an answer".to_owned());
    while let Some(item) = stream.next().await {
        match item {
            StreamItem::Event(event) if answer.is_ok() => {
                return Err(format!("{} came behind the answer", event.name()));
            }
            StreamItem::Event(_) => {}
            StreamItem::Answer(_) if answer.is_ok() => return Err("two answers".to_owned()),
            StreamItem::Answer(only) => answer = Ok(only),
        }
    }
    answer
}

impl Stage {
    /// Starts calls through the interface of the row.
    pub(crate) fn launch(
        &mut self,
        ids: &[&'static str],
        caller: Caller,
        has_neighbors: bool,
    ) -> Job {
        let mut options = self.options(caller);
        if let Some(deadline) = self.deadline(false).filter(|_| ids.contains(&"first")) {
            options = options.deadline(deadline);
        }
        if ids.contains(&"first") {
            options = self.watched(options);
        }
        let turn = self.executor.turn(options);
        let arguments = self.arguments();
        let call = |id: &str| match self.row.door {
            Door::Direct | Door::Batch | Door::Run => {
                ToolCall::new(id, "subject", arguments.clone())
            }
            Door::Nested => ToolCall::new(id, "outer", json!({"arguments": arguments})),
            Door::Meta => {
                ToolCall::new(id, "tool_call", json!({"name": "subject", "arguments": arguments}))
            }
        };
        let mut calls: Vec<_> = ids.iter().map(|id| call(id)).collect();
        if has_neighbors {
            calls.insert(0, ToolCall::new("left", "neighbor", "{}"));
            calls.push(ToolCall::new("right", "neighbor", "{}"));
        }
        for id in ids {
            *self.passes.entry(id).or_default() += 1;
        }
        let (door, caller_turn) = (self.row.door, turn.clone());
        let (runs, runs_of) = (Arc::clone(&self.setup.runs), Arc::clone(&self.setup.runs_of));
        let of_run = ids.to_vec();
        let task = tokio::spawn(async move {
            if door == Door::Run {
                let names: Vec<_> =
                    calls.iter().map(|call| call.id().as_str().to_owned()).collect();
                let mut run = Run::start(&caller_turn, calls).await.expect("randomness");
                run.save(&*runs).await.expect("there is room");
                lock(&runs_of).extend(of_run.into_iter().map(|id| (id, run.id().clone())));
                return names
                    .into_iter()
                    .map(|name| (name.clone(), answer_of(&run, &name)))
                    .collect();
            }
            if door == Door::Batch || has_neighbors {
                let names: Vec<_> =
                    calls.iter().map(|call| call.id().as_str().to_owned()).collect();
                let answers = caller_turn.start_batch(calls).await;
                assert_eq!(answers.len(), names.len(), "an answer for each call");
                return names.into_iter().zip(answers.into_iter().map(Ok)).collect();
            }
            let mut answers = Vec::new();
            for call in calls {
                let id = call.id().as_str().to_owned();
                let answer = if is_streamed(door, &id) {
                    streamed(&caller_turn, call).await
                } else {
                    Ok(caller_turn.start(call).await)
                };
                answers.push((id, answer));
            }
            answers
        });
        Job { ids: ids.to_vec(), caller, turn, task }
    }

    /// Lets a client watch the calls of a turn, if the row has one.
    fn watched(&self, options: TurnOptions) -> TurnOptions {
        if self.row.watcher == Watcher::Nobody {
            return options;
        }
        let (stream, mut events) = CallStream::new(&ChannelOptions::default());
        let witness = Arc::clone(&self.setup.witness);
        let leaves = self.row.watcher == Watcher::Leaves;
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                witness.report(event);
                if leaves {
                    break;
                }
            }
        });
        options.listeners(Listeners::new().with_stream(stream))
    }

    /// Another call takes the slot.
    pub(crate) fn hold(&mut self, executor: &Executor) {
        let turn = executor.turn(self.options(Caller { user: "eve", ..ADA }));
        let holders = self.row.holders();
        self.holder = Some(tokio::spawn(async move {
            let calls = (0..holders).map(|number| {
                let id = if number == 0 { HOLDER.to_owned() } else { format!("{HOLDER}-{number}") };
                let arguments = json!({"mode": "hold", "n": 99 + number});
                let (turn, call) = (&turn, ToolCall::new(id.as_str(), "subject", arguments));
                async move { (id, Ok(turn.start(call).await)) }
            });
            futures_util::future::join_all(calls).await
        }));
    }

    pub(crate) async fn let_the_holder_end(&mut self) {
        while self.holder.as_ref().is_some_and(|holder| !holder.is_finished()) {
            self.step().await;
        }
    }

    /// Advances the time until all of these calls are answered.
    pub(crate) async fn drive(&mut self, mut jobs: Vec<Job>, events: Events) {
        let begun = self.now();
        while !jobs.is_empty() && self.now() - begun < LONGEST {
            self.step().await;
            let passed = self.now() - begun;
            // The change happens after the call that takes the slot: a tool that is removed earlier
            // is neither occupied nor counted by its rate limit.
            let is_awaited = events.holder_at.is_some() && self.holder.is_none();
            if events.holder_at.is_some_and(|at| at <= self.now()) && self.holder.is_none() {
                self.hold(&self.executor.clone());
            }
            if events.hog_until.is_some_and(|until| until <= self.now()) && self.hog.is_some() {
                self.hog = None;
            }
            if events.are_due {
                self.interrupt_if_due(&jobs, passed);
                let waits = !self.row.is_stored() && !self.row.is_started_again();
                if passed >= 150 && waits && !self.is_changed && !is_awaited {
                    self.change();
                }
            }
            let mut left = Vec::new();
            for job in jobs {
                if job.task.is_finished() { self.ended(job).await } else { left.push(job) }
            }
            jobs = left;
        }
        for job in jobs {
            for id in &job.ids {
                let end = End::Lost("it was not answered in time".into());
                self.tell(id, job.caller, end);
            }
            job.task.abort();
        }
    }

    fn interrupt_if_due(&mut self, jobs: &[Job], passed: u64) {
        let due = if self.row.is_interrupted_waiting() {
            passed >= 300
        } else if self.row.is_interrupted_running() {
            let began = self.setup.witness.began_at(self.subject_id());
            began.is_some_and(|began| self.now() >= began + 100)
        } else {
            false
        };
        let Some(job) = jobs.iter().find(|job| job.ids.contains(&"first")) else { return };
        if !due || self.is_interrupted {
            return;
        }
        self.is_interrupted = true;
        self.setup.witness.see(Seen::Interrupted);
        match self.row.interruption {
            // The deadline was set earlier.
            Interruption::Nothing
            | Interruption::DeadlineWaiting
            | Interruption::DeadlineRunning => {}
            Interruption::CancelWaiting | Interruption::CancelRunning => job.turn.cancel(),
            Interruption::DropWaiting | Interruption::DropRunning => job.task.abort(),
            Interruption::ShutdownWaiting | Interruption::ShutdownRunning => {
                self.begin_shutdown(Duration::ZERO);
            }
        }
    }

    /// The id of the call of the tool itself.
    fn subject_id(&self) -> &'static str {
        if self.row.is_nested() { "first.1" } else { "first" }
    }

    pub(crate) fn begin_shutdown(&mut self, grace: Duration) {
        let executor = self.executor.clone();
        self.shutdowns.push(tokio::spawn(async move { executor.shutdown(grace).await }));
    }

    async fn ended(&mut self, job: Job) {
        let Job { ids, caller, task, .. } = job;
        let answers = match task.await {
            Ok(answers) => answers,
            Err(error) if error.is_cancelled() => {
                for id in ids {
                    self.tell(id, caller, End::Dropped);
                }
                return;
            }
            Err(error) => vec![("first".to_owned(), Err(format!("it panicked: {error}")))],
        };
        for (name, answer) in answers {
            let Some(id) = ids.iter().find(|id| **id == name) else {
                if let Ok(Answer::Done(result)) = answer {
                    self.setup.witness.text("answer", result.to_value().to_string());
                }
                continue;
            };
            match answer {
                Ok(Answer::Done(result)) => {
                    self.setup.witness.text("answer", result.to_value().to_string());
                    self.tell(id, caller, End::Done(Box::new(result)));
                }
                Ok(Answer::Suspended(suspension)) => {
                    let shown = serde_json::to_string(suspension.shown()).unwrap_or_default();
                    self.setup.witness.text("question", shown);
                    if matches!(suspension.waiting(), Waiting::Client) {
                        let observed = self.observed_call(&suspension);
                        let call = suspension.call_id().to_owned();
                        self.setup.witness.see(Seen::HandedOut { call, observed });
                    }
                    self.parked.push_back(Parked { id, caller, suspension: *suspension });
                }
                Err(problem) => self.tell(id, caller, End::Lost(problem)),
            }
        }
    }

    pub(crate) fn tell(&mut self, id: &'static str, caller: Caller, end: End) {
        let at = self.now();
        self.told.entry(id).or_default().push(Told { caller, end, at });
    }
}
