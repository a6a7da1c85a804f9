//! The response as a resource.

use serde_json::{Map, Value, json};

use super::request::ResponseRequest;
use crate::api::ApiError;
use crate::model::Usage;

/// A response as clients fetch it, without its output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResponseResource {
    /// Its id.
    pub id: String,
    /// When it was created, in Unix seconds.
    pub created_at: u64,
    /// When it was completed, in Unix seconds; only for one that is completed.
    pub completed_at: Option<u64>,
    /// Where it stands.
    pub status: ResponseStatus,
    /// The model or agent.
    pub model: String,
    /// The response from which it goes on.
    pub previous_response_id: Option<String>,
    /// The conversation to which it belongs.
    pub conversation: Option<String>,
    /// Why it failed.
    pub error: Option<ResponseFailure>,
    /// Why it is incomplete, for example `max_output_tokens`.
    pub incomplete_reason: Option<String>,
    /// The tokens.
    pub usage: Option<Usage>,
    /// The members that repeat the request ([`ResponseRequest::echo`]).
    pub echo: Map<String, Value>,
}

/// Where a response stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResponseStatus {
    /// It has not begun.
    Queued,
    /// It is being made.
    InProgress,
    /// It is whole.
    Completed,
    /// It ended early.
    Incomplete,
    /// It failed.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl ResponseStatus {
    const ALL: [Self; 6] = [
        Self::Queued,
        Self::InProgress,
        Self::Completed,
        Self::Incomplete,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing changes any more.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::InProgress)
    }
}

/// Why a response failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseFailure {
    /// A stable name for programs, for example `server_error` or `rate_limit_exceeded`.
    pub code: String,
    /// The problem.
    pub message: String,
}

impl ResponseFailure {
    /// A failure with this code.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    fn to_value(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }
}

impl From<&ApiError> for ResponseFailure {
    fn from(error: &ApiError) -> Self {
        let code = error.code.as_deref().unwrap_or(error.error_type.as_str());
        Self::new(code, error.message.clone())
    }
}

impl ResponseResource {
    /// A response that is in progress, for this request.
    pub fn new(
        id: impl Into<String>,
        created_at: u64,
        model: impl Into<String>,
        request: &ResponseRequest,
    ) -> Self {
        Self {
            id: id.into(),
            created_at,
            completed_at: None,
            status: ResponseStatus::InProgress,
            model: model.into(),
            previous_response_id: request.previous_response_id.clone(),
            conversation: request.conversation.clone(),
            error: None,
            incomplete_reason: None,
            usage: None,
            echo: request.echo(),
        }
    }

    /// The resource with this output.
    pub fn to_value(&self, output: Vec<Value>) -> Value {
        let mut response = self.echo.clone();
        let mut put = |key: &str, value: Value| {
            response.insert(key.to_owned(), value);
        };
        put("id", self.id.as_str().into());
        put("object", "response".into());
        put("created_at", self.created_at.into());
        put("completed_at", self.completed_at.into());
        put("status", self.status.as_str().into());
        put("model", self.model.as_str().into());
        put("previous_response_id", self.previous_response_id.as_deref().into());
        put("error", self.error.as_ref().map(ResponseFailure::to_value).into());
        let details = self.incomplete_reason.as_ref().map(|reason| json!({"reason": reason}));
        put("incomplete_details", details.into());
        put("usage", self.usage.as_ref().map(usage_value).into());
        if let Some(conversation) = &self.conversation {
            put("conversation", json!({"id": conversation}));
        }
        put("output", output.into());
        Value::Object(response)
    }

    /// The resource and its output, from what [`to_value`](Self::to_value) made; `None` for anything else.
    pub fn from_value(value: Value) -> Option<(Self, Vec<Value>)> {
        let Value::Object(mut echo) = value else { return None };
        let mut take = |key: &str| echo.remove(key).filter(|value| !value.is_null());
        if take("object")? != "response" {
            return None;
        }
        let text = |value: Value| match value {
            Value::String(text) => Some(text),
            _ => None,
        };
        let status = text(take("status")?)?;
        let error = take("error").and_then(|error| {
            Some(ResponseFailure::new(error["code"].as_str()?, error["message"].as_str()?))
        });
        let Value::Array(output) = take("output")? else { return None };
        let resource = Self {
            id: text(take("id")?)?,
            created_at: take("created_at")?.as_u64()?,
            completed_at: take("completed_at").and_then(|at| at.as_u64()),
            status: ResponseStatus::ALL.into_iter().find(|known| known.as_str() == status)?,
            model: text(take("model")?)?,
            previous_response_id: take("previous_response_id").and_then(text),
            conversation: take("conversation").and_then(|it| it["id"].as_str().map(str::to_owned)),
            error,
            incomplete_reason: take("incomplete_details")
                .and_then(|details| details["reason"].as_str().map(str::to_owned)),
            usage: take("usage").map(|usage| usage_of(&usage)),
            echo,
        };
        Some((resource, output))
    }
}

/// The tokens as the Responses API writes them.
pub(crate) fn usage_value(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

fn usage_of(value: &Value) -> Usage {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    Usage {
        input: count(&value["input_tokens"]),
        cached_input: count(&value["input_tokens_details"]["cached_tokens"]),
        cache_write: count(&value["input_tokens_details"]["cache_write_tokens"]),
        output: count(&value["output_tokens"]),
        reasoning: count(&value["output_tokens_details"]["reasoning_tokens"]),
    }
}
