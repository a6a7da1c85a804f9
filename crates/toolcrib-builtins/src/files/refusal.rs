//! What a model is told when a path or a file is refused.

use toolcrib_sandbox::WorkspaceError;
use toolcrib_tool::{ErrorKind, ToolError};

/// The answer to a call whose path the workspace refuses.
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
            "Leave it alone, and tell the user if the task needs it."
        }
        WorkspaceError::NotFound | WorkspaceError::NotAFolder => {
            "List the folder to see what there is. Paths are taken literally: spelling and case count."
        }
        WorkspaceError::IsAFolder => "Name a file, or list the folder.",
        WorkspaceError::NotEmpty => "To delete it with all that is in it, say `recursive: true`.",
        WorkspaceError::TooLarge { .. } => "Work on a part of it.",
        WorkspaceError::TooMany(_) => "Take one of its folders after the other.",
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

/// A path as it is repeated to a model: not endless, and nothing invisible in it.
fn shown(path: &str) -> String {
    let mut shown: String = path.chars().take(200).flat_map(char::escape_debug).collect();
    if shown.len() < path.len() && path.chars().nth(200).is_some() {
        shown.push('…');
    }
    shown
}
