//! Questions of a tool that cannot continue without an answer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One question, or several at once, that must be answered before a call can continue.
///
/// The call ends with it, and its tool runs again from the beginning with the answer in
/// [`CallContext::answer`](crate::CallContext::answer). State that nobody else may see or change goes into
/// [`remember`](Self::remember).
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::{InputPart, InputRequest};
///
/// let one = InputRequest::new("Which branch?", json!({
///     "type": "object",
///     "properties": {"branch": {"type": "string"}},
///     "required": ["branch"],
/// }));
/// assert!(one.parts.is_empty());
///
/// let several = InputRequest::of([
///     InputPart::sample("title", "A title for this change", 50),
///     InputPart::roots("folders").optional(),
/// ]);
/// // The answer is an object with a member for each.
/// assert_eq!(several.schema["required"], json!(["title"]));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InputRequest {
    /// The question, for a person.
    pub message: String,
    /// JSON Schema of the answer.
    pub schema: Value,
    /// Several questions, instead of the one in `message` and `schema`.
    pub parts: Vec<InputPart>,
    /// The tool's stored value for the next run.
    pub remembered: Option<Value>,
}

impl InputRequest {
    /// Asks a person the question `message`, whose answer must fit `schema`.
    pub fn new(message: impl Into<String>, schema: Value) -> Self {
        Self { message: message.into(), schema, parts: Vec::new(), remembered: None }
    }

    /// Asks several questions at once. The answer is an object with one member for each part, under the part's key.
    pub fn of(parts: impl IntoIterator<Item = InputPart>) -> Self {
        let parts: Vec<_> = parts.into_iter().collect();
        let messages: Vec<_> = parts.iter().map(|part| part.ask.message()).collect();
        let members: Map<_, _> =
            parts.iter().map(|part| (part.key.clone(), part.ask.schema())).collect();
        let required: Vec<_> =
            parts.iter().filter(|part| !part.optional).map(|part| part.key.as_str()).collect();
        let schema = json!({
            "type": "object",
            "properties": members,
            "required": required,
            "additionalProperties": false,
        });
        Self { message: messages.join("\n"), schema, parts, remembered: None }
    }

    /// Stores a value until the tool runs again, where it is
    /// [`CallContext::remembered`](crate::CallContext::remembered). It stays with the host: nobody who answers sees it.
    #[must_use]
    pub fn remember(mut self, value: impl Into<Value>) -> Self {
        self.remembered = Some(value.into());
        self
    }
}

/// One of several questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct InputPart {
    /// The key of its answer.
    pub key: String,
    /// The question.
    pub ask: Ask,
    /// Whether the call can continue without it. An optional part is left out if the client does not support it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl InputPart {
    /// Asks a person to fill in a form: an object of plain values.
    pub fn form(key: impl Into<String>, message: impl Into<String>, schema: Value) -> Self {
        Self::new(key, Ask::Form { message: message.into(), schema })
    }

    /// Asks the client's model to continue `prompt`, with at most `max_tokens`. The answer is `{"text": …, "model":
    /// …}`.
    pub fn sample(key: impl Into<String>, prompt: impl Into<String>, max_tokens: u32) -> Self {
        Self::new(key, Ask::Sample { prompt: prompt.into(), max_tokens })
    }

    /// Asks which folders the client works in. The answer is a list of `{"uri": …, "name": …}`.
    pub fn roots(key: impl Into<String>) -> Self {
        Self::new(key, Ask::Roots)
    }

    fn new(key: impl Into<String>, ask: Ask) -> Self {
        Self { key: key.into(), ask, optional: false }
    }

    /// Lets the call continue without this part if the client does not support it.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

/// The kinds of questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Ask {
    /// A form for a person.
    Form {
        /// The question.
        message: String,
        /// JSON Schema of the answer.
        schema: Value,
    },
    /// A text by the client's model.
    Sample {
        /// The prompt.
        prompt: String,
        /// The longest answer, in tokens.
        max_tokens: u32,
    },
    /// The folders the client works in.
    Roots,
}

impl Ask {
    /// The question, for a person.
    pub fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } => message,
            Self::Sample { prompt, .. } => prompt,
            Self::Roots => "Which folders does the client work in?",
        }
    }

    /// JSON Schema of the answer.
    pub fn schema(&self) -> Value {
        match self {
            Self::Form { schema, .. } => schema.clone(),
            Self::Sample { .. } => json!({
                "type": "object",
                "properties": {"text": {"type": "string"}, "model": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": false,
            }),
            Self::Roots => json!({
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"uri": {"type": "string"}, "name": {"type": "string"}},
                    "required": ["uri"],
                    "additionalProperties": false,
                },
            }),
        }
    }
}
