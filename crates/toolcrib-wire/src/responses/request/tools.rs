//! The tools of a request.

use serde_json::{Map, Value, json};
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::{InputFormat, ToolDefinition, local_shell_schema};

use crate::api::ApiError;
use crate::api::fields::{
    data, flag, id, list, member, members, missing, object, one_of, required_id, text, unknown,
    unsupported, wrong_type, wrong_value,
};

/// A tool of a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RequestTool {
    /// A function that the client runs.
    Function(FunctionTool),
    /// A tool with one text as input that the client runs.
    Custom(CustomTool),
    /// A tool that the server has.
    BuiltIn(BuiltInTool),
    /// The tools of an MCP server.
    Mcp(McpServer),
}

/// A function that the client runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FunctionTool {
    /// Its name.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// Whether the model has to keep to the schema exactly; `None` if the client does not say.
    pub is_strict: Option<bool>,
}

/// A tool with one text as input that the client runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CustomTool {
    /// Its name.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// What its input may be.
    pub format: InputFormat,
}

/// A tool that the server has.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BuiltInTool {
    /// Which one.
    pub kind: BuiltInKind,
    /// The members that the client sent, with their `type`.
    pub settings: Map<String, Value>,
}

/// A tool that the API has built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuiltInKind {
    /// A search through documents.
    FileSearch,
    /// A search through the web.
    WebSearch,
    /// A picture that is made.
    ImageGeneration,
    /// Code that runs.
    CodeInterpreter,
    /// A shell that the client runs.
    LocalShell,
}

/// The tools of an MCP server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpServer {
    /// The name of the server.
    pub label: String,
    /// Where it is, if the client wants the server to connect to it.
    pub url: Option<String>,
    /// The tools that the model may call; `None` for all.
    pub allowed_tools: Option<Vec<String>>,
    /// Which calls wait for approval.
    pub approval: McpApproval,
}

/// Which calls of an MCP server's tools wait for the client's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpApproval {
    /// All of them.
    Always,
    /// None of them.
    Never,
    /// It depends on the tool.
    ByTool {
        /// Calls of these wait.
        always: Vec<String>,
        /// Calls of these do not.
        never: Vec<String>,
    },
}

impl BuiltInKind {
    pub(super) fn of_type(kind: &str) -> Option<Self> {
        Some(match kind {
            "file_search" => Self::FileSearch,
            "web_search"
            | "web_search_2025_08_26"
            | "web_search_preview"
            | "web_search_preview_2025_03_11" => Self::WebSearch,
            "image_generation" => Self::ImageGeneration,
            "code_interpreter" => Self::CodeInterpreter,
            "local_shell" => Self::LocalShell,
            _ => return None,
        })
    }

    /// The `type` in requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileSearch => "file_search",
            Self::WebSearch => "web_search",
            Self::ImageGeneration => "image_generation",
            Self::CodeInterpreter => "code_interpreter",
            Self::LocalShell => "local_shell",
        }
    }

    /// Our tool that does this job.
    pub const fn tool_name(self) -> &'static str {
        match self {
            Self::FileSearch => "knowledge_search",
            Self::WebSearch => "web_search",
            Self::ImageGeneration => "image_generate",
            Self::CodeInterpreter => "execute_python",
            Self::LocalShell => "local_shell",
        }
    }
}

/// Whether it is a group of further tools.
fn is_namespace(tool: Cursor<'_>) -> bool {
    member(tool, "type").is_some_and(|kind| kind.equals("namespace"))
}

