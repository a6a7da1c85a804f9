//! A model for tests that answers from a script.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use toolcrib_tool::BoxFuture;
use toolcrib_wire::model::{Answer, DecoderSettings, ModelEvent, RequestHead, Wire, read_answer};

use super::{AttemptError, AttemptErrorKind, ModelClient};

/// A model for tests that answers from a script and keeps the requests it was sent. It opens no connection.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use toolcrib_agent::Agent;
/// use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
/// use toolcrib_core::{Executor, ExecutorConfig, Registry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::scratch().tool("time", |_, _| async { "noon" }).build()?;
/// let model = Arc::new(ScriptedModel::new([
///     ScriptedTurn::call("time", json!({})),
///     ScriptedTurn::text("It is noon."),
/// ]));
/// let executor = Executor::new(registry, ExecutorConfig::default());
/// let report = Agent::builder(executor, model.clone()).build().run("What time is it?").await?;
/// assert_eq!(report.text(), "It is noon.");
/// assert!(model.requests()[1]["messages"][2]["content"] == "noon");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ScriptedModel {
    turns: Mutex<VecDeque<ScriptedTurn>>,
    answers: Option<Box<AnswerFn>>,
    requests: Mutex<Vec<Value>>,
    context_window: Option<u64>,
}

type AnswerFn = dyn Fn(&Value) -> ScriptedTurn + Send + Sync;

/// One answer of a [`ScriptedModel`].
#[derive(Debug, Clone)]
pub struct ScriptedTurn {
    text: Option<String>,
    calls: Vec<(String, String)>,
    finish_reason: &'static str,
    tokens: u64,
    error: Option<AttemptError>,
}

impl ScriptedTurn {
    /// An answer with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            calls: Vec::new(),
            finish_reason: "stop",
            tokens: 100,
            error: None,
        }
    }

    /// An answer with a call. The arguments are JSON; a string is sent as it is, even if it is not JSON.
    pub fn call(tool: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self {
            text: None,
            calls: Vec::new(),
            finish_reason: "tool_calls",
            tokens: 100,
            error: None,
        }
        .and_call(tool, arguments)
    }

    /// The answer with one more call.
    #[must_use]
    pub fn and_call(mut self, tool: impl Into<String>, arguments: impl Into<Value>) -> Self {
        let arguments = match arguments.into() {
            Value::String(text) => text,
            value => value.to_string(),
        };
        self.calls.push((tool.into(), arguments));
        self.finish_reason = "tool_calls";
        self
    }

    /// The answer, stopped by the limit on its length.
    #[must_use]
    pub fn cut_by_length(mut self) -> Self {
        self.finish_reason = "length";
        self
    }

    /// The answer to a request of this many tokens. Default 100.
    #[must_use]
    pub fn with_request_tokens(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// A failed attempt.
    pub fn error(error: AttemptError) -> Self {
        Self { error: Some(error), ..Self::text("") }
    }

    fn body(&self, answer: usize) -> Value {
        let call = |(index, (name, arguments)): (usize, &(String, String))| {
            json!({
                "id": format!("call_{answer}_{index}"),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            })
        };
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.iter().enumerate().map(call).collect();
        }
        json!({
            "id": format!("answer_{answer}"),
            "model": "scripted",
            "choices": [{"index": 0, "finish_reason": self.finish_reason, "message": message}],
            "usage": {"prompt_tokens": self.tokens, "completion_tokens": 10},
        })
    }
}

impl ScriptedModel {
    /// A model that gives these answers, one for each attempt. After the last one, attempts fail.
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        Self { turns: Mutex::new(turns.into_iter().collect()), ..Self::default() }
    }

    /// The model, with this many tokens for a request and its answer.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }

    /// A model whose answer depends on the request alone, for runs whose requests have no fixed order: those of
    /// sub-agents, for example.
    pub fn answering(answer: impl Fn(&Value) -> ScriptedTurn + Send + Sync + 'static) -> Self {
        Self { answers: Some(Box::new(answer)), ..Self::default() }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, request: &str, settings: &DecoderSettings) -> Result<Answer, AttemptError> {
        let setup = |message: String| AttemptError::new(AttemptErrorKind::Setup, message);
        let request: Value = serde_json::from_str(request)
            .map_err(|error| setup(format!("the request is not JSON: {error}")))?;
        let answered = self.answers.as_ref().map(|answer| answer(&request));
        let number = {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(request);
            requests.len()
        };
        let next = || self.turns.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let turn = answered.or_else(next);
        let turn = turn.ok_or_else(|| {
            setup(format!("the script has no answer to request {number}; add a turn to it"))
        })?;
        if let Some(error) = turn.error {
            return Err(error);
        }
        let body = turn.body(number).to_string();
        read_answer(Wire::Chat, body.as_bytes(), settings)
            .map_err(|error| AttemptError::of_answer(&error))
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { turns, answers: _, requests, context_window: _ } = self;
        f.debug_struct("ScriptedModel")
            .field("turns", turns)
            .field("requests", requests)
            .finish_non_exhaustive()
    }
}

impl ModelClient for ScriptedModel {
    fn wire(&self) -> Wire {
        Wire::Chat
    }

    fn context_window(&self) -> Option<u64> {
        self.context_window
    }

    fn head(&self) -> RequestHead {
        RequestHead::new("scripted", "scripted")
    }

    fn ask<'a>(
        &'a self,
        request: String,
        settings: DecoderSettings,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<Answer, AttemptError>> {
        Box::pin(async move {
            let answer = self.answer(&request, &settings)?;
            if !answer.text().is_empty() {
                events(ModelEvent::Text { delta: answer.text() });
            }
            Ok(answer)
        })
    }
}
