//! `tool_call`: a tool called by its name.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use toolcrib_json::Cursor;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, RawArguments, Tool, ToolCall, ToolDefinition, ToolError,
    ToolOutcome,
};

use super::{CATEGORY, TOOL_CALL, TOOL_DESCRIBE, TOOL_SEARCH};

pub(super) static DEFINITION: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
    let definition = ToolDefinition::builder(TOOL_CALL)
        .title("Call a tool")
        .description(format!(
            "Call a tool that {TOOL_SEARCH} has found, with the arguments that {TOOL_DESCRIBE} shows. \
             Returns what the tool returns. Tools in your list are called directly instead."
        ))
        .category(CATEGORY)
        .input_schema(json!({
            "properties": {
                "name": {
                    "type": "string",
                    "description": "The tool's name, exactly.",
                    "minLength": 1,
                },
                "arguments": {
                    "type": "object",
                    "description": "The tool's arguments.",
                    "default": {},
                    // The called tool declares which arguments are sensitive, and its own record
                    // shows the others.
                    "x-sensitive": true,
                },
            },
            "required": ["name"],
            "additionalProperties": false,
        }))
        // The limit of the called tool applies.
        .timeout(Duration::MAX)
        .build();
    #[expect(clippy::expect_used, reason = "a constant; every test of this tool builds it")]
    Arc::new(definition.expect("the definition of tool_call is valid"))
});

#[derive(Debug)]
pub(super) struct ToolCaller;

impl Tool for ToolCaller {
    fn delegates_to(&self, arguments: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct CallTarget {
            name: String,
        }
        serde_json::from_str::<CallTarget>(arguments).ok().map(|named| named.name)
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let root = arguments.tape()?.root();
            let name = root.get("name").and_then(Cursor::as_str).unwrap_or_default();
            if name == TOOL_CALL {
                return Err(ToolError::invalid_args(format!("{TOOL_CALL} does not call itself"))
                    .with_hint("Name the tool that should be called in the end."));
            }
            // A separate id, so that listeners can distinguish the two calls.
            let id = format!("{}.1", cx.call_id().as_str());
            // Copied as text, so that no number is changed.
            let nested = root.get("arguments").map(Cursor::to_tape);
            let nested = nested.map(RawArguments::from).unwrap_or_default();
            let call = ToolCall::new(id, &*name, nested);
            cx.call(call).await.into_result().map(ToolOutcome::Done)
        })
    }
}