impl RequestTool {
    /// The name under which the model calls it; `None` for the tools of an MCP server.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Function(tool) => Some(&tool.name),
            Self::Custom(tool) => Some(&tool.name),
            Self::BuiltIn(tool) => Some(tool.kind.tool_name()),
            Self::Mcp(_) => None,
        }
    }

    /// The definition of a tool that the client runs; `None` for a tool that the server has. `index` is the tool's
    /// position in the request, for the error.
    pub fn client_definition(&self, index: usize) -> Option<Result<ToolDefinition, ApiError>> {
        let (name, description, schema) = match self {
            Self::Function(tool) => {
                (tool.name.as_str(), tool.description.as_str(), tool.parameters.clone())
            }
            Self::Custom(tool) => {
                (tool.name.as_str(), tool.description.as_str(), tool.format.clone().schema())
            }
            Self::BuiltIn(tool) if tool.kind == BuiltInKind::LocalShell => {
                ("local_shell", "Runs a command on the user's machine.", local_shell_schema())
            }
            _ => return None,
        };
        let description = if description.is_empty() { name } else { description };
        let built =
            ToolDefinition::builder(name).description(description).input_schema(schema).build();
        Some(built.map_err(|error| {
            let param = format!("tools[{index}]");
            ApiError::invalid(format!("`{param}` is not a usable tool: {error}"))
                .with_code("invalid_value")
                .with_param(param)
        }))
    }

    /// The tool as the response repeats it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Function(tool) => json!({
                "type": "function",
                "name": tool.name,
                "description": (!tool.description.is_empty()).then_some(&tool.description),
                "parameters": tool.parameters,
                "strict": tool.is_strict,
            }),
            Self::Custom(tool) => json!({
                "type": "custom",
                "name": tool.name,
                "description": (!tool.description.is_empty()).then_some(&tool.description),
                "format": tool.format.clone().schema()["x-custom-format"],
            }),
            Self::BuiltIn(tool) => Value::Object(tool.settings.clone()),
            // Without headers and tokens, which are secrets.
            Self::Mcp(server) => {
                let mut value = json!({
                    "type": "mcp",
                    "server_label": server.label,
                    "allowed_tools": server.allowed_tools,
                    "require_approval": server.approval.to_value(),
                });
                if let Some(url) = &server.url {
                    value["server_url"] = url.as_str().into();
                }
                value
            }
        }
    }

    /// Reads the member `tools` of the Responses API.
    pub(crate) fn read_list(value: Cursor<'_>) -> Result<Vec<Self>, ApiError> {
        Self::read_each(value, Self::read)
    }

    /// The places of the tools that no model is offered: groups of further tools of the client, which no provider but
    /// OpenAI has. A client does without calls of them.
    pub(crate) fn left_out(value: Cursor<'_>) -> Result<Vec<String>, ApiError> {
        let tools = list(value)?.enumerate();
        let groups = tools.filter(|(_, tool)| is_namespace(*tool));
        Ok(groups.map(|(index, _)| format!("tools[{index}]")).collect())
    }

    /// Reads a list of tools, each with a name of its own.
    pub(crate) fn read_each(
        value: Cursor<'_>,
        read: impl Fn(Cursor<'_>) -> Result<Self, ApiError>,
    ) -> Result<Vec<Self>, ApiError> {
        let mut tools = Vec::new();
        let mut names = std::collections::HashSet::new();
        for tool in list(value)? {
            if is_namespace(tool) {
                continue;
            }
            let read = read(tool)?;
            let name = read.name().map(str::to_owned);
            if let Some(name) = name.filter(|name| !names.insert(name.clone())) {
                return Err(wrong_value(tool, format!("is a second tool with the name {name:?}")));
            }
            tools.push(read);
        }
        Ok(tools)
    }

    fn read(tool: Cursor<'_>) -> Result<Self, ApiError> {
        let tool = object(tool)?;
        let kind_at = member(tool, "type").ok_or_else(|| missing(tool, "type"))?;
        let kind = text(kind_at)?;
        if let Some(kind) = BuiltInKind::of_type(&kind) {
            let Value::Object(settings) = data(tool)? else {
                return Err(wrong_type(tool, "an object"));
            };
            return Ok(Self::BuiltIn(BuiltInTool { kind, settings }));
        }
        match &*kind {
            "function" => Self::read_function(tool, tool),
            "custom" => Self::read_custom(tool, tool),
            "mcp" => mcp(tool).map(Self::Mcp),
            _ => Err(unsupported(
                kind_at,
                &format!(
                    "the server has no tool of the type {kind:?}; there are function, custom, file_search, web_search, \
                     image_generation, code_interpreter, local_shell and mcp"
                ),
            )),
        }
    }

    /// Reads a function: `of` has its members, which chat completions put into an object of their own.
    pub(crate) fn read_function(tool: Cursor<'_>, of: Cursor<'_>) -> Result<Self, ApiError> {
        let mut description = String::new();
        let mut parameters = json!({"type": "object", "properties": {}});
        let mut is_strict = None;
        for (key, value) in members(of)? {
            match &*key {
                "description" => description = text(value)?,
                "parameters" => {
                    object(value)?;
                    parameters = data(value)?;
                }
                "strict" => is_strict = Some(flag(value)?),
                "name" => {
                    name(value)?;
                }
                "type" if tool.index() == of.index() => {}
                // Hints for the provider's own handling of tools. Every tool is sent to the model at once.
                "defer_loading" | "async" => {
                    if flag(value)? {
                        return Err(unsupported(
                            value,
                            "leave it out; every tool is offered at once and answered in turn",
                        ));
                    }
                }
                "output_schema" | "allowed_callers" | "cache_control" => {
                    return Err(unsupported(value, "leave it out"));
                }
                _ => return Err(unknown(value)),
            }
        }
        let name = required_id(of, "name")?;
        Ok(Self::Function(FunctionTool { name, description, parameters, is_strict }))
    }

    /// Reads a custom tool: `of` has its members.
    pub(crate) fn read_custom(tool: Cursor<'_>, of: Cursor<'_>) -> Result<Self, ApiError> {
        let mut description = String::new();
        let mut format = InputFormat::Text;
        for (key, value) in members(of)? {
            match &*key {
                "description" => description = text(value)?,
                "format" => format = input_format(value)?,
                "name" => {
                    name(value)?;
                }
                "type" if tool.index() == of.index() => {}
                "defer_loading" | "async" => {
                    if flag(value)? {
                        return Err(unsupported(
                            value,
                            "leave it out; every tool is offered at once and answered in turn",
                        ));
                    }
                }
                "allowed_callers" => return Err(unsupported(value, "leave it out")),
                _ => return Err(unknown(value)),
            }
        }
        let name = required_id(of, "name")?;
        Ok(Self::Custom(CustomTool { name, description, format }))
    }
}

