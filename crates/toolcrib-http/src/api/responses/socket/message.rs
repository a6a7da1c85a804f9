//! The messages of a WebSocket.

use serde_json::{Value, json};
use toolcrib_wire::api::ApiError;
use toolcrib_wire::responses::ResponseRequest;

use crate::api::Api;

/// A request for a response.
pub(super) struct Create {
    pub(super) request: ResponseRequest,
    /// The same as a body of `POST /v1/responses`.
    pub(super) body: Value,
}

impl Create {
    /// Reads a message. Secrets in it are masked, because the response repeats parts of the request.
    pub(super) fn read(api: &Api, text: &str) -> Result<Self, ApiError> {
        let request = ResponseRequest::read_socket(text)?;
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let masked = api.backend().executor().mask().value(message.clone());
        let request = if masked == message {
            request
        } else {
            ResponseRequest::read_socket(&masked.to_string())?
        };
        Ok(Self { request, body: body(masked) })
    }

    /// What it says, as items.
    pub(super) fn input(&self) -> Vec<Value> {
        match &self.body["input"] {
            Value::Array(items) => items.clone(),
            Value::String(text) => vec![json!({"role": "user", "content": text})],
            _ => Vec::new(),
        }
    }

    /// The same request with other input, going on from another response.
    pub(super) fn with(
        mut self,
        input: Vec<Value>,
        previous: Option<&str>,
    ) -> Result<Self, ApiError> {
        if let Some(members) = self.body.as_object_mut() {
            members.insert("input".to_owned(), input.into());
            match previous {
                Some(id) => members.insert("previous_response_id".to_owned(), id.into()),
                None => members.remove("previous_response_id"),
            };
        }
        self.request = ResponseRequest::read(&self.body.to_string())?;
        Ok(self)
    }
}

/// The body of the request that a message makes.
fn body(mut message: Value) -> Value {
    if message["response"].is_object() {
        message = message["response"].take();
    }
    if let Some(members) = message.as_object_mut() {
        members.remove("type");
        members.remove("generate");
    }
    message
}

/// An error as it is sent.
pub(super) fn error_text(api: &Api, error: &ApiError) -> String {
    let text = error.to_socket_text();
    // It may repeat what the client sent.
    match serde_json::from_str(&text) {
        Ok(value) => api.backend().executor().mask().value(value).to_string(),
        Err(_) => text,
    }
}
