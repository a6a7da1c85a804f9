//! `text_process`: counts, changes, sorts and searches text.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_macros::tool;
use toolcrib_tool::{CallContext, ToolError, ToolOutput};

use super::text_operations as operations;

/// The longest text, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
pub(super) struct TextArgs {
    /// The text to work on, at most 1 MiB.
    pub(super) text: String,
    /// What to do: `count` characters, words, lines and bytes; list its `lines` or `words`;
    /// change it to `upper`, `lower` or `title` case; `reverse` it by visible character; `trim`
    /// its ends; `sort` its lines, drop repeated ones (`unique`) or `number` them; `find` or
    /// `replace` a pattern; keep its first (`head`) or last (`tail`) `n` lines.
    pub(super) operation: Operation,
    /// For `find` and `replace` (required there): the text to look for, or a regular expression
    /// if `regex` is true.
    #[schemars(length(min = 1, max = 1000))]
    pub(super) pattern: Option<String>,
    /// For `replace` (required there): the new text. With `regex`, `$1` or `${name}` stand for
    /// groups and `$$` for a dollar sign.
    pub(super) replacement: Option<String>,
    /// For `find` and `replace`: read `pattern` as a regular expression. Default false.
    pub(super) regex: Option<bool>,
    /// For `find`, `replace`, `sort` and `unique`: treat upper and lower case alike. Default
    /// false.
    pub(super) ignore_case: Option<bool>,
    /// For `head` and `tail`: how many lines. Default 10.
    #[schemars(range(min = 1))]
    pub(super) n: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operation {
    Count,
    Lines,
    Words,
    Upper,
    Lower,
    Title,
    Reverse,
    Trim,
    Sort,
    Unique,
    Number,
    Find,
    Replace,
    Head,
    Tail,
}

/// Work on a text exactly: count its characters, words and lines, change its case, reverse, sort,
/// find or replace. Use it wherever counting or spelling must be right.
#[tool(
    category = "data",
    tags("text", "string"),
    read_only,
    destructive = false,
    idempotent,
    open_world = false,
    timeout = "10s",
    examples(
        r#"{"text": "strawberry", "operation": "count"}"#,
        r#"{"text": "b\na\nb", "operation": "unique"}"#,
        r#"{"text": "tel 555-0199", "operation": "replace", "pattern": "\\d+", "replacement": "(number)", "regex": true}"#
    )
)]
fn text_process(args: TextArgs, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    if args.text.len() > MAX_TEXT_BYTES {
        return Err(ToolError::invalid_args(format!(
            "`text` has {} bytes; the limit is {MAX_TEXT_BYTES}",
            args.text.len()
        ))
        .with_hint("Send it in parts."));
    }
    check_parameters(&args)?;
    operations::run(&args, cx)
}

/// Refuses parameters that the operation would silently ignore, and requires those it needs.
fn check_parameters(args: &TextArgs) -> Result<(), ToolError> {
    use Operation::{Find, Head, Replace, Sort, Tail, Unique};
    let operation = args.operation;
    let given = [
        ("pattern", args.pattern.is_some(), &[Find, Replace][..]),
        ("replacement", args.replacement.is_some(), &[Replace]),
        ("regex", args.regex == Some(true), &[Find, Replace]),
        ("ignore_case", args.ignore_case == Some(true), &[Find, Replace, Sort, Unique]),
        ("n", args.n.is_some(), &[Head, Tail]),
    ];
    for (parameter, given, users) in given {
        if given && !users.contains(&operation) {
            let users: Vec<_> = users.iter().map(|user| format!("`{}`", user.as_str())).collect();
            return Err(ToolError::invalid_args(format!(
                "the operation `{}` does not use `{parameter}`",
                operation.as_str()
            ))
            .with_hint(format!("Leave it out; it belongs to {}.", users.join(", "))));
        }
    }
    let missing = match operation {
        Find | Replace if args.pattern.as_deref().unwrap_or_default().is_empty() => "pattern",
        Replace if args.replacement.is_none() => "replacement",
        _ => return Ok(()),
    };
    Err(ToolError::invalid_args(format!(
        "the operation `{}` needs `{missing}`",
        operation.as_str()
    ))
    .with_hint(match missing {
        "pattern" => "Send the text to look for as `pattern`.",
        _ => "Send the new text as `replacement`; an empty one deletes the matches.",
    }))
}

impl Operation {
    /// The name in the arguments.
    fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Lines => "lines",
            Self::Words => "words",
            Self::Upper => "upper",
            Self::Lower => "lower",
            Self::Title => "title",
            Self::Reverse => "reverse",
            Self::Trim => "trim",
            Self::Sort => "sort",
            Self::Unique => "unique",
            Self::Number => "number",
            Self::Find => "find",
            Self::Replace => "replace",
            Self::Head => "head",
            Self::Tail => "tail",
        }
    }
}
