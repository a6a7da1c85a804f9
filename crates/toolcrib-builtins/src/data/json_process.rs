//! `json_process`: reads, formats, checks and queries JSON text.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_macros::tool;
use toolcrib_tool::{CallContext, Data, ToolError, ToolOutput};

use super::json_outline::{Members, duplicate_keys, members};
use super::json_text::{JsonError, JsonText, MAX_BYTES};

/// The longest formatted text, in bytes.
const MAX_PRETTY_BYTES: usize = 16 << 20;

/// Advice for output that is too long.
#[cfg(feature = "jq")]
const SMALLER: &str = "Use `minify`, or `query` a part of it.";
#[cfg(not(feature = "jq"))]
const SMALLER: &str = "Use `minify`.";

#[derive(Deserialize, JsonSchema)]
struct JsonArgs {
    /// The JSON text, at most 4 MiB.
    json_string: String,
    /// What to do: `parse` it into structured data, `format` it with two blanks per level,
    #[cfg_attr(
        feature = "jq",
        doc = " `minify` it, list its `keys`, `validate` it, or `query` it with jq."
    )]
    #[cfg_attr(not(feature = "jq"), doc = " `minify` it, list its `keys`, or `validate` it.")]
    operation: Operation,
    /// For `query` (required there): a jq program, for example `.items[] | select(.price > 10) |
    /// .name`.
    #[cfg(feature = "jq")]
    #[schemars(length(min = 1, max = 4000))]
    query: Option<String>,
    /// For `keys`: the JSON pointer of the object to look at, for example `/items/0`. Default:
    /// the top.
    pointer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Parse,
    Format,
    Minify,
    Keys,
    Validate,
    #[cfg(feature = "jq")]
    Query,
}

/// Work on JSON text: parse, format or minify it (key order is kept), list keys, validate it with
/// line and column of the first mistake and with repeated keys, or query it with jq.
#[cfg(feature = "jq")]
#[tool(
    category = "data",
    tags("json", "jq"),
    read_only,
    destructive = false,
    idempotent,
    open_world = false,
    timeout = "10s",
    examples(
        r#"{"json_string": "{\"b\":1,\"a\":[2,3]}", "operation": "format"}"#,
        r#"{"json_string": "{\"items\":[{\"id\":1},{\"id\":2}]}", "operation": "query", "query": ".items[].id"}"#,
        r#"{"json_string": "{\"a\": 1,}", "operation": "validate"}"#
    )
)]
fn json_process(args: JsonArgs, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    process(&args, cx)
}

/// Work on JSON text: parse, format or minify it (key order is kept), list keys, or validate it
/// with line and column of the first mistake and with repeated keys.
#[cfg(not(feature = "jq"))]
#[tool(
    category = "data",
    tags("json"),
    read_only,
    destructive = false,
    idempotent,
    open_world = false,
    timeout = "10s",
    examples(
        r#"{"json_string": "{\"b\":1,\"a\":[2,3]}", "operation": "format"}"#,
        r#"{"json_string": "{\"a\": 1,}", "operation": "validate"}"#
    )
)]
fn json_process(args: JsonArgs, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    process(&args, cx)
}

#[cfg_attr(not(feature = "jq"), expect(unused_variables, reason = "only queries watch the call"))]
fn process(args: &JsonArgs, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    if args.json_string.len() > MAX_BYTES {
        return Err(ToolError::invalid_args(format!(
            "`json_string` has {} bytes; the limit is {MAX_BYTES}",
            args.json_string.len()
        )));
    }
    check_parameters(args)?;
    let text = match JsonText::check(&args.json_string) {
        Ok(text) => text,
        Err(problem) if args.operation == Operation::Validate => return Ok(invalid(&problem)),
        Err(problem) => return Err(problem.into_error()),
    };
    match args.operation {
        Operation::Parse => parse(text, &args.json_string),
        Operation::Format => format(text),
        Operation::Minify => Ok(text.minified().into()),
        Operation::Keys => keys(text, args.pointer.as_deref().unwrap_or_default()),
        Operation::Validate => Ok(valid(text)),
        #[cfg(feature = "jq")]
        Operation::Query => query(text, args.query.as_deref().unwrap_or_default(), cx),
    }
}

