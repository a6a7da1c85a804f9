//! A server for the tests of the fast path.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Executor, Registry};
use toolcrib_tool::{
    Approval, Content, ErrorKind, InputRequest, Link, ToolDefinition, ToolDefinitionBuilder,
    ToolError, ToolOutcome, ToolOutput,
};

use crate::{McpOptions, McpServer};

pub(super) fn define(name: &str) -> ToolDefinitionBuilder {
    ToolDefinition::builder(name).description(format!("Does {name}."))
}

pub(super) fn server() -> McpServer {
    McpServer::new(executor(), McpOptions::default())
}

/// An executor with one tool for each outcome of a call.
pub(super) fn executor() -> Executor {
    let any = json!({"additionalProperties": true});
    let list = json!({"type": "array", "items": {"type": "string"}});
    let strict = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "required": ["path"],
        "additionalProperties": false,
    });
    let regional = json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    });
    let registry = Registry::scratch()
        .tool_as(define("echo").input_schema(any).build().unwrap(), |args, _| async {
            ToolOutput::from(args)
        })
        .tool_as(
            define("strict").input_schema(strict).build().unwrap(),
            |args: Value, _| async move { args["path"].as_str().unwrap_or_default().to_owned() },
        )
        .tool_as(define("words").output_schema(list).build().unwrap(), |_, _| async {
            ToolOutput::from(json!(["b", "a"]))
        })
        .tool_as(define("regional").input_schema(regional).build().unwrap(), |_, _| async {
            "here"
        })
        .tool("parts", |_, _| async { parts() })
        .tool("nothing", |_, _| async { ToolOutput::new() })
        .tool("id", |_, cx| async move { cx.call_id().to_string() })
        .tool("later", |_, _| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            "later"
        })
        .tool("fail", |_, _| async {
            let error = ToolError::execution("the disk is \"full\"").with_hint("Free some space.");
            Err::<String, _>(error.with_partial(json!({"written": 7})))
        })
        .tool("lookup", |_, _| async {
            Err::<String, _>(ToolError::new(ErrorKind::NotFound, "no such record"))
        })
        .tool("ask", |_, _| async {
            let form = json!({"type": "object", "properties": {"town": {"type": "string"}}});
            ToolOutcome::needs_input(InputRequest::new("Which town?", form))
        })
        .tool_as(define("remove").approval(Approval::Always).build().unwrap(), |_, _| async {
            "removed"
        })
        .build()
        .unwrap();
    let suspensions = Arc::new(MemorySuspensions::new());
    Executor::builder(registry).suspensions(suspensions).build()
}

fn parts() -> ToolOutput {
    ToolOutput::new()
        .with_content("a \u{1f980} text\n")
        .with_content(Content::Image { data: vec![0, 255, 7], mime_type: "image/png".into() })
        .with_content(Content::Audio { data: vec![4], mime_type: "audio/wav".into() })
        .with_content(Link::new("file:///a", "a"))
        .with_content({
            let mut link = Link::new("file:///b", "b").mime_type("text/plain");
            link.title = Some("B".into());
            link.description = Some("What b says.".into());
            link.size = Some(12);
            link
        })
        .with_content(Content::TextFile {
            uri: "mem://t".into(),
            text: "\u{1f980}\n".into(),
            mime_type: Some("text/plain".into()),
        })
        .with_content(Content::TextFile {
            uri: "mem://u".into(),
            text: String::new(),
            mime_type: None,
        })
        .with_content(Content::Blob {
            uri: "mem://b".into(),
            data: vec![5],
            mime_type: "application/zip".into(),
        })
        .with_data(json!([1, {"deep": null}]))
        .with_meta("engine", "fast")
}
