//! Requests of clients that bring their own tools and their own wishes for the model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_tool::{CallId, ToolResult};
use toolcrib_wire::model::{Item, RequestHead, ToolChoice, View, Wire};

/// A request of a client to a run, from which it gets one answer: everything until the run ends, waits, or hands calls
/// to the client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientRequest {
    /// What was said before, if the client keeps the conversation or another run had it. Its calls are never run, and
    /// each needs its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Item>,
    /// The results of the calls that were handed to the client, each exactly once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ToolResult>,
    /// What the client says now: messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<Item>,
    /// What holds for this request and no other one.
    pub settings: RequestSettings,
    /// What the server needs to show the request again.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub note: Value,
}

/// What a client asks of the model, until its next request. The limits and tools of the agent hold whatever it says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestSettings {
    /// Instructions, which follow those of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Tools that the client runs itself. Their calls are handed to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// The only tools that the model may call, the agent's included; all if it is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Whether the first answer has to have calls.
    pub choice: RequestedChoice,
    /// Whether an answer may have several calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// The most tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much the model reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// How much the model says, in OpenAI's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
    /// The format of the answer's text, as Responses has it in `text.format`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_format: Option<Value>,
    /// Other numbers for the sampling, such as `top_p`, where the provider's protocol has them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub sampling: Map<String, Value>,
}

/// A tool that a client runs itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
}

/// Whether the first answer to a request has to have calls. What follows on their results is the model's decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestedChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No answer may have calls.
    None,
    /// It has to call a tool.
    Required,
    /// It has to call this tool.
    Tool(String),
}

impl RequestSettings {
    /// Whether the model may call a tool of this name.
    pub(crate) fn allows(&self, name: &str) -> bool {
        self.choice != RequestedChoice::None
            && self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == name))
    }

    /// Whether the client runs the tool of this name.
    pub(crate) fn is_client_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Whether an answer has to have calls. `to_provider` gives the provider's name for a tool.
    pub(crate) fn tool_choice<'n>(
        &self,
        is_first: bool,
        to_provider: impl Fn(&str) -> Option<&'n str>,
    ) -> ToolChoice {
        match &self.choice {
            RequestedChoice::None => ToolChoice::None,
            RequestedChoice::Required if is_first => ToolChoice::Required,
            RequestedChoice::Tool(name) if is_first => match to_provider(name) {
                Some(name) => ToolChoice::Tool(name.to_owned()),
                None => ToolChoice::Auto,
            },
            _ => ToolChoice::Auto,
        }
    }

    /// Writes what it says into the head of a request to the model.
    pub(crate) fn write(&self, wire: Wire, head: &mut RequestHead) {
        if let Some(own) = &self.instructions {
            head.instructions = Some(match head.instructions.take() {
                Some(before) => format!("{before}\n\n{own}"),
                None => own.clone(),
            });
        }
        head.parallel_calls = self.parallel_calls.or(head.parallel_calls);
        // The limit of the config holds.
        head.max_output_tokens = match (self.max_output_tokens, head.max_output_tokens) {
            (Some(own), Some(limit)) => Some(own.min(limit)),
            (own, limit) => own.or(limit),
        };
        head.temperature = self.temperature.or(head.temperature);
        if self.reasoning_effort.is_some() {
            head.reasoning_effort.clone_from(&self.reasoning_effort);
        }
        let accepted: &[&str] = match wire {
            Wire::Chat => &["top_p", "presence_penalty", "frequency_penalty", "stop", "seed"],
            _ => &["top_p"],
        };
        for (key, value) in &self.sampling {
            if accepted.contains(&key.as_str()) {
                head.extra.insert(key.clone(), value.clone());
            }
        }
        self.write_text(wire, head);
    }

    fn write_text(&self, wire: Wire, head: &mut RequestHead) {
        let verbosity = self.verbosity.as_ref().map(|word| Value::from(word.as_str()));
        match wire {
            Wire::Chat => {
                if let Some(format) = &self.text_format {
                    head.extra.insert("response_format".to_owned(), chat_format(format));
                }
                if let Some(verbosity) = verbosity {
                    head.extra.insert("verbosity".to_owned(), verbosity);
                }
            }
            Wire::Responses => {
                let format = self.text_format.clone().map(|format| ("format", format));
                let verbosity = verbosity.map(|word| ("verbosity", word));
                let text: Map<_, _> =
                    format.into_iter().chain(verbosity).map(|(k, v)| (k.to_owned(), v)).collect();
                if !text.is_empty() {
                    head.extra.insert("text".to_owned(), Value::Object(text));
                }
            }
            _ => {}
        }
    }
}

/// A format of Responses as chat completions have it: the schema is one level deeper.
fn chat_format(format: &Value) -> Value {
    let Some("json_schema") = format["type"].as_str() else { return format.clone() };
    let mut inner = format.as_object().cloned().unwrap_or_default();
    inner.remove("type");
    serde_json::json!({"type": "json_schema", "json_schema": inner})
}

/// The items in groups of what was said together: messages, the model's answers, and the results of their calls.
pub(crate) fn groups(items: Vec<Item>) -> Vec<Vec<Item>> {
    let kind = |item: &Item| match item {
        Item::Model(_) => 1,
        Item::Result(_) => 2,
        _ => 0,
    };
    let mut groups: Vec<Vec<Item>> = Vec::new();
    for item in items {
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(|last| kind(last) == kind(&item)) => {
                group.push(item);
            }
            _ => groups.push(vec![item]),
        }
    }
    groups
}

/// The ids of the calls in items.
pub(crate) fn call_ids(items: &[Item]) -> impl Iterator<Item = &CallId> {
    items.iter().filter_map(|item| match item {
        Item::Model(item) => match item.view() {
            View::Call(call) => Some(&call.id),
            _ => None,
        },
        _ => None,
    })
}