/// Refuses parameters that the operation would silently ignore, and requires those it needs.
fn check_parameters(args: &JsonArgs) -> Result<(), ToolError> {
    #[cfg(feature = "jq")]
    check_query(args)?;
    if args.pointer.is_some() && args.operation != Operation::Keys {
        return Err(ToolError::invalid_args("`pointer` belongs to the operation `keys` only")
            .with_hint("Leave it out, or set `operation` to `keys`."));
    }
    Ok(())
}

#[cfg(feature = "jq")]
fn check_query(args: &JsonArgs) -> Result<(), ToolError> {
    if args.query.is_some() && args.operation != Operation::Query {
        return Err(ToolError::invalid_args("`query` belongs to the operation `query` only")
            .with_hint("Leave it out, or set `operation` to `query`."));
    }
    if args.operation == Operation::Query && args.query.as_deref().unwrap_or_default().is_empty() {
        return Err(ToolError::invalid_args("the operation `query` needs `query`")
            .with_hint("Send a jq program as `query`, for example `.items[0].name`."));
    }
    Ok(())
}

/// The text keeps the order of keys; the data is for programs.
fn parse(checked: JsonText<'_>, text: &str) -> Result<ToolOutput, ToolError> {
    // The text was checked, so the only possible failure is a number that no machine type can hold.
    let value = Data::from_json(text).map_err(|error| {
        ToolError::invalid_args(format!("`json_string` cannot be held as data: {error}"))
    })?;
    Ok(ToolOutput::from(checked.minified()).with_exact_data(value))
}

fn format(text: JsonText<'_>) -> Result<ToolOutput, ToolError> {
    text.pretty(MAX_PRETTY_BYTES).map(ToolOutput::from).ok_or_else(|| {
        ToolError::execution(format!("formatted, it has more than {MAX_PRETTY_BYTES} bytes"))
            .with_hint(SMALLER)
    })
}

fn keys(text: JsonText<'_>, pointer: &str) -> Result<ToolOutput, ToolError> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(ToolError::invalid_args(format!("{pointer:?} is not a JSON pointer"))
            .with_hint("Write it as `/items/0`; the empty pointer is the top."));
    }
    let place = if pointer.is_empty() { "the top" } else { pointer };
    match members(text, pointer) {
        Ok(Members::Object(keys)) => Ok(ToolOutput::from(json!(keys).to_string())
            .with_data(json!({"keys": keys, "count": keys.len()}))),
        Ok(other) => Err(ToolError::invalid_args(match other {
            Members::Array(count) => {
                format!("at {place} is an array of {count} items, not an object")
            }
            other => format!("at {place} is a {}, not an object", other.kind()),
        })
        .with_hint("Name an object with `pointer`, for example `/items/0`.")),
        Err(missing) => Err(ToolError::invalid_args(format!("there is nothing at {missing}"))),
    }
}

fn valid(text: JsonText<'_>) -> ToolOutput {
    let duplicates = duplicate_keys(text);
    let kind = members(text, "").map_or("value", |top| top.kind());
    let mut said = format!("valid JSON ({kind})");
    if !duplicates.is_empty() {
        said.push_str("\nrepeated keys, of which the last counts: ");
        said.push_str(&duplicates.join(", "));
    }
    let data = json!({"valid": true, "kind": kind, "duplicate_keys": duplicates});
    ToolOutput::from(said).with_data(data)
}

fn invalid(problem: &JsonError) -> ToolOutput {
    let JsonError { line, column, reason } = problem;
    ToolOutput::from(format!("not JSON: {reason} at line {line}, column {column}"))
        .with_data(json!({"valid": false, "line": line, "column": column, "reason": reason}))
}

#[cfg(feature = "jq")]
fn query(text: JsonText<'_>, program: &str, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    super::jq::query(text, program, cx)
}

#[cfg(all(test, not(feature = "jq")))]
mod tests {
    #[test]
    fn without_jq_neither_schema_nor_description_nor_examples_mention_queries() {
        let tools = toolcrib_tool::native_tools();
        let tool = tools.iter().find(|tool| tool.name == "json_process").unwrap();
        let definition = (tool.definition)().unwrap().to_value().to_string();
        assert!(!definition.contains("jq") && !definition.contains("query"), "{definition}");
    }
}
