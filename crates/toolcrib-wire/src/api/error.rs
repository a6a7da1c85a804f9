//! Errors as clients of OpenAI's APIs receive them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use serde_json::{Value, json};

/// Why a request is not answered. It is the body of the HTTP response, or a message on a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// What kind of error it is.
    pub error_type: ErrorType,
    /// A stable name for programs, for example `model_not_found`.
    pub code: Option<Cow<'static, str>>,
    /// The wrong parameter, for example `tools[0].name`.
    pub param: Option<String>,
    /// The problem and what to do.
    pub message: String,
}

/// The `type` of an [`ApiError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorType {
    /// The request is wrong.
    InvalidRequest,
    /// The resource does not exist, or the caller may not see it.
    NotFound,
    /// The caller is unknown.
    Authentication,
    /// The caller may not do this.
    Permission,
    /// There are too many requests at the moment.
    TooManyRequests,
    /// The server has failed.
    Server,
    /// The model has failed.
    Model,
}

impl ErrorType {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request_error",
            Self::NotFound => "not_found",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::TooManyRequests => "too_many_requests",
            Self::Server => "server_error",
            Self::Model => "model_error",
        }
    }

    /// The usual HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::NotFound => 404,
            Self::Authentication => 401,
            Self::Permission => 403,
            Self::TooManyRequests => 429,
            Self::Server | Self::Model => 500,
        }
    }
}

impl ApiError {
    /// An error of this type, with its usual status.
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        Self {
            status: error_type.status(),
            error_type,
            code: None,
            param: None,
            message: message.into(),
        }
    }

    /// The request is wrong (400).
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidRequest, message)
    }

    /// A required parameter is missing (400).
    pub fn missing(param: impl Into<String>) -> Self {
        let param = param.into();
        Self::invalid(format!("`{param}` is required"))
            .with_code("missing_required_parameter")
            .with_param(param)
    }

    /// There is no model of this name for the caller (404).
    pub fn model_not_found(model: &str) -> Self {
        let message = format!("there is no model {model:?}; GET /v1/models lists those there are");
        Self { status: 404, ..Self::invalid(message) }
            .with_code("model_not_found")
            .with_param("model")
    }

    /// There is no response to go on from (400).
    pub fn previous_response_not_found(id: &str) -> Self {
        let message = format!(
            "there is no response {id:?} to continue; send the whole conversation as `input`"
        );
        Self::invalid(message)
            .with_code("previous_response_not_found")
            .with_param("previous_response_id")
    }

    /// There is no such response (404).
    pub fn response_not_found(id: &str) -> Self {
        Self::new(ErrorType::NotFound, format!("there is no response {id:?}"))
            .with_code("response_not_found")
    }

    /// The error with this code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Cow<'static, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The error about this parameter.
    #[must_use]
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The error with this HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The body of the HTTP response.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolcrib_wire::api::ApiError;
    ///
    /// let error = ApiError::missing("model");
    /// assert_eq!(error.status, 400);
    /// assert_eq!(error.to_value(), json!({"error": {
    ///     "message": "`model` is required",
    ///     "type": "invalid_request_error",
    ///     "param": "model",
    ///     "code": "missing_required_parameter",
    /// }}));
    /// ```
    pub fn to_value(&self) -> Value {
        json!({"error": self.members()})
    }

    /// The message on a WebSocket.
    pub fn to_socket_text(&self) -> String {
        json!({"type": "error", "status": self.status, "error": self.members()}).to_string()
    }

    pub(crate) fn members(&self) -> Value {
        json!({
            "message": self.message,
            "type": self.error_type.as_str(),
            "param": self.param,
            "code": self.code,
        })
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ApiError {}
