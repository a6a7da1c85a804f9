//! `edit_file`: a text in a file is replaced by what a model quotes of it, under the file's lock.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_fuzzy::edit::{Edit, Level, Refusal};
use toolcrib_sandbox::WorkspaceError;
use toolcrib_tool::{ToolError, ToolOutput};

use super::call::FileCall;
use super::refusal::refusal;

/// The largest file that is edited, in bytes.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArgs {
    /// The path, from the project's folder: `src/main.rs`.
    path: String,
    /// The text to replace, as it stands in the file, with enough of the lines around it to be there
    /// once. No line numbers.
    source_text: String,
    /// What shall stand there instead; the empty text deletes it.
    target_text: String,
    /// Replace all places instead of the only one. Default false.
    #[serde(default)]
    replace_all: bool,
}

super::in_both_profiles! {
    /// Edit a file of the project: the text `source_text`, which has to stand in it at one place, becomes
    /// `target_text`. Where it stands at several places or at none, nothing is changed, and the answer
    /// says where, or what is closest. To insert, quote a line and give it back with what is new.
    #[tool(
        category = "file",
        tags("file", "text"),
        destructive = true,
        open_world = false,
        writes("files"),
        examples(
            r#"{"path": "config.py", "source_text": "DEBUG = True", "target_text": "DEBUG = False"}"#,
            r#"{"path": "a.rs", "source_text": "use std::fs;\n", "target_text": "use std::fs;\nuse std::io;\n"}"#,
            r#"{"path": "a.txt", "source_text": "colour", "target_text": "color", "replace_all": true}"#
        )
    )]
    edit_file (EditArgs) => edit
}

/// Why an edit was not made.
enum Unmade {
    Workspace(WorkspaceError),
    Refused(Refusal),
}

impl From<WorkspaceError> for Unmade {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

fn edit(args: &EditArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let path = call.relative(&args.path)?;
    let edit = Edit::new(&args.source_text, &args.target_text).replace_all(args.replace_all);
    let made = call.workspace.update(&args.path, MAX_BYTES, |file| {
        let change = edit.find(&file).map_err(Unmade::Refused)?;
        let diff = change.diff(&file);
        let new = change.apply(&file);
        let size = new.len();
        Ok((Some(new), (change, diff, size)))
    });
    let (change, diff, size) = made.map_err(|unmade| match unmade {
        Unmade::Workspace(error) => refusal(&args.path, error),
        Unmade::Refused(why) => refused(&path, &why),
    })?;
    let places: Vec<_> = change.lines().iter().map(|lines| [lines.first, lines.last]).collect();
    let mut said = match change.lines() {
        [lines] => format!("Edited {path}, {lines}"),
        many => format!("Edited {path} at {} places", many.len()),
    };
    if change.level() != Level::Exact {
        let _ = write!(said, " (matched {})", change.level().describe());
    }
    let data = json!({
        "path": path,
        "replaced": places.len(),
        "lines": places,
        "level": change.level().as_str(),
        "size": size,
    });
    Ok(ToolOutput::from(format!("{said}\n{diff}")).with_data(data))
}

fn refused(path: &str, why: &Refusal) -> ToolError {
    ToolError::execution(format!("`{path}` was not edited. {why}"))
}
