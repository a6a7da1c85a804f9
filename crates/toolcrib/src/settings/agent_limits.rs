//! Settings of what an agent may start, how its conversation becomes shorter, and the form of its answer.

use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib_agent::Compaction;
use toolcrib_agent::children::SubAgentLimits;
use toolcrib_tool::units::Timeout;

use super::providers::ModelName;

/// Limits of the agents that agents start.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubAgent {
    /// How many levels of agents there are below the first; with 1, agents that an agent has started start none.
    pub max_depth: NonZeroU32,
    /// The answers with calls that an agent of `multi_agent` may give; it has to answer without calls then.
    pub max_iterations: NonZeroU32,
    /// How many agents that one agent has started work at once.
    pub max_concurrency: NonZeroUsize,
    /// How long an answer of the model of an agent of `multi_agent` may take.
    pub request_timeout: Timeout,
}

impl Default for SubAgent {
    fn default() -> Self {
        let own = SubAgentLimits::default();
        Self {
            max_depth: NonZeroU32::new(own.max_depth).unwrap_or(NonZeroU32::MIN),
            max_iterations: NonZeroU32::new(own.max_iterations).unwrap_or(NonZeroU32::MIN),
            max_concurrency: NonZeroUsize::new(own.max_concurrency).unwrap_or(NonZeroUsize::MIN),
            request_timeout: Timeout(own.request_timeout),
        }
    }
}

impl SubAgent {
    /// The limits of an agent that may start others.
    pub(crate) fn limits(&self) -> SubAgentLimits {
        let mut limits = SubAgentLimits::default();
        limits.max_depth = self.max_depth.get();
        limits.max_iterations = self.max_iterations.get();
        limits.max_concurrency = self.max_concurrency.get();
        limits.request_timeout = self.request_timeout.0;
        limits
    }
}

/// When and how the conversation of an agent becomes shorter. This needs the model's `context_window`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentCompaction {
    /// The share of the model's context from which on a conversation becomes shorter, from 0.1 to 1. Default: 0.8.
    pub at: Option<Share>,
    /// The model that writes summaries: `PROVIDER/MODEL`. Default: that of the run.
    pub model: Option<ModelName>,
    /// The newest messages of the user that a summary does not replace, in tokens. Default: 20000.
    pub kept_input_tokens: Option<u64>,
}

impl AgentCompaction {
    /// The settings of a run, without the model.
    pub(crate) fn compaction(&self) -> Compaction {
        let mut own = Compaction::default();
        own.at = self.at.map_or(own.at, f64::from);
        own.kept_input_tokens = self.kept_input_tokens.unwrap_or(own.kept_input_tokens);
        own
    }
}

/// A part of a whole, from 0.1 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64", extend("minimum" = 0.1, "maximum" = 1, "x-expected" = "a share from 0.1 to 1, such as 0.8"))]
pub struct Share(f64);

impl TryFrom<f64> for Share {
    type Error = &'static str;

    fn try_from(share: f64) -> Result<Self, Self::Error> {
        if (0.1..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err("a share of the context is a number from 0.1 to 1")
        }
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

/// The JSON Schema of an agent's answer, which can be compiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
#[schemars(with = "Map<String, Value>")]
pub struct OutputSchema(Value);

impl OutputSchema {
    /// The schema.
    pub fn as_value(&self) -> &Value {
        &self.0
    }
}

impl TryFrom<Map<String, Value>> for OutputSchema {
    type Error = String;

    fn try_from(schema: Map<String, Value>) -> Result<Self, String> {
        let schema = Value::Object(schema);
        if let Some(reference) = inner_reference(&schema) {
            return Err(format!(
                "the reference `{reference}` into the schema itself is not possible here: write what it refers to in its \
                 place"
            ));
        }
        // The model gives the answer as this argument of a call, so references into the schema do not reach it.
        let arguments = json!({"type": "object", "properties": {"result": schema}});
        let options =
            jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
        match options.offline().build(&arguments) {
            Ok(_) => Ok(Self(schema)),
            Err(error) => {
                let path = error.instance_path().to_string();
                let at = path.strip_prefix("/properties/result").filter(|at| !at.is_empty());
                let at = at.map(|at| format!(" at `{at}`")).unwrap_or_default();
                Err(format!("this is no usable JSON Schema{at}: {error}"))
            }
        }
    }
}

/// A reference of a schema to a part of itself.
fn inner_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(entries) => {
            let own =
                entries.get("$ref").and_then(Value::as_str).filter(|one| one.starts_with('#'));
            own.or_else(|| entries.values().find_map(inner_reference))
        }
        Value::Array(items) => items.iter().find_map(inner_reference),
        _ => None,
    }
}

impl From<OutputSchema> for Map<String, Value> {
    fn from(schema: OutputSchema) -> Self {
        match schema.0 {
            Value::Object(schema) => schema,
            _ => Self::new(),
        }
    }
}
