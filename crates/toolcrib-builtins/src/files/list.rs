//! `file_list`, `list_files`: lists a folder, filtered by pattern.

use std::fmt::Write as _;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_sandbox::{Kind, WalkControl};
use toolcrib_tool::{ToolError, ToolOutput};

use super::call::FileCall;
use super::refusal::refusal;

/// The most entries that one call visits.
const MAX_SEEN: u64 = 100_000;

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    /// The folder, from the project's folder. Default `.`, the project's folder itself.
    path: Option<String>,
    /// Which names: `*` and `?` match anything but `/`, `**` matches any folders, `[ab]` and `{a,b}` match one of
    /// several. A pattern with a `/` is matched against the path from `path`, and subfolders are searched: `**/*.rs`.
    /// Default `*`.
    pattern: Option<String>,
    /// How many to list at most. Default 500.
    #[schemars(range(min = 1, max = 5000))]
    limit: Option<usize>,
}

super::in_both_profiles! {
    /// List files and folders of the project, with sizes: those in one folder, or with a pattern such as `**/*.py` also
    /// those in subfolders. Hidden files are included.
    #[tool(
        category = "file",
        tags("folder", "glob"),
        read_only,
        destructive = false,
        idempotent,
        open_world = false,
        reads("files"),
        empty_as_absent("path", "pattern"),
        examples(
            r#"{}"#,
            r#"{"path": "src", "pattern": "*.rs"}"#,
            r#"{"pattern": "**/test_*.py", "limit": 50}"#
        )
    )]
    file_list / list_files (ListArgs) => list
}

fn list(args: &ListArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let folder = args.path.as_deref().unwrap_or(".");
    let pattern = args.pattern.as_deref().unwrap_or("*");
    let limit = args.limit.unwrap_or(500);
    let path = call.relative(folder)?;
    let matcher = matcher(pattern)?;
    let deeper = pattern.contains('/') || pattern.contains("**");
    let (mut entries, mut text) = (Vec::new(), String::new());
    let mut total = 0_usize;
    let mut stopped = false;
    let walked = call.workspace.walk(folder, MAX_SEEN, &mut |visit| {
        if call.cx.is_cancelled() {
            stopped = true;
            return WalkControl::Stop;
        }
        let enter = if deeper { WalkControl::Enter } else { WalkControl::Pass };
        if !matcher.is_match(visit.path()) {
            return enter;
        }
        total += 1;
        if total > limit {
            return enter;
        }
        let (name, kind) = (visit.shown(), visit.kind());
        let size = if kind == Kind::File { visit.entry().map(|entry| entry.size) } else { None };
        let mark = match kind {
            Kind::Folder => "/",
            Kind::Link => "@",
            _ => "",
        };
        let _ = match size {
            Some(size) => writeln!(text, "{name}  {size}"),
            None => writeln!(text, "{name}{mark}"),
        };
        let mut entry = json!({"path": name, "kind": kind.as_str()});
        if let Some(size) = size {
            entry["size"] = size.into();
        }
        entries.push(entry);
        enter
    });
    let walked = walked.map_err(|error| refusal(folder, error))?;
    if stopped {
        call.check_cancelled()?;
    }
    let shown = entries.len();
    let mut said = match (total, shown) {
        (0, _) if walked.seen == 0 && !walked.cut => "the folder is empty".to_owned(),
        (0, _) => format!("nothing matches {pattern}"),
        (total, shown) if total > shown => {
            format!("{shown} of {total}: for the others, use a narrower pattern or a larger limit")
        }
        (1, _) => "1 entry".to_owned(),
        (total, _) => format!("{total} entries"),
    };
    if walked.cut {
        let _ = write!(said, "; only the first {MAX_SEEN} entries were visited: list a subfolder");
    }
    if walked.closed > 0 {
        let _ = write!(said, "; {} folders cannot be read", walked.closed);
    }
    let _ = write!(text, "[{path}: {said}]");
    let data = json!({
        "path": path,
        "entries": entries,
        "total": total,
        "complete": total == shown && !walked.cut && walked.closed == 0,
    });
    Ok(ToolOutput::from(text).with_data(data))
}

/// A pattern for paths from a folder.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let refused = |why: &str| {
        ToolError::invalid_args(format!("{pattern:?} is not a valid file pattern: {why}"))
            .with_hint("Patterns look like `*.rs`, `src/*.c` or `**/*.{yml,yaml}`.")
    };
    if pattern.len() > MAX_PATTERN {
        return Err(refused("it is longer than 1000 bytes"));
    }
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(refused("it leads out of the folder"));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    Ok(glob.map_err(|error| refused(&error.kind().to_string()))?.compile_matcher())
}
