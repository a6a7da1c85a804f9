//! Reports a failed call to the person at the command line. Hints that address a model ("tell the
//! user", "use another tool") are replaced by what that person can do.

use toolcrib::manifests::Manifests;
use toolcrib::tool::{ErrorKind, ToolError, shown_name};

use super::super::why;
use crate::screen::{self, ERROR};
use crate::terminal_approver::NO_TERMINAL;

/// Marks hints that a model is to pass on.
const FOR_THE_USER: &str = "For the user:";

/// Prints why a call failed and what to do.
pub(super) fn failure(tool: &str, error: &ToolError, manifests: &Manifests) {
    screen::note(format!(
        "{ERROR}Error executing {}: {}{ERROR:#}",
        shown_name(tool),
        error.message()
    ));
    for hint in hints(tool, error, manifests) {
        screen::note(screen::folded_note(&hint, 0));
    }
    let partial = error.partial().map(|partial| partial.text()).unwrap_or_default();
    if !partial.is_empty() {
        screen::note(format!("Output before the failure:\n{partial}"));
    }
}

/// What a person at a terminal can do about it.
fn hints(tool: &str, error: &ToolError, manifests: &Manifests) -> Vec<String> {
    let own = error.hints().iter().filter(|hint| !hint.starts_with(FOR_THE_USER));
    match error.kind() {
        ErrorKind::NotFound => {
            let files = manifests.files().files.iter();
            let broken = files.filter(|file| file.loaded.has_errors());
            let places = broken.filter_map(|file| why::mention(file, tool));
            let places = places.map(|place| {
                format!("{place} names it, but that file cannot be used: see `toolcrib check`.")
            });
            let list = "`toolcrib list` shows the tools that can be called.".to_owned();
            let near = own.filter(|hint| hint.starts_with("Did you mean")).cloned();
            places.chain(near).chain([list]).collect()
        }
        ErrorKind::MissingContext => vec![
            "Give the value with `--ctx KEY=VALUE`, or under `context` in the config. No argument of the \
             call can set it."
                .to_owned(),
        ],
        ErrorKind::Denied if error.message().ends_with(NO_TERMINAL) => vec![
            "Nothing was run. To approve this one call, repeat it with `--yes`; `--dry-run` shows what it \
             would do."
                .to_owned(),
        ],
        ErrorKind::Unavailable => {
            let other = own.filter(|hint| !hint.starts_with("Use another tool")).cloned();
            // A tool that this machine or the operator prevents from being called.
            let is_of_the_tool = error.hints().iter().any(|hint| hint.starts_with(FOR_THE_USER));
            let why = format!("`{tool}` is unavailable here: `toolcrib why {tool}` says more.");
            other.chain(is_of_the_tool.then_some(why)).collect()
        }
        _ => own.cloned().collect(),
    }
}
