//! Runs the work of a task: a call that continues without its request and asks its questions
//! through the task.

use std::sync::Arc;

use rmcp::model::{ErrorData, InputResponses, TaskPayload};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::{Answer, Resolution, Suspension};
use toolcrib_tool::{BoxFuture, ToolResult};

use super::TaskHandle;
use crate::call::progress::ProgressReporter;
use crate::call::questions::{Questions, Reply};
use crate::call::{Call, ROUNDS_MAX};

/// A call that runs until it is done or suspended.
pub(crate) type CallFuture = BoxFuture<'static, Result<Answer, ErrorData>>;

/// The work that a task begins with.
pub(crate) enum TaskWork {
    /// The call runs.
    Call(CallFuture),
    /// The call waits for the decision of somebody else, whose answer the future returns.
    Decision(Box<Suspension>, CallFuture),
}

/// Runs a task's work and keeps the outcome until the task expires.
pub(crate) async fn drive(
    call: Arc<Call>,
    task: TaskHandle,
    work: TaskWork,
    reporter: Option<ProgressReporter>,
    closing: CancellationToken,
) {
    tokio::select! {
        () = closing.cancelled() => return task.forget(),
        () = Box::pin(finish(&call, &task, work, reporter)) => {}
    }
    drop(call);
    tokio::select! {
        () = closing.cancelled() => {}
        () = task.expired() => {}
    }
    task.forget();
}

async fn finish(
    call: &Arc<Call>,
    task: &TaskHandle,
    work: TaskWork,
    reporter: Option<ProgressReporter>,
) {
    let driver = TaskDriver { call, task };
    let work = driver.run_to_end(work);
    let ended = match reporter {
        Some(reporter) => reporter.for_task(task.clone()).beside(work).await,
        None => work.await,
    };
    match ended {
        // The task was cancelled, or nobody can poll it any more.
        None => task.end(TaskPayload::Cancelled).await,
        Some(Ok(result)) => task.end(completed(call, &result)).await,
        Some(Err(error)) => task.end(failed(&error)).await,
    }
}

struct TaskDriver<'a> {
    call: &'a Arc<Call>,
    task: &'a TaskHandle,
}

impl TaskDriver<'_> {
    /// The call's final answer; `None` if the task ended before.
    async fn run_to_end(&self, work: TaskWork) -> Option<Result<ToolResult, ErrorData>> {
        let mut work = work;
        let mut last: Option<Box<Suspension>> = None;
        for round in 1..=ROUNDS_MAX {
            let answer = match work {
                TaskWork::Call(work) => self.unless_ended(work).await?,
                TaskWork::Decision(suspension, answer) => {
                    self.unless_withdrawn(&suspension, answer).await?
                }
            };
            let suspension = match answer {
                Ok(Answer::Done(result)) => return Some(Ok(result)),
                Ok(Answer::Suspended(suspension)) => suspension,
                Err(error) => match self.call.still_waits(last.take()).await {
                    // The answer does not fit the question, so ask again.
                    Some(suspension) => {
                        self.task.say(&error.message);
                        suspension
                    }
                    None => return Some(Err(error)),
                },
            };
            if self.call.is_for_others(&suspension) {
                let answer = self.call.decided_elsewhere(&suspension);
                work = TaskWork::Decision(suspension, answer);
                continue;
            }
            work = match self.call.questions(&suspension) {
                Some(Ok(questions)) => self.ask_through_task(round, &suspension, questions).await,
                Some(Err(missing)) => {
                    let (call, suspension) = (Arc::clone(self.call), suspension.clone());
                    TaskWork::Call(Box::pin(
                        async move { call.cannot_ask(&suspension, missing).await },
                    ))
                }
                // Nobody here can end the wait.
                None => TaskWork::Call(self.call.resume(&suspension, Resolution::Cancel)),
            };
            last = Some(suspension);
        }
        // The question needs no answer any more.
        drop(work);
        if let Some(suspension) = last {
            let _ = self.call.resume(&suspension, Resolution::Cancel).await;
        }
        Some(Err(ErrorData::internal_error("the tool asked too many questions in a row", None)))
    }

    /// Continues the call with the answers to its questions. A task that ends before they came has its
    /// call withdrawn, unless somebody else has decided on it.
    async fn ask_through_task(
        &self,
        round: usize,
        suspension: &Suspension,
        questions: Questions,
    ) -> TaskWork {
        let questions = Arc::new(questions);
        let answers = self.task.ask(round, Arc::clone(&questions));
        let waits = suspension.expires_at().since(suspension.created_at());
        let answers = tokio::time::timeout(waits, answers);
        let resolution = match self.unless_ended(answers).await {
            Some(Ok(Ok(answers))) => resolution(&questions, &answers),
            Some(Err(_)) => Resolution::Expire,
            Some(Ok(Err(_))) | None => {
                let answer = self.call.decided_elsewhere(suspension);
                return TaskWork::Decision(Box::new(suspension.clone()), answer);
            }
        };
        TaskWork::Call(self.call.resume(suspension, resolution))
    }

    /// The answer of a call that somebody else decides on; `None` if the task ended before, and the
    /// call with it.
    async fn unless_withdrawn(
        &self,
        suspension: &Suspension,
        mut answer: CallFuture,
    ) -> Option<Result<Answer, ErrorData>> {
        self.task.await_decision();
        if let Some(answer) = self.unless_ended(&mut answer).await {
            self.task.decided();
            return Some(answer);
        }
        // Nobody wants the answer any more, so nobody has to decide.
        if self.call.resume(suspension, Resolution::Cancel).await.is_ok() {
            self.task.end(TaskPayload::Cancelled).await;
            return None;
        }
        self.task.withdrawal_failed();
        tokio::select! {
            biased;
            answer = answer => {
                self.task.decided();
                Some(answer)
            }
            () = self.task.expired() => None,
        }
    }

    async fn unless_ended<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.task.ended() => None,
            done = work => Some(done),
        }
    }
}

/// Converts the answers. Each was checked against its question when it arrived.
fn resolution(questions: &Questions, answers: &InputResponses) -> Resolution {
    match questions.reply(answers) {
        Reply::Complete(resolution) => resolution,
        Reply::Missing => {
            let message = "the client's answer is not what was asked for".to_owned();
            Decision::Deny { message }.into()
        }
    }
}

fn completed(call: &Call, result: &ToolResult) -> TaskPayload {
    match call.complete(result) {
        Ok(result) => TaskPayload::Completed { result: object(&result) },
        Err(error) => failed(&error),
    }
}

fn failed(error: &ErrorData) -> TaskPayload {
    TaskPayload::Failed { error: object(error) }
}

/// Serialises a value that is an object in the protocol.
fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
