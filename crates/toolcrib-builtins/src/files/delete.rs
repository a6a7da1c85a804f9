//! `file_delete`, `delete_file`: deletes files and folders.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_sandbox::Kind;
use toolcrib_tool::{ToolError, ToolOutput};

use super::call::FileCall;
use super::refusal::refusal;

/// The most files and folders that one call deletes.
const MAX_REMOVED: u64 = 100_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArgs {
    /// The path, from the project's folder: `notes/old.txt`.
    path: String,
    /// For a folder that is not empty: delete everything in it, too. Default false.
    #[serde(default)]
    recursive: bool,
}

super::in_both_profiles! {
    /// Delete a file or an empty folder of the project, or with `recursive` a folder and everything in it. A symbolic
    /// link is deleted itself, not its target. This cannot be undone.
    #[tool(
        category = "file",
        tags("file", "folder"),
        destructive = true,
        idempotent,
        open_world = false,
        writes("files"),
        examples(
            r#"{"path": "notes/old.txt"}"#,
            r#"{"path": "build", "recursive": true}"#,
            r#"{"path": "empty_folder"}"#
        )
    )]
    file_delete / delete_file (DeleteArgs) => delete
}

fn delete(args: &DeleteArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let path = call.relative(&args.path)?;
    let removed = if args.recursive {
        call.workspace.remove_all(&args.path, MAX_REMOVED)
    } else {
        call.workspace.remove(&args.path)
    };
    let removed = removed.map_err(|error| refusal(&args.path, error))?;
    let text = match (removed.kind, removed.count) {
        (Kind::Folder, 1) => format!("Deleted the empty folder {path}"),
        (Kind::Folder, count) => {
            format!("Deleted the folder {path} and {} files and folders in it", count - 1)
        }
        (Kind::Link, _) => format!("Deleted the link {path}, not what it leads to"),
        _ => format!("Deleted {path}"),
    };
    let data = json!({"path": path, "kind": removed.kind.as_str(), "deleted": removed.count});
    Ok(ToolOutput::from(text).with_data(data))
}
