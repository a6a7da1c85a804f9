//! Results of calls, in the form of their items.

use serde_json::{Map, Value, json};
use toolcrib_tool::{Content, ToolOutput, ToolResult};

use super::kind::CallKind;
use crate::results::openai::responses_call_output;
use crate::results::{base64, data_url};

/// The part of the result in the call's own item; `None` if the item has no field for it.
pub(super) fn outcome(kind: &CallKind, result: &ToolResult) -> Option<Value> {
    match kind {
        CallKind::Function | CallKind::Custom | CallKind::LocalShell => None,
        CallKind::FileSearch => result.is_success().then(|| file_results(result)),
        CallKind::WebSearch => result.is_success().then(|| sources(result)),
        CallKind::ImageGeneration => result.is_success().then(|| image(result)).flatten(),
        CallKind::CodeInterpreter => Some(code_outputs(result)),
        CallKind::Mcp { .. } if result.is_success() => Some(result.text().into()),
        CallKind::Mcp { .. } => Some(json!({
            "type": "mcp_tool_execution_error",
            "content": [{"type": "text", "text": result.text()}],
        })),
    }
}

/// The type and id prefix of the separate item that answers a call, for the kinds that have one.
pub(super) fn output_item(kind: &CallKind) -> Option<(&'static str, &'static str)> {
    match kind {
        CallKind::Function => Some(("function_call_output", "fco_")),
        CallKind::Custom => Some(("custom_tool_call_output", "ctco_")),
        CallKind::LocalShell => Some(("local_shell_call_output", "lsho_")),
        _ => None,
    }
}

/// The `output` of that item: one text, or texts, images and files.
pub(super) fn output(kind: &CallKind, result: &ToolResult) -> Value {
    match kind {
        // Outputs of all other kinds may have parts that are no text.
        CallKind::LocalShell => result.text().into(),
        _ => responses_call_output(result)["output"].take(),
    }
}

/// The found documents: the data's list (or its `results`), each entry with the API's field names. A search without
/// data returns its text as one result.
fn file_results(result: &ToolResult) -> Value {
    match entries(result) {
        Some(entries) => entries.iter().map(file_result).collect(),
        None if result.text().is_empty() => json!([]),
        None => json!([{"text": result.text()}]),
    }
}

fn file_result(entry: &Value) -> Value {
    let mut found = Map::new();
    let mut put = |key: &str, names: &[&str], fits: fn(&Value) -> bool| {
        if let Some(value) = names.iter().filter_map(|name| entry.get(*name)).find(|v| fits(v)) {
            found.insert(key.to_owned(), value.clone());
        }
    };
    put("file_id", &["file_id", "document_id", "id"], Value::is_string);
    put("filename", &["filename", "path", "title", "name"], Value::is_string);
    put("score", &["score"], Value::is_number);
    put("text", &["text", "snippet", "content"], Value::is_string);
    put("attributes", &["attributes"], Value::is_object);
    if let Some(text) = entry.as_str() {
        found.insert("text".to_owned(), text.into());
    }
    Value::Object(found)
}

/// The pages that a search found: every `url` of the data's list, and every link among the parts.
fn sources(result: &ToolResult) -> Value {
    let listed = entries(result).unwrap_or_default();
    let listed = listed.iter().filter_map(|entry| entry.get("url").and_then(Value::as_str));
    let linked = content(result).iter().filter_map(|part| match part {
        Content::Link(link) => Some(link.uri.as_str()),
        _ => None,
    });
    let mut urls: Vec<&str> = Vec::new();
    for url in listed.chain(linked) {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls.into_iter().map(|url| json!({"type": "url", "url": url})).collect()
}

/// The picture in base64, or its address.
fn image(result: &ToolResult) -> Option<Value> {
    content(result).iter().find_map(|part| match part {
        Content::Image { data, .. } => Some(base64(data).into()),
        Content::Link(link) => Some(link.uri.as_str().into()),
        _ => None,
    })
}

/// The code's output and pictures. The error of a failed run follows its output.
fn code_outputs(result: &ToolResult) -> Value {
    let printed = |key: &str| {
        let text = result.data().and_then(|data| data.get(key)).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let texts: Vec<String> = match (printed("stdout"), printed("stderr")) {
        (None, None) => vec![text(result)],
        (stdout, stderr) => {
            let error = result.error().map(|error| error.message().to_owned());
            // A traceback is both the error and part of stderr.
            let error = error.filter(|error| !stderr.as_ref().is_some_and(|e| e.contains(error)));
            stdout.into_iter().chain(stderr).chain(error).collect()
        }
    };
    let mut outputs: Vec<Value> = texts
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| json!({"type": "logs", "logs": text}))
        .collect();
    outputs.extend(content(result).iter().filter_map(|part| match part {
        Content::Image { data, mime_type } => {
            Some(json!({"type": "image", "url": data_url(data, mime_type)}))
        }
        _ => None,
    }));
    Value::Array(outputs)
}

/// The text without the placeholder lines for pictures, which are separate outputs.
fn text(result: &ToolResult) -> String {
    if !result.is_success() {
        return result.text().into_owned();
    }
    let parts = content(result);
    if parts.is_empty() {
        return result.text().into_owned();
    }
    let texts = parts.iter().filter(|part| !matches!(part, Content::Image { .. }));
    texts.map(Content::as_text).collect::<Vec<_>>().join("\n")
}

/// The list in the data, or under its `results`.
fn entries(result: &ToolResult) -> Option<&[Value]> {
    let data = result.data()?;
    let list = data.as_array().or_else(|| data.get("results")?.as_array())?;
    Some(list)
}

fn content(result: &ToolResult) -> &[Content] {
    result.output().map(ToolOutput::content).unwrap_or_default()
}
