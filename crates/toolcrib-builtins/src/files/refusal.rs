//! Error messages for refused paths and files.

use toolcrib_sandbox::WorkspaceError;
use toolcrib_tool::{ErrorKind, ToolError};

/// The error for a path that the workspace refuses, with what to do next.
pub fn path_error(path: &str, error: WorkspaceError) -> ToolError {
    refusal(path, error)
}

/// The error for a path that the workspace refuses.
pub(super) fn refusal(path: &str, error: WorkspaceError) -> ToolError {
    let kind = match &error {
        error if error.is_refusal() => ErrorKind::Denied,
        WorkspaceError::Malformed(_) => ErrorKind::InvalidArgs,
        _ => ErrorKind::Execution,
    };
    let hint = match &error {
        WorkspaceError::Outside => {
            "Use a path inside the project's folder, such as `notes.txt` or `src/main.rs`."
        }
        WorkspaceError::Sensitive | WorkspaceError::Protected | WorkspaceError::NoPermission => {
            "Do not touch it, and tell the user if the task needs it."
        }
        WorkspaceError::NotFound | WorkspaceError::NotAFolder => {
            "List the folder to see what there is. Paths are taken literally: spelling and case count."
        }
        WorkspaceError::IsAFolder => "Name a file, or list the folder.",
        WorkspaceError::NotEmpty => "To delete it with everything in it, set `recursive: true`.",
        WorkspaceError::TooLarge { .. } => "Work on one part of it at a time.",
        WorkspaceError::TooMany(_) => "Search one subfolder at a time.",
        WorkspaceError::Changed => "Read it again, and repeat the edit.",
        _ => "",
    };
    let retryable = matches!(error, WorkspaceError::Busy);
    let told =
        ToolError::new(kind, format!("`{}`: {error}", shown(path))).with_retryable(retryable);
    let told = if hint.is_empty() { told } else { told.with_hint(hint) };
    match error {
        WorkspaceError::Io(cause) => told.with_source(cause),
        _ => told,
    }
}

/// A path for an error message: shortened, with invisible characters escaped.
fn shown(path: &str) -> String {
    let mut shown: String = path.chars().take(200).flat_map(char::escape_debug).collect();
    if shown.len() < path.len() && path.chars().nth(200).is_some() {
        shown.push('…');
    }
    shown
}
