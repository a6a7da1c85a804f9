//! How the model is asked to answer.

use serde_json::{Map, Value, json};
use toolcrib_json::Cursor;

use crate::api::ApiError;
use crate::api::fields::{
    data, flag, member, members, missing, number, object, one_of, short_text, text, unknown,
    unsupported, whole,
};
use crate::model::{RequestHead, Wire};

/// How the model is asked to answer, in either API.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// The most tokens of the answer.
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The share of the likeliest tokens to sample from.
    pub top_p: Option<f64>,
    /// How much tokens that were used at all are avoided.
    pub presence_penalty: Option<f64>,
    /// How much tokens that were used often are avoided.
    pub frequency_penalty: Option<f64>,
    /// Texts at which the answer ends.
    pub stop: Vec<String>,
    /// A number that makes sampling repeatable.
    pub seed: Option<i64>,
    /// How much the model reasons.
    pub reasoning_effort: Option<String>,
    /// Which summary of its reasoning the client wants.
    pub reasoning_summary: Option<String>,
    /// How long the answer is: `low`, `medium` or `high`.
    pub verbosity: Option<String>,
    /// The form of the answer.
    pub format: TextFormat,
    /// The class of service. It is the operator's choice and has no effect here.
    pub service_tier: Option<String>,
    /// A stable name of the client's user.
    pub safety_identifier: Option<String>,
    /// The older member for the same.
    pub user: Option<String>,
    /// A key that is the same for requests with the same beginning.
    pub prompt_cache_key: Option<String>,
}

/// The form of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum TextFormat {
    /// Any text.
    #[default]
    Text,
    /// A JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema {
        /// The name of the schema.
        name: String,
        /// What it is for.
        description: Option<String>,
        /// The schema.
        schema: Value,
        /// Whether the model has to keep to it exactly.
        is_strict: Option<bool>,
    },
}

impl TextFormat {
    /// The schema that an answer has to match, if there is one.
    pub fn schema(&self) -> Option<&Value> {
        match self {
            Self::JsonSchema { schema, .. } => Some(schema),
            _ => None,
        }
    }

    /// The format as the Responses API writes it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text => json!({"type": "text"}),
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema { name, description, schema, is_strict } => json!({
                "type": "json_schema",
                "name": name,
                "description": description,
                "schema": schema,
                "strict": is_strict.unwrap_or(false),
            }),
        }
    }

    /// The format as chat completions write it; `None` for any text.
    fn to_chat(&self) -> Option<Value> {
        match self {
            Self::Text => None,
            Self::JsonObject => Some(json!({"type": "json_object"})),
            Self::JsonSchema { name, description, schema, is_strict } => {
                let mut schema = json!({"name": name, "schema": schema});
                if let Some(description) = description {
                    schema["description"] = description.as_str().into();
                }
                if let Some(is_strict) = is_strict {
                    schema["strict"] = (*is_strict).into();
                }
                Some(json!({"type": "json_schema", "json_schema": schema}))
            }
        }
    }

    /// Reads the format of either API; chat completions put the schema into an object of its own.
    pub(crate) fn read(value: Cursor<'_>) -> Result<Self, ApiError> {
        let format = object(value)?;
        let kind = member(format, "type").ok_or_else(|| missing(format, "type"))?;
        match one_of(kind, &["text", "json_object", "json_schema"])? {
            "text" => return Ok(Self::Text),
            "json_object" => return Ok(Self::JsonObject),
            _ => {}
        }
        let inner = member(format, "json_schema").unwrap_or(format);
        let (mut name, mut description, mut schema, mut is_strict) = (None, None, None, None);
        for (key, value) in members(inner)? {
            match &*key {
                "type" => {}
                "name" => name = Some(super::tools::name(value)?),
                "description" => description = Some(text(value)?),
                "schema" => {
                    object(value)?;
                    schema = Some(data(value)?);
                }
                "strict" => is_strict = Some(flag(value)?),
                _ => return Err(unknown(value)),
            }
        }
        Ok(Self::JsonSchema {
            name: name.ok_or_else(|| missing(inner, "name"))?,
            description,
            schema: schema.ok_or_else(|| missing(inner, "schema"))?,
            is_strict,
        })
    }
}

const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const VERBOSITIES: [&str; 3] = ["low", "medium", "high"];
const TIERS: [&str; 7] = ["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"];

