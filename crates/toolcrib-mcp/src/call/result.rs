//! The answer to a call, as `rmcp` sends it.

use rmcp::model::CallToolResult;
use toolcrib_tool::{ToolDefinition, ToolResult};
use toolcrib_wire::{McpCallToolResult, McpData};

/// Translates a result, with stand-ins for numbers that the library would change; `definition` is the called tool's, if there is such a tool. An error would
/// mean that `rmcp` knows the protocol differently.
pub(crate) fn call_tool_result(
    result: &ToolResult,
    definition: Option<&ToolDefinition>,
    takes: McpData,
) -> Result<CallToolResult, serde_json::Error> {
    let schema = definition.and_then(ToolDefinition::output_schema);
    let answer = McpCallToolResult::new(result, schema, takes).protected();
    serde_json::from_value(serde_json::to_value(answer)?)
}
