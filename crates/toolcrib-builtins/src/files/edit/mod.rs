//! `edit_file`: replaces texts that a model quotes from a file, under the file's lock.

mod answer;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_edit::{Edit, RejectedEdit, apply};
use toolcrib_sandbox::WorkspaceError;
use toolcrib_tool::{PartialArguments, StatusUpdate, ToolError, ToolOutput};

use super::call::FileCall;
use super::preview::being_written;
use super::refusal::refusal;

/// The largest file that is edited, in bytes.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArgs {
    /// The path, from the project's folder: `src/main.rs`.
    path: String,
    /// The text to replace, copied from the file, with enough of the lines around it to be there
    /// once. No line numbers.
    source_text: Option<String>,
    /// The new text; the empty text deletes it.
    target_text: Option<String>,
    /// Replace all places instead of the only one. Default false.
    #[serde(default)]
    replace_all: bool,
    /// If the text occurs several times: the line (the first is 1) that is nearest to the occurrence you mean. It only
    /// chooses among occurrences of the text.
    #[schemars(range(min = 1))]
    near_line: Option<usize>,
    /// Instead of `source_text` and `target_text`: several edits of this file, made in this order, each in the result
    /// of those before it. If one cannot be made, none is.
    #[serde(default)]
    #[schemars(length(max = 100))]
    edits: Vec<OneEdit>,
    /// Show what would change and write nothing. Default false.
    #[serde(default)]
    dry_run: bool,
}

/// One of several edits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct OneEdit {
    /// The text to replace, as for a single edit.
    source_text: String,
    /// The new text; the empty text deletes it.
    target_text: String,
    /// Replace all places instead of the only one. Default false.
    #[serde(default)]
    replace_all: bool,
    /// The line nearest to the occurrence you mean, as the file is numbered before this call.
    #[schemars(range(min = 1))]
    near_line: Option<usize>,
}

super::in_both_profiles! {
    /// Edit a file of the project: the text `source_text`, which has to occur in it exactly once, is replaced by
    /// `target_text`; or make several `edits` at once. Line endings, indentation and quotes may differ from the file,
    /// words may not. If the text occurs several times or not at all, nothing is changed, and the answer says where it
    /// occurs, or what is most similar. To insert, quote a line and repeat it with the new text.
    #[tool(
        category = "file",
        tags("file", "text"),
        destructive = true,
        open_world = false,
        writes("files"),
        preview = preview,
        examples(
            r#"{"path": "config.py", "source_text": "DEBUG = True", "target_text": "DEBUG = False"}"#,
            r#"{"path": "a.rs", "source_text": "use std::fs;\n", "target_text": "use std::fs;\nuse std::io;\n"}"#,
            r#"{"path": "a.txt", "source_text": "colour", "target_text": "color", "replace_all": true}"#,
            r#"{"path": "a.py", "source_text": "    return None", "target_text": "    return 0", "near_line": 120}"#,
            r#"{"path": "a.js", "edits": [{"source_text": "let a", "target_text": "const a"}, {"source_text": "let b", "target_text": "const b"}], "dry_run": true}"#
        )
    )]
    edit_file (EditArgs) => edit
}

/// What people see while the edits are being written.
fn preview(partial: &PartialArguments<'_>) -> Option<StatusUpdate> {
    let path = partial.text("path")?;
    let edits = partial.get("edits").and_then(serde_json::Value::as_array);
    let lines = |edit: &serde_json::Value| {
        edit["target_text"].as_str().map_or(0, |text| text.lines().count())
    };
    let lines =
        edits.map_or_else(|| partial.lines("target_text"), |edits| edits.iter().map(lines).sum());
    let update = being_written("edits", path, lines);
    let count = edits.map_or(1, Vec::len);
    Some(if count > 1 { update.with_param("edits", count) } else { update })
}

impl EditArgs {
    /// The requested edits, in either form.
    fn edits(&self) -> Result<Vec<Edit<'_>>, ToolError> {
        let wrong =
            |problem: &str, hint: &str| Err(ToolError::invalid_args(problem).with_hint(hint));
        let Self { source_text, target_text, replace_all, near_line, edits, .. } = self;
        if edits.is_empty() {
            return match (source_text, target_text) {
                (Some(source), Some(target)) => {
                    Ok(vec![one(source, target, *replace_all, *near_line)])
                }
                (None, None) => wrong(
                    "there is nothing to edit",
                    "Give `source_text` and `target_text`, or several of both in `edits`.",
                ),
                (Some(_), None) => wrong(
                    "`target_text` is missing",
                    "Give the text that replaces `source_text`; `\"\"` deletes it.",
                ),
                (None, Some(_)) => wrong(
                    "`source_text` is missing",
                    "Quote the text of the file that `target_text` replaces.",
                ),
            };
        }
        // An empty text beside `edits` is ignored.
        let is_said = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if is_said(source_text) || is_said(target_text) || *replace_all || near_line.is_some() {
            return wrong(
                "both `edits` and the fields of a single edit were given",
                "Put `source_text`, `target_text`, `replace_all` and `near_line` into `edits`.",
            );
        }
        let edits = edits.iter().map(|edit| {
            one(&edit.source_text, &edit.target_text, edit.replace_all, edit.near_line)
        });
        Ok(edits.collect())
    }
}

fn one<'a>(source: &'a str, target: &'a str, all: bool, near_line: Option<usize>) -> Edit<'a> {
    let edit = Edit::new(source, target).replace_all(all);
    near_line.map_or(edit, |line| edit.near_line(line))
}

/// Why edits were not made.
enum RefusedEdit {
    Workspace(WorkspaceError),
    RejectedEdit(RejectedEdit),
}

impl From<WorkspaceError> for RefusedEdit {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

fn edit(args: &EditArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let path = call.relative(&args.path)?;
    let edits = args.edits()?;
    let made = call.workspace.update(&args.path, MAX_BYTES, |file| {
        let applied = apply(&file, &edits).map_err(RefusedEdit::RejectedEdit)?;
        let size = applied.bytes.len();
        Ok(((!args.dry_run).then_some(applied.bytes), (applied.steps, size)))
    });
    match made {
        Ok((steps, size)) => Ok(answer::made(&path, &steps, size, args.dry_run)),
        Err(RefusedEdit::Workspace(error)) => Err(refusal(&args.path, error)),
        Err(RefusedEdit::RejectedEdit(rejected)) => Err(answer::rejected(&path, &rejected)),
    }
}