/// The name of a tool: 1 to 64 letters, digits, `_` and `-`.
pub(super) fn name(value: Cursor<'_>) -> Result<String, ApiError> {
    let name = id(value)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.len() > 64 || !name.bytes().all(fits) {
        return Err(wrong_value(value, "must be 1 to 64 letters, digits, `_` and `-`"));
    }
    Ok(name)
}

/// The format of a custom tool's input; chat completions put the grammar into an object of its own.
fn input_format(value: Cursor<'_>) -> Result<InputFormat, ApiError> {
    let format = object(value)?;
    let kind = member(format, "type").ok_or_else(|| missing(format, "type"))?;
    if one_of(kind, &["text", "grammar"])? == "text" {
        return Ok(InputFormat::Text);
    }
    let grammar = member(format, "grammar").unwrap_or(format);
    let definition = required_id(grammar, "definition")?;
    let syntax = member(grammar, "syntax").ok_or_else(|| missing(grammar, "syntax"))?;
    Ok(match one_of(syntax, &["regex", "lark"])? {
        "regex" => InputFormat::Regex { definition },
        _ => InputFormat::Lark { definition },
    })
}

impl McpApproval {
    fn to_value(&self) -> Value {
        match self {
            Self::Always => "always".into(),
            Self::Never => "never".into(),
            Self::ByTool { always, never } => {
                json!({"always": {"tool_names": always}, "never": {"tool_names": never}})
            }
        }
    }
}

fn mcp(tool: Cursor<'_>) -> Result<McpServer, ApiError> {
    let mut server = McpServer {
        label: required_id(tool, "server_label")?,
        url: None,
        allowed_tools: None,
        approval: McpApproval::Always,
    };
    for (key, value) in members(tool)? {
        match &*key {
            "type" | "server_label" | "server_description" => {}
            "server_url" => server.url = Some(id(value)?),
            "allowed_tools" => server.allowed_tools = Some(tool_names(value)?),
            "require_approval" => server.approval = approval(value)?,
            "connector_id" | "authorization" | "headers" | "defer_loading" | "tunnel_id"
            | "allowed_callers" => {
                return Err(unsupported(
                    value,
                    "name a server that the operator has set up by its `server_label`, without credentials",
                ));
            }
            _ => return Err(unknown(value)),
        }
    }
    Ok(server)
}

/// Names of tools: a list, or a filter with such a list.
fn tool_names(value: Cursor<'_>) -> Result<Vec<String>, ApiError> {
    if value.kind() == Kind::Array {
        return list(value)?.map(text).collect();
    }
    let mut names = Vec::new();
    for (key, value) in members(value)? {
        match &*key {
            "tool_names" => names = list(value)?.map(text).collect::<Result<_, _>>()?,
            _ => return Err(unsupported(value, "name the tools in `tool_names`")),
        }
    }
    Ok(names)
}

fn approval(value: Cursor<'_>) -> Result<McpApproval, ApiError> {
    if value.kind().is_string() {
        return Ok(match one_of(value, &["always", "never"])? {
            "always" => McpApproval::Always,
            _ => McpApproval::Never,
        });
    }
    let (mut always, mut never) = (Vec::new(), Vec::new());
    for (key, value) in members(value)? {
        match &*key {
            "always" => always = tool_names(value)?,
            "never" => never = tool_names(value)?,
            _ => return Err(unknown(value)),
        }
    }
    Ok(McpApproval::ByTool { always, never })
}
