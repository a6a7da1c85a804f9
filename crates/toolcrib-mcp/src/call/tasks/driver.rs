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

/// Runs a task's work and keeps the outcome until the task expires.
pub(crate) async fn drive(
    call: Arc<Call>,
    task: TaskHandle,
    work: CallFuture,
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
    work: CallFuture,
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
        None => {}
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
    async fn run_to_end(&self, work: CallFuture) -> Option<Result<ToolResult, ErrorData>> {
        let mut work = work;
        let mut last: Option<Box<Suspension>> = None;
        for round in 1..=ROUNDS_MAX {
            let suspension = match self.unless_ended(work).await? {
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
                let decided = self.call.decided_elsewhere(&suspension);
                let Some(answer) = self.unless_ended(decided).await else {
                    // Nobody wants the answer any more, so nobody has to decide.
                    let _ = self.call.resume(&suspension, Resolution::Cancel).await;
                    return None;
                };
                work = Box::pin(std::future::ready(answer));
                continue;
            }
            work = match self.call.questions(&suspension) {
                Some(Ok(questions)) => self.ask_through_task(round, &suspension, questions).await?,
                Some(Err(missing)) => {
                    let (call, suspension) = (Arc::clone(self.call), suspension.clone());
                    Box::pin(async move { call.cannot_ask(&suspension, missing).await })
                }
                // Nobody here can end the wait.
                None => self.call.resume(&suspension, Resolution::Cancel),
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

    /// Continues the call with the answers to its questions; `None` if the task ended before they
    /// came.
    async fn ask_through_task(
        &self,
        round: usize,
        suspension: &Suspension,
        questions: Questions,
    ) -> Option<CallFuture> {
        let questions = Arc::new(questions);
        let answers = self.task.ask(round, Arc::clone(&questions));
        let waits = suspension.expires_at().since(suspension.created_at());
        let answers = tokio::time::timeout(waits, answers);
        let resolution = match self.unless_ended(answers).await {
            Some(Ok(Ok(answers))) => resolution(&questions, &answers),
            Some(Err(_)) => Resolution::Expire,
            // The task has ended: cancel the suspended call so that nothing is left of it.
            Some(Ok(Err(_))) | None => {
                let _ = self.call.resume(suspension, Resolution::Cancel).await;
                return None;
            }
        };
        Some(self.call.resume(suspension, resolution))
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
