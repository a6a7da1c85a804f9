//! The response as a resource.

use serde_json::Value;

use super::items::{Dialect, check_item, expect_count, expect_list, expect_text};

/// The members that may be null. They are there nevertheless.
const NULLABLE: [&str; 11] = [
    "completed_at",
    "incomplete_details",
    "previous_response_id",
    "instructions",
    "error",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "safety_identifier",
    "prompt_cache_key",
];

/// The members that are there and are not null.
const REQUIRED: [&str; 20] = [
    "id",
    "object",
    "created_at",
    "status",
    "model",
    "output",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "store",
    "background",
    "service_tier",
    "metadata",
];

/// Checks a response with its output.
pub fn check_response(dialect: Dialect, response: &Value) -> Result<(), String> {
    let members = response.as_object().ok_or("a response must be an object")?;
    for name in REQUIRED {
        if members.get(name).is_none_or(Value::is_null) {
            return Err(format!("`{name}` must not be missing or null"));
        }
    }
    for name in NULLABLE {
        if !members.contains_key(name) {
            return Err(format!("`{name}` must be there, if only as null"));
        }
    }
    if response["object"] != "response" {
        return Err("`object` must be \"response\"".to_owned());
    }
    for name in ["id", "model", "status", "service_tier"] {
        if expect_text(response, name)?.is_empty() {
            return Err(format!("`{name}` must not be empty"));
        }
    }
    for name in ["created_at", "top_logprobs"] {
        expect_count(response, name)?;
    }
    for name in ["temperature", "top_p", "presence_penalty", "frequency_penalty"] {
        if !response[name].is_number() {
            return Err(format!("`{name}` must be a number"));
        }
    }
    for name in ["parallel_tool_calls", "store", "background"] {
        if !response[name].is_boolean() {
            return Err(format!("`{name}` must be a boolean"));
        }
    }
    for name in ["max_output_tokens", "max_tool_calls", "completed_at"] {
        if !response[name].is_null() {
            expect_count(response, name)?;
        }
    }
    if !matches!(response["truncation"].as_str(), Some("auto" | "disabled")) {
        return Err("`truncation` must be auto or disabled".to_owned());
    }
    let format = response["text"]["format"]["type"].as_str();
    if !matches!(format, Some("text" | "json_object" | "json_schema")) {
        return Err("`text.format.type` must be one of the three".to_owned());
    }
    if response["text"].get("verbosity").is_some_and(Value::is_null) {
        return Err("`text.verbosity` must be absent rather than null".to_owned());
    }
    if !response["metadata"].is_object() {
        return Err("`metadata` must be an object".to_owned());
    }
    check_tools(response)?;
    check_status(response)?;
    if !response["usage"].is_null() {
        check_usage(&response["usage"])?;
    }
    for (index, item) in expect_list(response, "output")?.iter().enumerate() {
        check_item(dialect, item).map_err(|problem| format!("`output[{index}]`: {problem}"))?;
    }
    Ok(())
}

fn check_tools(response: &Value) -> Result<(), String> {
    for (index, tool) in expect_list(response, "tools")?.iter().enumerate() {
        let kind = expect_text(tool, "type").map_err(|it| format!("`tools[{index}]`: {it}"))?;
        if kind != "function" {
            continue;
        }
        expect_text(tool, "name").map_err(|it| format!("`tools[{index}]`: {it}"))?;
        for name in ["description", "parameters", "strict"] {
            if tool.get(name).is_none() {
                return Err(format!("`tools[{index}].{name}` must be there, if only as null"));
            }
        }
    }
    let choice = &response["tool_choice"];
    let is_word = matches!(choice.as_str(), Some("auto" | "none" | "required"));
    if !is_word && !choice["type"].is_string() {
        return Err("`tool_choice` must be a word or name tools".to_owned());
    }
    if choice["type"] == "allowed_tools" {
        expect_list(choice, "tools")?;
        expect_text(choice, "mode")?;
    }
    Ok(())
}

/// What belongs to each status, and to no other.
fn check_status(response: &Value) -> Result<(), String> {
    let status = expect_text(response, "status")?;
    if !["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
        .contains(&status)
    {
        return Err(format!("there is no status {status:?}"));
    }
    for (name, of) in
        [("completed_at", "completed"), ("error", "failed"), ("incomplete_details", "incomplete")]
    {
        if response[name].is_null() == (status == of) {
            return Err(format!("`{name}` and the status {status:?} do not go together"));
        }
    }
    if status == "failed" {
        expect_text(&response["error"], "code")?;
        expect_text(&response["error"], "message")?;
    }
    if status == "incomplete" {
        expect_text(&response["incomplete_details"], "reason")?;
    }
    Ok(())
}

fn check_usage(usage: &Value) -> Result<(), String> {
    let input = expect_count(usage, "input_tokens")?;
    let output = expect_count(usage, "output_tokens")?;
    if expect_count(usage, "total_tokens")? != input + output {
        return Err("`usage.total_tokens` must be the sum of the other two".to_owned());
    }
    expect_count(&usage["input_tokens_details"], "cached_tokens")?;
    expect_count(&usage["output_tokens_details"], "reasoning_tokens")?;
    Ok(())
}

/// Checks the answer to a request to make a conversation shorter.
pub fn check_compaction(dialect: Dialect, compaction: &Value) -> Result<(), String> {
    expect_text(compaction, "id")?;
    expect_count(compaction, "created_at")?;
    if compaction["object"] != "response.compaction" {
        return Err("`object` must be \"response.compaction\"".to_owned());
    }
    check_usage(&compaction["usage"])?;
    let output = expect_list(compaction, "output")?;
    for (index, item) in output.iter().enumerate() {
        check_item(dialect, item).map_err(|problem| format!("`output[{index}]`: {problem}"))?;
    }
    if output.iter().any(|item| item["type"] == "compaction") {
        Ok(())
    } else {
        Err("there must be an item of the type compaction".to_owned())
    }
}
