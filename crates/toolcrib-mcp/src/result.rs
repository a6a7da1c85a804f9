//! The answer to a call, as `rmcp` sends it.

use rmcp::model::CallToolResult;
use toolcrib_tool::{ToolDefinition, ToolResult};
use toolcrib_wire::{McpData, mcp_call_tool_result};

/// Translates a result; `definition` is the called tool's, if there is such a tool. An error would
/// mean that `rmcp` knows the protocol differently.
pub(crate) fn call_tool_result(
    result: &ToolResult,
    definition: Option<&ToolDefinition>,
    takes: McpData,
) -> Result<CallToolResult, serde_json::Error> {
    let schema = definition.and_then(ToolDefinition::output_schema);
    let answer = mcp_call_tool_result(result, schema, takes);
    serde_json::from_value(answer)
}
