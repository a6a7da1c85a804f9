//! `file_exists`: reports whether a file or folder exists.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_sandbox::Kind;
use toolcrib_tool::{ToolError, ToolOutput};

use super::call::FileCall;
use super::refusal::refusal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExistsArgs {
    /// The path, from the project's folder: `src/main.rs`.
    path: String,
}

super::in_both_profiles! {
    /// Say whether a file or folder of the project exists, what it is and how large.
    #[tool(
        category = "file",
        tags("file", "folder"),
        read_only,
        destructive = false,
        idempotent,
        open_world = false,
        reads("files"),
        examples(r#"{"path": "src/main.rs"}"#, r#"{"path": "docs"}"#, r#"{"path": "."}"#)
    )]
    file_exists (ExistsArgs) => exists
}

fn exists(args: &ExistsArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let path = call.relative(&args.path)?;
    let found = call.workspace.look(&args.path).map_err(|error| refusal(&args.path, error))?;
    let Some(entry) = found else {
        return Ok(ToolOutput::from(format!("{path} does not exist"))
            .with_data(json!({"path": path, "exists": false})));
    };
    let (kind, size) = (entry.kind, entry.size);
    let (text, data) = if kind == Kind::File {
        (
            format!("{path} exists: a file of {size} bytes"),
            json!({"path": path, "exists": true, "kind": "file", "size": size}),
        )
    } else {
        (
            format!(
                "{path} exists: a {}",
                if kind == Kind::Folder { "folder" } else { "special file" }
            ),
            json!({"path": path, "exists": true, "kind": kind.as_str()}),
        )
    };
    Ok(ToolOutput::from(text).with_data(data))
}
