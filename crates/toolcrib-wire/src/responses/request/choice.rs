//! Which tools the model may or must call.

use serde_json::{Value, json};
use toolcrib_json::Cursor;

use super::tools::{BuiltInKind, RequestTool};
use crate::api::ApiError;
use crate::api::fields::{
    id, list, member, missing, object, one_of, required_id, text, unsupported, wrong_value,
};
use crate::model::ToolChoice;

/// Which tools the model may or must call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model calls nothing.
    None,
    /// The model calls something.
    Required,
    /// The model calls this tool.
    Tool(AllowedTool),
    /// The model calls nothing but these tools, whatever it is offered. The server has to enforce it.
    Allowed {
        /// Whether it has to call one.
        is_required: bool,
        /// The tools.
        tools: Vec<AllowedTool>,
    },
}

/// A tool that a choice names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedTool {
    /// A function.
    Function(String),
    /// A custom tool.
    Custom(String),
    /// A tool that the server has.
    BuiltIn(BuiltInKind),
    /// A tool of an MCP server, or all of them.
    Mcp {
        /// The name of the server.
        label: String,
        /// The tool.
        name: Option<String>,
    },
}

impl AllowedTool {
    /// Whether the choice means this tool.
    pub fn is(&self, tool: &RequestTool) -> bool {
        match (self, tool) {
            (Self::Function(name), RequestTool::Function(tool)) => *name == tool.name,
            (Self::Custom(name), RequestTool::Custom(tool)) => *name == tool.name,
            (Self::BuiltIn(kind), RequestTool::BuiltIn(tool)) => *kind == tool.kind,
            (Self::Mcp { label, .. }, RequestTool::Mcp(server)) => *label == server.label,
            _ => false,
        }
    }

    /// The name under which the model calls the tool; `None` for all tools of an MCP server.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Function(name) | Self::Custom(name) => Some(name),
            Self::BuiltIn(kind) => Some(kind.tool_name()),
            Self::Mcp { name, .. } => name.as_deref(),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Function(name) => json!({"type": "function", "name": name}),
            Self::Custom(name) => json!({"type": "custom", "name": name}),
            Self::BuiltIn(kind) => json!({"type": kind.as_str()}),
            Self::Mcp { label, name: None } => json!({"type": "mcp", "server_label": label}),
            Self::Mcp { label, name: Some(name) } => {
                json!({"type": "mcp", "server_label": label, "name": name})
            }
        }
    }

    fn read(value: Cursor<'_>) -> Result<Self, ApiError> {
        let value = object(value)?;
        let kind = member(value, "type").ok_or_else(|| missing(value, "type"))?;
        // Chat completions put the name into an object of its own.
        let named = |key: &str| required_id(member(value, key).unwrap_or(value), "name");
        match &*text(kind)? {
            "function" => named("function").map(Self::Function),
            "custom" => named("custom").map(Self::Custom),
            "mcp" => Ok(Self::Mcp {
                label: required_id(value, "server_label")?,
                name: member(value, "name").map(id).transpose()?,
            }),
            other => BuiltInKind::of_type(other).map(Self::BuiltIn).ok_or_else(|| {
                unsupported(kind, &format!("the server has no tool of the type {other:?}"))
            }),
        }
    }
}

impl RequestToolChoice {
    /// Whether the model may call this tool.
    pub fn allows(&self, tool: &RequestTool) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::None => false,
            Self::Tool(only) => only.is(tool),
            Self::Allowed { tools, .. } => tools.iter().any(|allowed| allowed.is(tool)),
        }
    }

    /// The choice for a request to a model, under the tool's own name.
    pub fn to_model(&self) -> ToolChoice {
        match self {
            Self::Auto | Self::Allowed { is_required: false, .. } => ToolChoice::Auto,
            Self::None => ToolChoice::None,
            Self::Required | Self::Allowed { is_required: true, .. } => ToolChoice::Required,
            Self::Tool(tool) => match tool.name() {
                Some(name) => ToolChoice::Tool(name.to_owned()),
                None => ToolChoice::Required,
            },
        }
    }

    /// The choice as the response repeats it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::None => "none".into(),
            Self::Required => "required".into(),
            Self::Tool(tool) => tool.to_value(),
            Self::Allowed { is_required, tools } => json!({
                "type": "allowed_tools",
                "mode": if *is_required { "required" } else { "auto" },
                "tools": tools.iter().map(AllowedTool::to_value).collect::<Vec<_>>(),
            }),
        }
    }

    pub(crate) fn read(value: Cursor<'_>) -> Result<Self, ApiError> {
        if value.kind().is_string() {
            return Ok(match one_of(value, &["auto", "none", "required"])? {
                "auto" => Self::Auto,
                "none" => Self::None,
                _ => Self::Required,
            });
        }
        let choice = object(value)?;
        if !member(choice, "type").is_some_and(|kind| kind.equals("allowed_tools")) {
            return AllowedTool::read(choice).map(Self::Tool);
        }
        let choice = member(choice, "allowed_tools").unwrap_or(choice);
        let is_required = match member(choice, "mode") {
            Some(mode) => one_of(mode, &["auto", "required"])? == "required",
            None => false,
        };
        let given = member(choice, "tools").ok_or_else(|| missing(choice, "tools"))?;
        let tools: Vec<AllowedTool> =
            list(given)?.map(AllowedTool::read).collect::<Result<_, _>>()?;
        if tools.is_empty() {
            return Err(wrong_value(given, "must name at least one tool"));
        }
        Ok(Self::Allowed { is_required, tools })
    }

    /// Whether the choice names only tools of the request. Functions may also be the server's own, which the caller
    /// checks: this reports those that the request does not have, with their place.
    pub fn unknown_tools<'a>(
        &'a self,
        tools: &'a [RequestTool],
    ) -> impl Iterator<Item = (String, &'a AllowedTool)> {
        let (one, many): (Option<&AllowedTool>, &[AllowedTool]) = match self {
            Self::Tool(tool) => (Some(tool), &[]),
            Self::Allowed { tools, .. } => (None, tools),
            _ => (None, &[]),
        };
        let one = one.into_iter().map(|tool| ("tool_choice".to_owned(), tool));
        let many = many
            .iter()
            .enumerate()
            .map(|(index, tool)| (format!("tool_choice.tools[{index}]"), tool));
        one.chain(many).filter(|(_, choice)| !tools.iter().any(|tool| choice.is(tool)))
    }
}
