//! The members of a response that repeat its request.

use serde_json::{Map, Value, json};

use super::response::ResponseRequest;
use super::tools::RequestTool;

/// The members of the resource that repeat the request. Only those that clients expect as null are null.
pub(super) fn echo(request: &ResponseRequest) -> Map<String, Value> {
    let options = &request.options;
    let mut text = json!({"format": options.format.to_value()});
    if let Some(verbosity) = &options.verbosity {
        text["verbosity"] = verbosity.as_str().into();
    }
    let reasoning = (options.reasoning_effort.is_some() || options.reasoning_summary.is_some())
        .then(|| json!({"effort": options.reasoning_effort, "summary": options.reasoning_summary}));
    let mut echo = Map::new();
    let mut put = |key: &str, value: Value| {
        echo.insert(key.to_owned(), value);
    };
    put("instructions", request.instructions.as_deref().into());
    put("tools", request.tools.iter().map(RequestTool::to_value).collect());
    put("tool_choice", request.tool_choice.to_value());
    put("parallel_tool_calls", request.parallel_tool_calls.unwrap_or(true).into());
    put("max_tool_calls", request.max_tool_calls.into());
    put("max_output_tokens", options.max_output_tokens.into());
    put("temperature", number(options.temperature, 1));
    put("top_p", number(options.top_p, 1));
    put("presence_penalty", number(options.presence_penalty, 0));
    put("frequency_penalty", number(options.frequency_penalty, 0));
    put("top_logprobs", 0.into());
    put("reasoning", reasoning.unwrap_or_default());
    put("text", text);
    put("truncation", if request.may_truncate { "auto" } else { "disabled" }.into());
    put("store", request.store.into());
    put("background", request.background.into());
    // The class that is used, which is the operator's choice.
    put("service_tier", "default".into());
    put("metadata", request.metadata.clone().into());
    put("safety_identifier", options.safety_identifier.as_deref().into());
    put("prompt_cache_key", options.prompt_cache_key.as_deref().into());
    if let Some(user) = &options.user {
        put("user", user.as_str().into());
    }
    echo
}

/// A number as the client wrote it, or its default.
fn number(given: Option<f64>, default: u64) -> Value {
    match given {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and small")]
        Some(number) if number.fract() == 0.0 => (number as i64).into(),
        Some(number) => number.into(),
        None => default.into(),
    }
}
