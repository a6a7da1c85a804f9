//! What people see while a model writes the text for a file.

use toolcrib_tool::StatusUpdate;

/// The path and how many lines are written so far.
pub(super) fn being_written(what: &str, path: &str, lines: usize) -> StatusUpdate {
    let count = match lines {
        0 => String::new(),
        1 => ", 1 line so far".to_owned(),
        lines => format!(", {lines} lines so far"),
    };
    let update = StatusUpdate::wait().with_tip(format!("{what} {path}{count}"));
    update.with_param("path", path).with_param("lines", lines)
}
