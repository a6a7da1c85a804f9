//! Converts the result of a call to `rmcp`'s type.

use rmcp::model::CallToolResult;
use toolcrib_tool::{ToolDefinition, ToolResult};
use toolcrib_wire::{McpCallToolResult, McpData};

/// Converts a result, with stand-ins for numbers that the library would change. `definition` is the
/// called tool's, if the tool exists. An error would mean that `rmcp` has another view of the
/// protocol.
pub(crate) fn call_tool_result(
    result: &ToolResult,
    definition: Option<&ToolDefinition>,
    data_form: McpData,
) -> Result<CallToolResult, serde_json::Error> {
    let schema = definition.and_then(ToolDefinition::output_schema);
    let answer = McpCallToolResult::new(result, schema, data_form).protected();
    serde_json::from_value(serde_json::to_value(answer)?)
}
