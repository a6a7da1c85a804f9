//! `file_mkdir`, `make_dir`: creates folders.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_tool::{ToolError, ToolOutput};

use super::call::FileCall;
use super::refusal::refusal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MkdirArgs {
    /// The folder to create, from the project's folder: `docs/images`. Missing parent folders are created, too.
    path: String,
}

super::in_both_profiles! {
    /// Create a folder in the project, with any missing parent folders. An existing folder is not an error.
    #[tool(
        category = "file",
        tags("folder"),
        destructive = false,
        idempotent,
        open_world = false,
        writes("files"),
        examples(r#"{"path": "docs"}"#, r#"{"path": "docs/images/large"}"#, r#"{"path": "./build/"}"#)
    )]
    file_mkdir / make_dir (MkdirArgs) => mkdir
}

fn mkdir(args: &MkdirArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let path = call.relative(&args.path)?;
    let created = call.workspace.make_folder(&args.path);
    let created = created.map_err(|error| refusal(&args.path, error))?;
    let text = if created {
        format!("Made the folder {path}")
    } else {
        format!("The folder {path} is there already")
    };
    Ok(ToolOutput::from(text).with_data(json!({"path": path, "created": created})))
}
