//! Nothing runs that was not approved as shown, and whoever reads an answer learns what was changed.

use toolcrib_tool::{CHANGED_ARGUMENTS, ErrorKind, ToolError};

use crate::calls::HOLDER;
use crate::factors::{Consent, Row};
use crate::scenario::{End, Story, Told};
use crate::setup::changed_arguments;
use crate::witness::{Moment, ObservedCall, Seen};

pub(crate) fn only_what_was_approved_ran(row: &Row, story: &Story, problems: &mut Vec<String>) {
    if row.consent == Consent::Free {
        return;
    }
    let mut approved: Vec<(&str, &ObservedCall, bool)> = Vec::new();
    for moment in &story.moments {
        match &moment.seen {
            Seen::Approved { call, observed, remembered } => {
                approved.push((call, observed, *remembered));
            }
            Seen::Began { call, observed, tool: "subject", .. }
            | Seen::HandedOut { call, observed }
                if !call.starts_with(HOLDER) =>
            {
                let is_handed_out = matches!(moment.seen, Seen::HandedOut { .. });
                let fits = |(of, shown, remembered): &(&str, &ObservedCall, bool)| {
                    // A client does not get the injected values.
                    let project = if is_handed_out { &shown.project } else { &observed.project };
                    same(&ObservedCall { project: project.clone(), ..(*observed).clone() }, shown)
                        && (of.trim_end_matches(".1") == call.trim_end_matches(".1") || *remembered)
                };
                if !approved.iter().any(fits) {
                    problems.push(format!("{call}: ran unapproved: {observed:?} of {approved:?}"));
                }
            }
            _ => {}
        }
    }
}

/// Whether the call ran as it was shown.
fn same(observed: &ObservedCall, shown: &ObservedCall) -> bool {
    observed.version == shown.version
        && observed.user == shown.user
        && observed.project == shown.project
        && json_of(&observed.arguments) == json_of(&shown.arguments)
}

fn json_of(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

/// An answer says with which arguments the call ran, if they are not those of the model.
pub(crate) fn changes_are_told(row: &Row, story: &Story, problems: &mut Vec<String>) {
    let Some(changed) = changed_arguments(row) else { return };
    for (id, told) in story.told.iter().filter(|_| !row.is_nested()) {
        let Some(Told { end: End::Done(result), .. }) = told.last() else { continue };
        let with_changed = |moment: &Moment| match &moment.seen {
            Seen::Began { call, observed, .. } | Seen::HandedOut { call, observed } => {
                (call == id).then(|| json_of(&observed.arguments) == json_of(&changed))
            }
            _ => None,
        };
        let Some(is_changed) = story.moments.iter().filter_map(with_changed).next_back() else {
            continue;
        };
        let output = result.output().or_else(|| result.error().and_then(ToolError::partial));
        let is_told = output.is_some_and(|output| output.meta().contains_key(CHANGED_ARGUMENTS));
        // What was not run, or is cut short, need not say with what.
        let may_miss = matches!(
            result.error_kind(),
            Some(
                ErrorKind::NotFound
                    | ErrorKind::Unavailable
                    | ErrorKind::Denied
                    | ErrorKind::Constraint
                    | ErrorKind::Cancelled
                    | ErrorKind::OutcomeUnknown
            )
        );
        if is_told != is_changed && !(is_changed && may_miss) {
            problems.push(format!("{id}: changed: {is_changed}, told: {is_told}"));
        }
    }
}
