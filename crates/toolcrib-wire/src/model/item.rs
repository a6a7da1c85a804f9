//! The items of a conversation with a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_json::Cursor;
use toolcrib_tool::{CUSTOM_INPUT, CallId, Content, ToolCall, ToolResult};

use super::{ModelError, Wire, anthropic, chat, json, responses};

/// One item of a conversation. Serialize items to store them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Item {
    /// What a person or the program says.
    Input(Input),
    /// What the model said.
    Model(ModelItem),
    /// The result of a call that the model made.
    Result(Box<ToolResult>),
}

impl Item {
    /// A text from the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::Input(Input { role: Role::User, content: vec![Content::Text(text.into())] })
    }
}

impl From<ModelItem> for Item {
    fn from(item: ModelItem) -> Self {
        Self::Model(item)
    }
}

impl From<ToolResult> for Item {
    fn from(result: ToolResult) -> Self {
        Self::Result(Box::new(result))
    }
}

/// A message to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Who speaks.
    pub role: Role,
    /// Texts, pictures, sounds and files. What a provider does not accept is named in brackets.
    pub content: Vec<Content>,
}

/// Who speaks in an [`Input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The program that runs the agent, in the middle of a conversation. The instructions at its start are in
    /// [`RequestHead`](super::RequestHead).
    System,
}

/// One thing that a model said: the provider's own JSON, and a view of it.
///
/// The JSON goes back to its source byte for byte, with members and types that this crate does not know; any other
/// provider receives what the view contains. An item is stored as its JSON alone, and the view is read from it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredItem", into = "StoredItem")]
pub struct ModelItem {
    wire: Wire,
    source: Arc<str>,
    raw: Arc<str>,
    view: View,
}

/// What the JSON of a [`ModelItem`] means.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum View {
    /// Text for the user.
    Message {
        /// The text.
        text: String,
        /// Where the answer stands, if the provider marks it: `commentary` or `final_answer`.
        phase: Option<String>,
        /// Whether the text is a refusal.
        is_refusal: bool,
    },
    /// Reasoning. It returns to its source only.
    Reasoning {
        /// The text or summary; empty if the provider hides it.
        text: String,
    },
    /// A call to a tool.
    Call(ModelCall),
    /// Anything else, for example a search that the provider ran itself. It returns to its source only.
    Other {
        /// The provider's type for it.
        kind: String,
    },
}

/// A call as the model made it. Nothing in it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelCall {
    /// The id that the result has to carry.
    pub id: CallId,
    /// The tool, under the provider's name for it ([`NameMap`](crate::NameMap)).
    pub name: String,
    /// The arguments as the model wrote them: JSON text, `{}` if it wrote nothing; free text for a custom tool.
    pub arguments: String,
    /// Whether the arguments are the free text of a custom tool.
    pub is_custom: bool,
}

impl ModelCall {
    /// The call for an executor, with `name` as the tool's own name. The text of a custom tool becomes its one
    /// argument.
    pub fn to_tool_call(&self, name: impl Into<Arc<str>>) -> ToolCall {
        let arguments = if self.is_custom {
            json!({CUSTOM_INPUT: self.arguments}).to_string()
        } else {
            self.arguments.clone()
        };
        ToolCall::new(self.id.as_str(), name, arguments)
    }
}

impl ModelItem {
    /// Reads an item from the provider's JSON. `source` names where it came from
    /// ([`DecoderSettings::source`](super::DecoderSettings::source)).
    ///
    /// An item is an output item of Responses, or a content block of Anthropic. In chat completions, which have no items, it is the assistant's message without its calls and its reasoning,
    /// an object with the members for reasoning alone, or one entry of `tool_calls`.
    pub fn read(
        wire: Wire,
        source: impl Into<Arc<str>>,
        raw: impl Into<Arc<str>>,
    ) -> Result<Self, ModelError> {
        let raw = raw.into();
        let tape = json::parsed(raw.as_bytes())?;
        let view = Self::view_of(wire, json::object(tape.root())?)?;
        drop(tape);
        Ok(Self { wire, source: source.into(), raw, view })
    }

    fn view_of(wire: Wire, item: Cursor<'_>) -> Result<View, ModelError> {
        match wire {
            Wire::Chat => chat::view(item),
            Wire::Responses => responses::view(item),
            Wire::Anthropic => anthropic::view(item),
        }
    }

    /// A call with other arguments in the place of those that the model wrote, for whoever must not read them. Nothing else
    /// of the provider's JSON stays. What is no call stays as it is.
    #[must_use]
    pub fn with_arguments(&self, arguments: &str) -> Self {
        let View::Call(call) = &self.view else { return self.clone() };
        let ModelCall { id, name, is_custom, .. } = call;
        let raw = match (self.wire, is_custom) {
            (Wire::Chat, false) => {
                json!({"id": id.as_str(), "type": "function", "function": {"name": name, "arguments": arguments}})
            }
            (Wire::Chat, true) => {
                json!({"id": id.as_str(), "type": "custom", "custom": {"name": name, "input": arguments}})
            }
            (Wire::Responses, false) => {
                json!({"type": "function_call", "call_id": id.as_str(), "name": name, "arguments": arguments})
            }
            (Wire::Responses, true) => {
                json!({"type": "custom_tool_call", "call_id": id.as_str(), "name": name, "input": arguments})
            }
            (Wire::Anthropic, _) => {
                let input: Value =
                    serde_json::from_str(&anthropic::input(arguments)).unwrap_or_default();
                json!({"type": "tool_use", "id": id.as_str(), "name": name, "input": input})
            }
        };
        let call = ModelCall { arguments: arguments.to_owned(), ..call.clone() };
        let (source, raw) = (Arc::clone(&self.source), raw.to_string().into());
        Self { wire: self.wire, source, raw, view: View::Call(call) }
    }

    /// The wire on which the item came.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Where the item came from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The provider's JSON, byte for byte.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// What the JSON means.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether the JSON can go back as it is.
    pub(super) fn came_from(&self, wire: Wire, source: &str) -> bool {
        self.wire == wire && &*self.source == source
    }
}

#[derive(Serialize, Deserialize)]
struct StoredItem {
    wire: Wire,
    source: Arc<str>,
    raw: Arc<str>,
}

impl From<ModelItem> for StoredItem {
    fn from(item: ModelItem) -> Self {
        Self { wire: item.wire, source: item.source, raw: item.raw }
    }
}

impl TryFrom<StoredItem> for ModelItem {
    type Error = ModelError;

    fn try_from(stored: StoredItem) -> Result<Self, ModelError> {
        Self::read(stored.wire, stored.source, stored.raw)
    }
}
