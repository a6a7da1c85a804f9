//! `file_write`, `write_file`: writes a text to a file, or appends it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolcrib_tool::{PartialArguments, StatusUpdate, ToolError, ToolOutput};

use super::call::FileCall;
use super::encoding::Encoding;
use super::preview::being_written;
use super::refusal::refusal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteArgs {
    /// The path, from the project's folder: `src/main.rs`. Missing folders are created.
    path: String,
    /// The new content of the file, or the text to append.
    content: String,
    /// `write` replaces the whole content with `content`; `append` adds it at the end. Default `write`.
    #[serde(default)]
    mode: Mode,
    /// How the text becomes bytes: utf-8 (the default), utf-16le, utf-16be, or a label such as
    /// windows-1252, gbk or euc-kr; `base64` if `content` is bytes in base64.
    encoding: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Write,
    Append,
}

super::in_both_profiles! {
    /// Write a file of the project: its whole content, or with mode `append` a text at its end. Missing folders are
    /// created. The previous content is lost; to change a part of a file, edit it.
    #[tool(
        category = "file",
        tags("file", "text"),
        destructive = true,
        open_world = false,
        writes("files"),
        preview = preview,
        empty_as_absent("encoding"),
        examples(
            r##"{"path": "README.md", "content": "# Title\n"}"##,
            r#"{"path": "logs/today.log", "content": "started\n", "mode": "append"}"#,
            r#"{"path": "pixel.gif", "content": "R0lGODlhAQABAAAAACw=", "encoding": "base64"}"#
        )
    )]
    file_write / write_file (WriteArgs) => write
}

/// What people see while the content is being written.
fn preview(partial: &PartialArguments<'_>) -> Option<StatusUpdate> {
    let path = partial.text("path")?;
    let lines = partial.lines("content");
    let what = if partial.text("mode") == Some("append") { "appends to" } else { "writes" };
    Some(being_written(what, path, lines))
}

fn write(args: &WriteArgs, call: &FileCall<'_>) -> Result<ToolOutput, ToolError> {
    let path = call.relative(&args.path)?;
    let bytes = Encoding::of(args.encoding.as_deref())?.encode(&args.content)?;
    let written = match args.mode {
        Mode::Write => call.workspace.write(&args.path, &bytes),
        Mode::Append => call.workspace.append(&args.path, &bytes),
    };
    let written = written.map_err(|error| refusal(&args.path, error))?;
    let (count, size) = (bytes.len(), written.size);
    let text = match (args.mode, written.created) {
        (_, true) => format!("Wrote {count} bytes to the new file {path}"),
        (Mode::Write, false) => {
            format!("Wrote {count} bytes to {path}, replacing the previous content")
        }
        (Mode::Append, false) => format!("Added {count} bytes to {path}, which now has {size}"),
    };
    let data = json!({"path": path, "written": count, "size": size, "created": written.created});
    Ok(ToolOutput::from(text).with_data(data))
}
