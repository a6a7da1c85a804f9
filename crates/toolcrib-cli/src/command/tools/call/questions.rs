//! Makes a call and answers the questions of its tool: with `--answer`, or by asking at the terminal.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use serde_json::{Map, Value};
use toolcrib::core::Answer;
use toolcrib::core::approval::Decision;
use toolcrib::core::clock::{Clock as _, SystemClock};
use toolcrib::core::suspension::{RedeemError, Resolution, Suspension, Waiting};
use toolcrib::tool::{Ask, CallId, ErrorKind, InputPart, ToolError, canonical_json};
use toolcrib::{ToolCall, ToolResult, Turn};

use super::form;
use crate::screen;
use crate::serving::stop::{self, StopSignal};
use crate::terminal_line;

/// Where the answers to questions come from.
pub(super) struct Answers {
    /// Those of the command line, in the order of the questions.
    given: VecDeque<Value>,
    /// Whether a person can be asked.
    asks: bool,
}

/// The reply to one question.
enum Reply {
    Answer(Value),
    /// The person declined.
    Declined(&'static str),
    /// Nobody can answer it here.
    Unanswerable(ToolError),
    /// The command was asked to end.
    Stopped,
}

/// The result of the call; `None` if it was interrupted, which ends what it has started.
pub(super) async fn answered(
    turn: &Turn,
    call: ToolCall,
    mut answers: Answers,
) -> Option<ToolResult> {
    let mut answer = stop::unless_requested(Box::pin(turn.start(call))).await?;
    loop {
        match answer {
            Answer::Done(result) => return Some(result),
            Answer::Suspended(call) => answer = Box::pin(answers.go_on(turn, &call)).await?,
        }
    }
}

impl Answers {
    pub(super) fn new(given: Vec<Value>) -> Self {
        Self { given: given.into(), asks: terminal_line::is_there() }
    }

    /// Answers the question of a call, which then goes on. An answer that does not fit is asked for
    /// again.
    async fn go_on(&mut self, turn: &Turn, call: &Suspension) -> Option<Answer> {
        loop {
            let is_given = !self.given.is_empty();
            let resolution = match self.reply(call).await {
                Reply::Answer(answer) => Resolution::Answer(answer),
                Reply::Declined(message) => Resolution::Decision(Decision::deny(message)),
                Reply::Unanswerable(error) => return Some(given_up(turn, call, error).await),
                Reply::Stopped => return None,
            };
            match stop::unless_requested(Box::pin(turn.resolve(call.id(), resolution))).await? {
                Ok(answer) => return Some(answer),
                Err(RedeemError::Answer(error)) if !is_given => {
                    form::refused(&error, asks_for_password(call.waiting()));
                }
                Err(RedeemError::Answer(error)) => {
                    return Some(given_up(turn, call, error).await);
                }
                Err(RedeemError::Expired) => {
                    let expired = turn.resolve(call.id(), Resolution::Expire).await;
                    return Some(expired.unwrap_or_else(|error| failed(call, &error)));
                }
                Err(error) => return Some(failed(call, &error)),
            }
        }
    }

    async fn reply(&mut self, call: &Suspension) -> Reply {
        let Waiting::Input { message, schema, parts, .. } = call.waiting() else {
            return Reply::Unanswerable(waits_for_others(call.waiting()));
        };
        if let Some(answer) = self.given.pop_front() {
            return Reply::Answer(answer);
        }
        if !self.asks {
            return Reply::Unanswerable(unanswered(message, schema));
        }
        let until = call.expires_at().since(SystemClock.now());
        let asked = async {
            tokio::select! {
                biased;
                signal = stop::signalled() => Err(signal),
                filled = filled(message, schema, parts) => Ok(filled),
                () = tokio::time::sleep(until) => Ok(Ok(None)),
            }
        };
        match asked.await {
            Ok(Ok(Some(answer))) => Reply::Answer(answer),
            Ok(Err(error)) => Reply::Unanswerable(error),
            Ok(Ok(None)) => self.declined("the user closed the question without an answer"),
            Err(StopSignal::Interrupt) => self.declined("the user declined to answer"),
            Err(StopSignal::Terminate) => Reply::Stopped,
        }
    }

    /// The person has left: later questions are not asked.
    fn declined(&mut self, message: &'static str) -> Reply {
        screen::note("");
        self.asks = false;
        Reply::Declined(message)
    }
}

/// Asks one form, or a form for each part.
async fn filled(
    message: &str,
    schema: &Value,
    parts: &[InputPart],
) -> Result<Option<Value>, ToolError> {
    let unreadable =
        |error: io::Error| ToolError::unavailable(format!("the terminal cannot be read: {error}"));
    if parts.is_empty() {
        return form::filled(message, schema).await.map_err(unreadable);
    }
    let mut answers = Map::new();
    for part in parts {
        let Ask::Form { message, schema } = &part.ask else {
            if part.optional {
                continue;
            }
            return Err(unanswered(part.ask.message(), &part.ask.schema()));
        };
        match form::filled(message, schema).await.map_err(unreadable)? {
            Some(answer) => answers.insert(part.key.clone(), answer),
            None => return Ok(None),
        };
    }
    Ok(Some(Value::Object(answers)))
}

/// Whether an answer may hold a password.
fn asks_for_password(waiting: &Waiting) -> bool {
    let Waiting::Input { schema, parts, .. } = waiting else { return false };
    let in_part = |part: &InputPart| form::has_password(&part.ask.schema());
    form::has_password(schema) || parts.iter().any(in_part)
}

/// Ends a call that nobody can answer, with this error as its result.
async fn given_up(turn: &Turn, call: &Suspension, error: ToolError) -> Answer {
    // Whoever asked is told; the call may have ended by itself meanwhile.
    drop(turn.resolve(call.id(), Resolution::Cancel).await);
    Answer::Done(failure(call, error))
}

fn failed(call: &Suspension, error: &RedeemError) -> Answer {
    Answer::Done(failure(call, ToolError::unavailable(error.to_string())))
}

fn failure(call: &Suspension, error: ToolError) -> ToolResult {
    ToolResult::failure(CallId::new(call.call_id()), call.tool(), error, Duration::ZERO)
}

/// The error for a question that nobody can answer here.
fn unanswered(message: &str, schema: &Value) -> ToolError {
    ToolError::new(ErrorKind::RequiresApproval, format!("it needs an answer: {message}"))
        .with_hint(
            "The call was ended. Make it again at a terminal, or give the answer as JSON: `--answer JSON`, once \
             for each question.",
        )
        .with_hint(format!("The answer has to fit this schema: {}", canonical_json(schema)))
}

/// The error for a call that waits for something that the command line does not have.
fn waits_for_others(waiting: &Waiting) -> ToolError {
    ToolError::unavailable(match waiting {
        Waiting::Client => "it runs at the client, and the command line has none".to_owned(),
        Waiting::Pending { ticket } => {
            format!("its work goes on elsewhere as {ticket}, and this command cannot wait for it")
        }
        _ => "it waits for somebody who cannot be asked here".to_owned(),
    })
}
