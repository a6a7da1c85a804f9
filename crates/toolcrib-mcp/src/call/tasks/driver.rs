//! The work of a task: a call that goes on without its request, and asks by way of the task.

use std::sync::Arc;

use rmcp::model::{ErrorData, InputResponses, TaskPayload};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::{Answer, Resolution, Suspension};
use toolcrib_tool::{BoxFuture, ToolResult};

use super::KeptTask;
use crate::call::progress::Narration;
use crate::call::questions::{Questions, Reply};
use crate::call::{Call, ROUNDS_MAX};

/// What a call does until it is done or waits.
pub(crate) type Work = BoxFuture<'static, Result<Answer, ErrorData>>;

/// Does a task's work and keeps what comes of it until the task's time is over.
pub(crate) async fn drive(
    call: Arc<Call>,
    task: KeptTask,
    work: Work,
    narration: Option<Narration>,
    closing: CancellationToken,
) {
    tokio::select! {
        () = closing.cancelled() => return task.forget(),
        () = Box::pin(finish(&call, &task, work, narration)) => {}
    }
    drop(call);
    tokio::select! {
        () = closing.cancelled() => {}
        () = task.expired() => {}
    }
    task.forget();
}

async fn finish(call: &Arc<Call>, task: &KeptTask, work: Work, narration: Option<Narration>) {
    let driving = Driving { call, task };
    let work = driving.to_the_end(work);
    let ended = match narration {
        Some(narration) => narration.for_task(task.clone()).beside(work).await,
        None => work.await,
    };
    match ended {
        // It was withdrawn, or nobody can ask after it any more.
        None => {}
        Some(Ok(result)) => task.end(completed(call, &result)).await,
        Some(Err(error)) => task.end(failed(&error)).await,
    }
}

struct Driving<'a> {
    call: &'a Arc<Call>,
    task: &'a KeptTask,
}

impl Driving<'_> {
    /// The call's final answer; `None` where the task was over before.
    async fn to_the_end(&self, work: Work) -> Option<Result<ToolResult, ErrorData>> {
        let mut work = work;
        let mut last: Option<Box<Suspension>> = None;
        for round in 1..=ROUNDS_MAX {
            let suspension = match self.unless_over(work).await? {
                Ok(Answer::Done(result)) => return Some(Ok(result)),
                Ok(Answer::Suspended(suspension)) => suspension,
                Err(error) => match self.call.still_waits(last.take()).await {
                    // The answer did not fit: it is asked again.
                    Some(suspension) => {
                        self.task.say(&error.message);
                        suspension
                    }
                    None => return Some(Err(error)),
                },
            };
            if self.call.is_for_others(&suspension) {
                let decided = self.call.decided_elsewhere(&suspension);
                let Some(answer) = self.unless_over(decided).await else {
                    // Nobody wants the answer any more, so nobody has to decide.
                    let _ = self.call.resolved(&suspension, Resolution::Cancel).await;
                    return None;
                };
                work = Box::pin(std::future::ready(answer));
                continue;
            }
            work = match self.call.questions(&suspension) {
                Some(Ok(questions)) => self.asked(round, &suspension, questions).await?,
                Some(Err(missing)) => {
                    let (call, suspension) = (Arc::clone(self.call), suspension.clone());
                    Box::pin(async move { call.cannot_ask(&suspension, missing).await })
                }
                // Nobody who could be asked here ends the wait.
                None => self.call.resolved(&suspension, Resolution::Cancel),
            };
            last = Some(suspension);
        }
        // What its answer would have been is not asked for any more.
        drop(work);
        if let Some(suspension) = last {
            let _ = self.call.resolved(&suspension, Resolution::Cancel).await;
        }
        Some(Err(ErrorData::internal_error("the tool asks one question after the other", None)))
    }

    /// What the call does with the answers to its questions; `None` where the task was over before
    /// they came.
    async fn asked(
        &self,
        round: usize,
        suspension: &Suspension,
        questions: Questions,
    ) -> Option<Work> {
        let questions = Arc::new(questions);
        let answers = self.task.ask(round, Arc::clone(&questions));
        let waits = suspension.expires_at().since(suspension.created_at());
        let answers = tokio::time::timeout(waits, answers);
        let resolution = match self.unless_over(answers).await {
            Some(Ok(Ok(answers))) => resolution(&questions, &answers),
            Some(Err(_)) => Resolution::Expire,
            // The task is over: what waits is taken back, so that nothing is left of it.
            Some(Ok(Err(_))) | None => {
                let _ = self.call.resolved(suspension, Resolution::Cancel).await;
                return None;
            }
        };
        Some(self.call.resolved(suspension, resolution))
    }

    async fn unless_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.task.over() => None,
            done = work => Some(done),
        }
    }
}

/// What the answers amount to. Each was held against its question when it came.
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

/// Both are objects in the protocol.
fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
