//! Reports edits that were made or refused, as text and as data.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolcrib_edit::{Candidate, Closest, EditEffect, Level, LineRange, Refusal, RejectedEdit};
use toolcrib_tool::{ToolError, ToolOutput};

/// The answer to edits that were made, or that a dry run would make.
pub(super) fn made(path: &str, steps: &[EditEffect], size: usize, dry_run: bool) -> ToolOutput {
    let verb = if dry_run { "Would edit" } else { "Edited" };
    let mut text = format!("{verb} {path}");
    for (at, step) in steps.iter().enumerate() {
        if steps.len() > 1 {
            let _ = write!(text, "\nEdit {} of {}", at + 1, steps.len());
        }
        let _ = match step.lines.as_slice() {
            [lines] => write!(text, ", {lines}"),
            many => write!(text, " at {} places", many.len()),
        };
        if step.level != Level::Exact {
            let _ = write!(text, " (matched {})", step.level.describe());
        }
        let _ = write!(text, "\n{}", step.diff.trim_end());
    }
    if dry_run {
        text.push_str("\nNothing was written: this was a dry run.");
    }
    let edits: Vec<_> = steps
        .iter()
        .map(|step| {
            let lines: Vec<_> = step.lines.iter().map(range).collect();
            json!({"level": step.level.as_str(), "lines": lines, "diff": step.diff})
        })
        .collect();
    let replaced: usize = steps.iter().map(|step| step.lines.len()).sum();
    ToolOutput::from(text).with_data(json!({
        "path": path, "edits": edits, "replaced": replaced, "size": size, "dry_run": dry_run,
    }))
}

/// The answer to refused edits. Its data has the same facts as its text, so the text is not repeated there.
pub(super) fn rejected(path: &str, rejected: &RejectedEdit) -> ToolError {
    let mut data = structure(&rejected.refusal);
    data["path"] = path.into();
    data["refused"] = rejected.refusal.as_str().into();
    if rejected.of > 1 {
        data["edit"] = (rejected.index + 1).into();
        data["edits"] = rejected.of.into();
        data["stood_before"] = rejected.stood_before.into();
    }
    ToolError::execution(format!("`{path}` was not edited. {rejected}"))
        .with_partial(ToolOutput::from("").with_data(data))
}

fn structure(refusal: &Refusal) -> Value {
    match refusal {
        Refusal::BlankSource { count } => json!({"count": count}),
        Refusal::Omission { line, text } => json!({"line": line, "text": text}),
        Refusal::Ambiguous(found) => json!({
            "level": found.level.as_str(),
            "count": found.count,
            "places": found.places.iter().map(place).collect::<Vec<_>>(),
        }),
        Refusal::Missing(no_match) => json!({
            "closest": no_match.closest.as_ref().map(closest),
            "causes": no_match.causes.iter().map(|cause| cause.as_str()).collect::<Vec<_>>(),
            "already": no_match.already.as_ref().map(range),
            "empty_file": no_match.empty_file,
        }),
        // The name alone says everything.
        _ => json!({}),
    }
}

fn place(place: &Candidate) -> Value {
    json!({"lines": range(&place.lines), "text": place.text, "context": place.context})
}

fn closest(closest: &Closest) -> Value {
    json!({"lines": range(&closest.lines), "text": closest.text, "diff": closest.diff})
}

/// The first line and the last.
fn range(lines: &LineRange) -> Value {
    json!([lines.first, lines.last])
}
