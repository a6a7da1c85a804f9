//! The prefixes of items' ids.

/// The prefix of the id of an item of this type, as in the API.
pub(super) fn prefix_of(kind: &str) -> &'static str {
    match kind {
        "message" => "msg_",
        "reasoning" => "rs_",
        "function_call" => "fc_",
        "function_call_output" => "fco_",
        "custom_tool_call" => "ctc_",
        "custom_tool_call_output" => "ctco_",
        "local_shell_call" => "lsh_",
        "local_shell_call_output" => "lsho_",
        "file_search_call" => "fs_",
        "web_search_call" => "ws_",
        "image_generation_call" => "ig_",
        "code_interpreter_call" => "ci_",
        "mcp_call" => "mcp_",
        "mcp_list_tools" => "mcpl_",
        "mcp_approval_request" => "mcpr_",
        "mcp_approval_response" => "mcpa_",
        "compaction" => "cmp_",
        _ => "item_",
    }
}
