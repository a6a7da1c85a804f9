#![doc = include_str!("docs/wire.md")]
#![forbid(unsafe_code)]

pub mod api;
mod arguments;
pub mod chat;
mod declaration;
mod description;
mod export;
mod mcp;
pub mod model;
mod names;
mod parameters;
mod prompt;
mod report;
pub mod responses;
mod results;
mod schema;
mod strict;
mod target;

pub use arguments::{from_gemini, from_strict};
pub use declaration::Declaration;
pub use export::{Export, export};
pub use mcp::{McpData, mcp_output_schema};
pub use names::NameMap;
pub use parameters::{Parameter, fields, parameters};
pub use prompt::{prompt_text, prompt_text_with_notes};
pub use report::{Note, Reason, Refusal};
pub use results::anthropic::anthropic_tool_result;
pub use results::gemini::gemini_function_response;
pub use results::mcp::{
    MCP_OUTPUT_URI, META_ERROR_KIND, META_NOTES, META_RETRY_AFTER, META_TRUNCATED,
    McpCallToolResult, mcp_call_tool_result,
};
pub use results::openai::{openai_call_record, openai_tool_message, responses_call_output};
pub use results::plain::plain_result;
pub use target::Target;
