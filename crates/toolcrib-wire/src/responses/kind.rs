//! The kinds of items in the Responses API.

use std::sync::Arc;

use toolcrib_tool::{LOCAL_SHELL, ToolDefinition};

use super::event::EventName;

/// The item as which a call appears in a response.
///
/// [`CallKind::of_tool`] chooses it for tools that correspond to one of the API's built-in tools; a caller with more
/// knowledge (a request's `custom` tool, a tool of an MCP server) sets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// `function_call`: any tool with JSON arguments.
    Function,
    /// `custom_tool_call`: a tool whose input is one text.
    Custom,
    /// `file_search_call`: a search through the host's documents.
    FileSearch,
    /// `web_search_call`: a search through the web.
    WebSearch,
    /// `image_generation_call`: a picture that is made.
    ImageGeneration,
    /// `code_interpreter_call`: code that runs.
    CodeInterpreter,
    /// `mcp_call`: a tool of an MCP server.
    Mcp {
        /// The request's name for the server.
        server_label: Arc<str>,
    },
    /// `local_shell_call`: a command that the client runs.
    LocalShell,
}

impl CallKind {
    /// The kind by the tool's name: `knowledge_search` is a file search, `web_search` a web search, `image_generate` an
    /// image generation, `execute_python` a code interpreter, `local_shell` a local shell, and everything else a
    /// function.
    ///
    /// ```
    /// use toolcrib_wire::responses::CallKind;
    ///
    /// assert_eq!(CallKind::of_tool("execute_python"), CallKind::CodeInterpreter);
    /// assert_eq!(CallKind::of_tool("get_weather").as_str(), "function_call");
    /// ```
    pub fn of_tool(name: &str) -> Self {
        match name {
            "knowledge_search" => Self::FileSearch,
            "web_search" => Self::WebSearch,
            "image_generate" => Self::ImageGeneration,
            "execute_python" => Self::CodeInterpreter,
            "local_shell" => Self::LocalShell,
            _ => Self::Function,
        }
    }

    /// The kind of a tool: by its definition (a local shell, a custom tool with one text), else [by its
    /// name](Self::of_tool).
    ///
    /// ```
    /// use toolcrib_tool::{InputFormat, ToolDefinition};
    /// use toolcrib_wire::responses::CallKind;
    ///
    /// let day = ToolDefinition::builder("day")
    ///     .description("Open the calendar at a day.")
    ///     .input_schema(InputFormat::Text.schema())
    ///     .build()?;
    /// assert_eq!(CallKind::of_definition(&day), CallKind::Custom);
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    pub fn of_definition(definition: &ToolDefinition) -> Self {
        let schema = definition.input_schema();
        if schema.get(LOCAL_SHELL) == Some(&true.into()) {
            Self::LocalShell
        } else if schema.get("x-custom-format").is_some() {
            Self::Custom
        } else {
            Self::of_tool(definition.name())
        }
    }

    /// The item's `type`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Function => "function_call",
            Self::Custom => "custom_tool_call",
            Self::FileSearch => "file_search_call",
            Self::WebSearch => "web_search_call",
            Self::ImageGeneration => "image_generation_call",
            Self::CodeInterpreter => "code_interpreter_call",
            Self::Mcp { .. } => "mcp_call",
            Self::LocalShell => "local_shell_call",
        }
    }

    /// The prefix of the item's id, as in the API.
    pub const fn id_prefix(&self) -> &'static str {
        match self {
            Self::Function => "fc_",
            Self::Custom => "ctc_",
            Self::FileSearch => "fs_",
            Self::WebSearch => "ws_",
            Self::ImageGeneration => "ig_",
            Self::CodeInterpreter => "ci_",
            Self::Mcp { .. } => "mcp_",
            Self::LocalShell => "lsh_",
        }
    }

    /// Whether a client can run the call.
    pub(crate) const fn is_for_clients(&self) -> bool {
        matches!(self, Self::Function | Self::Custom | Self::LocalShell)
    }

    /// The event for the start of work on the item, right after the item is added.
    pub(crate) const fn begun(&self) -> Option<EventName> {
        match self {
            Self::Function | Self::Custom | Self::LocalShell => None,
            Self::FileSearch => Some(EventName::FileSearchInProgress),
            Self::WebSearch => Some(EventName::WebSearchInProgress),
            Self::ImageGeneration => Some(EventName::ImageGenerationInProgress),
            Self::CodeInterpreter => Some(EventName::CodeInterpreterInProgress),
            Self::Mcp { .. } => Some(EventName::McpInProgress),
        }
    }

    /// The event for a running tool, and the item's status meanwhile.
    pub(crate) const fn working(&self) -> Option<(EventName, Status)> {
        match self {
            Self::FileSearch => Some((EventName::FileSearchSearching, Status::Searching)),
            Self::WebSearch => Some((EventName::WebSearchSearching, Status::Searching)),
            Self::ImageGeneration => {
                Some((EventName::ImageGenerationGenerating, Status::Generating))
            }
            Self::CodeInterpreter => {
                Some((EventName::CodeInterpreterInterpreting, Status::Interpreting))
            }
            _ => None,
        }
    }

    /// The event for a successful tool.
    pub(crate) const fn completed(&self) -> Option<EventName> {
        match self {
            Self::Function | Self::Custom | Self::LocalShell => None,
            Self::FileSearch => Some(EventName::FileSearchCompleted),
            Self::WebSearch => Some(EventName::WebSearchCompleted),
            Self::ImageGeneration => Some(EventName::ImageGenerationCompleted),
            Self::CodeInterpreter => Some(EventName::CodeInterpreterCompleted),
            Self::Mcp { .. } => Some(EventName::McpCompleted),
        }
    }

    /// The event for a failed tool; most kinds report it only in the item's status.
    pub(crate) const fn failed(&self) -> Option<EventName> {
        match self {
            Self::Mcp { .. } => Some(EventName::McpFailed),
            _ => None,
        }
    }

    /// The events that stream the model's text, and the key under which the last of them has all of it.
    pub(crate) const fn written(&self) -> Option<(EventName, EventName, &'static str)> {
        match self {
            Self::Function => Some((
                EventName::FunctionArgumentsDelta,
                EventName::FunctionArgumentsDone,
                "arguments",
            )),
            Self::Custom => {
                Some((EventName::CustomInputDelta, EventName::CustomInputDone, "input"))
            }
            Self::CodeInterpreter => Some((EventName::CodeDelta, EventName::CodeDone, "code")),
            Self::Mcp { .. } => {
                Some((EventName::McpArgumentsDelta, EventName::McpArgumentsDone, "arguments"))
            }
            _ => None,
        }
    }

    /// The status of an item whose call was interrupted.
    pub(crate) const fn cut_short(&self) -> Status {
        match self {
            // These two kinds have no `incomplete`.
            Self::WebSearch | Self::ImageGeneration => Status::Failed,
            _ => Status::Incomplete,
        }
    }

    /// The status of an item whose tool has failed. A function call is complete once it is made; its failure is
    /// reported by its output.
    pub(crate) const fn after_failure(&self) -> Status {
        match self {
            Self::Function | Self::Custom | Self::LocalShell => Status::Completed,
            _ => Status::Failed,
        }
    }
}

/// An item's `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    InProgress,
    Searching,
    Generating,
    Interpreting,
    Completed,
    Incomplete,
    Failed,
}

impl Status {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Searching => "searching",
            Self::Generating => "generating",
            Self::Interpreting => "interpreting",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}
