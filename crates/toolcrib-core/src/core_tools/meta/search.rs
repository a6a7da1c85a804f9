//! `tool_search`: tools by words.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Tool, ToolDefinition, ToolError, ToolOutcome, ToolOutput,
};

use super::{CATEGORY, TOOL_CALL, TOOL_DESCRIBE, TOOL_SEARCH, is_meta};

/// The most tools that one search shows.
const MAX_LIMIT: usize = 20;

/// How many it shows by default.
const LIMIT: usize = 5;

/// How many meta tools there are; they do not list themselves.
const FAMILY: usize = 3;

pub(super) static DEFINITION: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
    let definition = ToolDefinition::builder(TOOL_SEARCH)
        .title("Search tools")
        .description(format!(
            "Find tools that are not in your list, or among very many: say in a few words what should \
             be done. Returns names and descriptions, the best first. {TOOL_DESCRIBE} then shows what \
             a tool must be told, {TOOL_CALL} calls it. Read-only."
        ))
        .category(CATEGORY)
        .input_schema(json!({
            "properties": {
                "query": {
                    "type": "string",
                    "description": "What the tool should do, such as: used space of disks.",
                    "minLength": 1,
                },
                "limit": {
                    "type": "integer",
                    "description": "How many tools to return at most.",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": LIMIT,
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "tools": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "description": {"type": "string"},
                        },
                        "required": ["name", "description"],
                    },
                },
            },
            "required": ["tools"],
        }))
        .read_only(true)
        .idempotent(true)
        .open_world(false)
        .build();
    #[expect(clippy::expect_used, reason = "a constant; every test of this tool builds it")]
    Arc::new(definition.expect("the definition of tool_search is valid"))
});

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    limit: usize,
}

#[derive(Debug)]
pub(super) struct ToolSearch;

impl Tool for ToolSearch {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let asked: SearchArguments = arguments.parse()?;
            let mut found = cx.search(&asked.query, asked.limit + FAMILY);
            found.retain(|tool| !is_meta(tool.name()));
            found.truncate(asked.limit);
            let is_cut = asked.query.len() > toolcrib_search::MAX_QUESTION;
            Ok(ToolOutcome::Done(answer(&found, is_cut)))
        })
    }
}

fn answer(found: &[Arc<ToolDefinition>], is_cut: bool) -> ToolOutput {
    let mut text = String::new();
    let mut tools: Vec<Value> = Vec::with_capacity(found.len());
    for tool in found {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}", tool.name(), tool.description());
        tools.push(json!({"name": tool.name(), "description": tool.description()}));
    }
    if found.is_empty() {
        text.push_str("No tool fits. Try other words for what should be done.");
    } else {
        let _ = write!(
            text,
            "[{} tools; {TOOL_DESCRIBE} shows which arguments a tool takes]",
            found.len()
        );
    }
    if is_cut {
        let _ = write!(
            text,
            "\n[Only the first {} bytes of the query were read. A few words are enough.]",
            toolcrib_search::MAX_QUESTION
        );
    }
    ToolOutput::from(text).with_data(json!({"tools": tools}))
}
