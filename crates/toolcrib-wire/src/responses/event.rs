//! One event of a response's stream.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

macro_rules! event_names {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The `type` of an event; all events about tools.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum EventName {
            $($(#[$doc])* $variant,)*
        }

        impl EventName {
            /// Every name.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name as the API spells it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

event_names! {
    /// An item has been added to the response's output.
    ItemAdded = "response.output_item.added",
    /// An item is finished and changes no more.
    ItemDone = "response.output_item.done",
    /// A piece of a function's arguments.
    FunctionArgumentsDelta = "response.function_call_arguments.delta",
    /// A function's whole arguments.
    FunctionArgumentsDone = "response.function_call_arguments.done",
    /// A piece of a custom tool's input.
    CustomInputDelta = "response.custom_tool_call_input.delta",
    /// A custom tool's whole input.
    CustomInputDone = "response.custom_tool_call_input.done",
    /// A file search was requested.
    FileSearchInProgress = "response.file_search_call.in_progress",
    /// A file search is running.
    FileSearchSearching = "response.file_search_call.searching",
    /// A file search has its results.
    FileSearchCompleted = "response.file_search_call.completed",
    /// A web search was requested.
    WebSearchInProgress = "response.web_search_call.in_progress",
    /// A web search is running.
    WebSearchSearching = "response.web_search_call.searching",
    /// A web search has its results.
    WebSearchCompleted = "response.web_search_call.completed",
    /// A picture was requested.
    ImageGenerationInProgress = "response.image_generation_call.in_progress",
    /// A picture is being made.
    ImageGenerationGenerating = "response.image_generation_call.generating",
    /// A picture at an intermediate stage.
    ImageGenerationPartialImage = "response.image_generation_call.partial_image",
    /// A picture is made.
    ImageGenerationCompleted = "response.image_generation_call.completed",
    /// Code is being written.
    CodeInterpreterInProgress = "response.code_interpreter_call.in_progress",
    /// Code is running.
    CodeInterpreterInterpreting = "response.code_interpreter_call.interpreting",
    /// Code has run.
    CodeInterpreterCompleted = "response.code_interpreter_call.completed",
    /// A piece of the code.
    CodeDelta = "response.code_interpreter_call_code.delta",
    /// The whole code.
    CodeDone = "response.code_interpreter_call_code.done",
    /// A call to a tool of an MCP server has begun.
    McpInProgress = "response.mcp_call.in_progress",
    /// A piece of an MCP tool's arguments.
    McpArgumentsDelta = "response.mcp_call_arguments.delta",
    /// An MCP tool's whole arguments.
    McpArgumentsDone = "response.mcp_call_arguments.done",
    /// An MCP server's tool has succeeded.
    McpCompleted = "response.mcp_call.completed",
    /// An MCP server's tool has failed.
    McpFailed = "response.mcp_call.failed",
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One event, numbered and ready to be sent.
///
/// Only a [`ResponseStream`](super::ResponseStream) makes events, so their numbers are consistent.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseEvent {
    pub(super) name: EventName,
    pub(super) sequence_number: u64,
    pub(super) output_index: u64,
    pub(super) item_id: Arc<str>,
    pub(super) body: Body,
}

/// The content of an event in addition to its name and numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    /// Nothing.
    Plain,
    /// The item itself.
    Item(Value),
    /// Text under a key: `delta`, `arguments`, `input` or `code`.
    Text(&'static str, String),
    /// A function's whole arguments, and its name.
    Arguments(String, Arc<str>),
    /// A picture in base64, and its number within the item.
    PartialImage(String, u64),
}

impl ResponseEvent {
    /// The event's `type`, which is also the `event` line of a server-sent event.
    pub fn name(&self) -> EventName {
        self.name
    }

    /// The event's position in the stream: one more than that of the previous event.
    pub fn sequence_number(&self) -> u64 {
        self.sequence_number
    }

    /// The item's position in the response's output, from 0.
    pub fn output_index(&self) -> u64 {
        self.output_index
    }

    /// The id of the event's item.
    pub fn item_id(&self) -> &str {
        &self.item_id
    }

    /// The item, in the two events that carry one.
    pub fn item(&self) -> Option<&Value> {
        match &self.body {
            Body::Item(item) => Some(item),
            _ => None,
        }
    }

    /// The event as JSON, for the `data` line of a server-sent event.
    pub fn to_value(&self) -> Value {
        let mut event = Map::new();
        event.insert("type".to_owned(), self.name.as_str().into());
        event.insert("sequence_number".to_owned(), self.sequence_number.into());
        event.insert("output_index".to_owned(), self.output_index.into());
        // In an event with an item, the id is inside the item.
        if let Body::Item(item) = &self.body {
            event.insert("item".to_owned(), item.clone());
            return Value::Object(event);
        }
        event.insert("item_id".to_owned(), (&*self.item_id).into());
        match &self.body {
            Body::Text(key, text) => {
                event.insert((*key).to_owned(), text.as_str().into());
            }
            Body::Arguments(arguments, name) => {
                event.insert("arguments".to_owned(), arguments.as_str().into());
                event.insert("name".to_owned(), (&**name).into());
            }
            Body::PartialImage(data, index) => {
                event.insert("partial_image_b64".to_owned(), data.as_str().into());
                event.insert("partial_image_index".to_owned(), (*index).into());
            }
            Body::Plain | Body::Item(_) => {}
        }
        Value::Object(event)
    }
}