impl ModelOptions {
    /// Reads a member that both APIs have; whether it is one of them.
    pub(crate) fn take(&mut self, key: &str, value: Cursor<'_>) -> Result<bool, ApiError> {
        match key {
            "temperature" => self.temperature = Some(number(value, 0.0, 2.0)?),
            "top_p" => self.top_p = Some(number(value, 0.0, 1.0)?),
            "presence_penalty" => self.presence_penalty = Some(number(value, -2.0, 2.0)?),
            "frequency_penalty" => self.frequency_penalty = Some(number(value, -2.0, 2.0)?),
            "top_logprobs" => {
                if whole(value, 0, 20)? > 0 {
                    return Err(no_probabilities(value));
                }
            }
            "service_tier" => self.service_tier = Some(one_of(value, &TIERS)?.to_owned()),
            "safety_identifier" => self.safety_identifier = Some(short_text(value, 512)?),
            "user" => self.user = Some(short_text(value, 512)?),
            "prompt_cache_key" => self.prompt_cache_key = Some(short_text(value, 512)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads `reasoning` of the Responses API.
    pub(crate) fn take_reasoning(&mut self, value: Cursor<'_>) -> Result<(), ApiError> {
        for (key, value) in members(value)? {
            match &*key {
                "effort" => self.take_effort(value)?,
                "summary" | "generate_summary" => {
                    let summary = one_of(value, &["auto", "concise", "detailed", "none"])?;
                    self.reasoning_summary = Some(summary.to_owned());
                }
                "mode" | "context" => {
                    return Err(unsupported(value, "leave it out, or set `reasoning.effort`"));
                }
                _ => return Err(unknown(value)),
            }
        }
        Ok(())
    }

    pub(crate) fn take_effort(&mut self, value: Cursor<'_>) -> Result<(), ApiError> {
        self.reasoning_effort = Some(one_of(value, &EFFORTS)?.to_owned());
        Ok(())
    }

    /// Reads `text` of the Responses API.
    pub(crate) fn take_text(&mut self, value: Cursor<'_>) -> Result<(), ApiError> {
        for (key, value) in members(value)? {
            match &*key {
                "format" => self.format = TextFormat::read(value)?,
                "verbosity" => self.take_verbosity(value)?,
                _ => return Err(unknown(value)),
            }
        }
        Ok(())
    }

    pub(crate) fn take_verbosity(&mut self, value: Cursor<'_>) -> Result<(), ApiError> {
        self.verbosity = Some(one_of(value, &VERBOSITIES)?.to_owned());
        Ok(())
    }

    /// Sets the head of a request to a model. Returns the names of the options that this wire cannot express.
    pub fn apply(&self, wire: Wire, head: &mut RequestHead) -> Vec<&'static str> {
        let mut left_out = Vec::new();
        if self.max_output_tokens.is_some() {
            head.max_output_tokens = self.max_output_tokens;
        }
        if self.temperature.is_some() {
            head.temperature = self.temperature;
        }
        if self.reasoning_effort.is_some() {
            head.reasoning_effort.clone_from(&self.reasoning_effort);
        }
        let mut extra = Map::new();
        let mut put = |name: &'static str, value: Option<Value>, member: Option<&str>| match (
            value, member,
        ) {
            (None, _) => {}
            (Some(value), Some(member)) => {
                extra.insert(member.to_owned(), value);
            }
            (Some(_), None) => left_out.push(name),
        };
        let is_chat = wire == Wire::Chat;
        let chat = |member: &'static str| is_chat.then_some(member);
        put("top_p", self.top_p.map(Into::into), Some("top_p"));
        put("presence_penalty", self.presence_penalty.map(Into::into), chat("presence_penalty"));
        put("frequency_penalty", self.frequency_penalty.map(Into::into), chat("frequency_penalty"));
        put("seed", self.seed.map(Into::into), chat("seed"));
        let stop = (!self.stop.is_empty()).then(|| json!(self.stop));
        let stop_member = match wire {
            Wire::Chat => Some("stop"),
            Wire::Anthropic => Some("stop_sequences"),
            Wire::Responses => None,
        };
        put("stop", stop, stop_member);
        if wire == Wire::Responses {
            let mut text = Map::new();
            if self.format != TextFormat::Text {
                text.insert("format".to_owned(), self.format.to_value());
            }
            if let Some(verbosity) = &self.verbosity {
                text.insert("verbosity".to_owned(), verbosity.as_str().into());
            }
            put("text", (!text.is_empty()).then_some(Value::Object(text)), Some("text"));
        } else {
            put("text.format", self.format.to_chat(), chat("response_format"));
            let verbosity = self.verbosity.as_deref().map(Into::into);
            put("text.verbosity", verbosity, chat("verbosity"));
        }
        head.extra.extend(extra);
        left_out
    }
}

/// Probabilities of tokens are asked for.
pub(crate) fn no_probabilities(value: Cursor<'_>) -> ApiError {
    unsupported(value, "models behind this server are not asked for probabilities; leave it out")
}
