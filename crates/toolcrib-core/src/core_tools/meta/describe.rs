//! `tool_describe`: what a tool does and which arguments it takes.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Tool, ToolDefinition, ToolError, ToolOutcome, ToolOutput,
};

use super::{CATEGORY, TOOL_CALL, TOOL_DESCRIBE};

pub(super) static DEFINITION: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
    let definition = ToolDefinition::builder(TOOL_DESCRIBE)
        .title("Describe a tool")
        .description(format!(
            "Show what a tool does and which arguments it takes, as a JSON Schema, before {TOOL_CALL} \
             calls it. Read-only."
        ))
        .category(CATEGORY)
        .input_schema(json!({
            "properties": {
                "name": {
                    "type": "string",
                    "description": "The tool's name, exactly.",
                    "minLength": 1,
                },
            },
            "required": ["name"],
            "additionalProperties": false,
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "title": {"type": "string"},
                "description": {"type": "string"},
                "input_schema": {"type": "object"},
                "output_schema": {"type": "object"},
                "input_examples": {"type": "array"},
                "annotations": {"type": "object"},
            },
            "required": ["name", "description", "input_schema"],
        }))
        .read_only(true)
        .idempotent(true)
        .open_world(false)
        .build();
    #[expect(clippy::expect_used, reason = "a constant; every test of this tool builds it")]
    Arc::new(definition.expect("the definition of tool_describe is valid"))
});

#[derive(Deserialize)]
struct DescribeArguments {
    name: String,
}

#[derive(Debug)]
pub(super) struct ToolDescribe;

impl Tool for ToolDescribe {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let asked: DescribeArguments = arguments.parse()?;
            let definition = cx.describe(&asked.name)?;
            let data = described(&definition);
            Ok(ToolOutcome::Done(ToolOutput::from(data.to_string()).with_data(data)))
        })
    }
}

fn described(definition: &ToolDefinition) -> Value {
    let mut shown = Map::new();
    shown.insert("name".into(), definition.name().into());
    if let Some(title) = definition.title() {
        shown.insert("title".into(), title.into());
    }
    shown.insert("description".into(), definition.description().into());
    shown.insert("input_schema".into(), definition.input_schema().clone());
    if let Some(schema) = definition.output_schema() {
        shown.insert("output_schema".into(), schema.clone());
    }
    if !definition.input_examples().is_empty() {
        shown.insert("input_examples".into(), definition.input_examples().into());
    }
    let annotations = definition.annotations();
    shown.insert(
        "annotations".into(),
        json!({
            "read_only": annotations.read_only,
            "destructive": annotations.may_destroy(),
            "idempotent": annotations.idempotent,
            "open_world": annotations.open_world,
        }),
    );
    Value::Object(shown)
}
