//! The conversation of a run as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toolcrib::agent::JournalEntry;
use toolcrib::agent::run::AgentRun;
use toolcrib::core::suspension::Suspension;
use toolcrib::tool::{canonical_json, fully_visible_text};
use toolcrib::wire::model::{Item, Role, View};

use super::{StoredRun, ending};

/// The whole conversation, with the calls that wait and how the run ended.
pub(super) fn page(run: &StoredRun, state: &AgentRun, waiting: &[Suspension]) -> String {
    let mut page = format!("# Run {}\n\n", run.id);
    let _ = writeln!(page, "Agent `{}`, {}.", state.agent(), state.state().as_str());
    let names = tool_names(run);
    for item in state.conversation().iter().flatten() {
        match item {
            Item::Input(input) => {
                let who = if input.role == Role::User { "User" } else { "Host" };
                let parts: Vec<_> = input.content.iter().map(|part| part.as_text()).collect();
                section(&mut page, who, &visible(&parts.join("\n\n")));
            }
            Item::Result(result) => {
                let what = if result.is_success() { "result" } else { "failure" };
                let head = format!("`{}`: {what}", result.tool());
                section(&mut page, &head, &fenced(&visible(&result.text())));
            }
            Item::Model(item) => match item.view() {
                View::Message { text, .. } => section(&mut page, "Model", &visible(text)),
                View::Reasoning { text } if !text.is_empty() => {
                    section(&mut page, "Reasoning", &quoted(&visible(text)));
                }
                View::Call(call) => {
                    let tool = names.get(&call.name).unwrap_or(&call.name);
                    let mut text = fenced(&visible(&call.arguments));
                    if let Some(decision) = decision(run, call.id.as_str()) {
                        let _ = write!(text, "\n\n{decision}");
                    }
                    section(&mut page, &format!("Call of `{tool}`"), &text);
                }
                _ => {}
            },
            _ => {}
        }
    }
    for call in waiting {
        let head = format!("Waits: `{}` ({})", call.tool(), call.id());
        section(&mut page, &head, &fenced(&visible(&call.shown().arguments.to_string())));
    }
    match state.outcome() {
        // The answer is the last message.
        None | Some(toolcrib::agent::run::Outcome::Completed { .. }) => {}
        Some(outcome) => section(&mut page, "End", &ending(outcome)),
    }
    page
}

/// Who decided on a call, and with which arguments, if that was not what the model asked for.
fn decision(run: &StoredRun, call: &str) -> Option<String> {
    run.rows.iter().find_map(|row| match &row.entry {
        JournalEntry::CallResolved { call: id, kind, by, arguments } if id.as_str() == call => {
            let said = format!("{} by {}", kind.as_str(), visible(by));
            Some(match arguments {
                Some(changed) => {
                    let changed = fenced(&visible(&canonical_json(changed)));
                    format!("{said}, with changed arguments:\n\n{changed}")
                }
                None => format!("{said}."),
            })
        }
        _ => None,
    })
}

/// The tools' own names for the providers' names.
fn tool_names(run: &StoredRun) -> BTreeMap<String, String> {
    let names = run.rows.iter().filter_map(|row| match &row.entry {
        JournalEntry::ModelAnswered { names, .. } => Some(names.clone()),
        _ => None,
    });
    names.flatten().collect()
}

fn section(page: &mut String, head: &str, text: &str) {
    let _ = writeln!(page, "\n## {head}\n\n{}", text.trim_end());
}

fn visible(text: &str) -> String {
    fully_visible_text(text).into_owned()
}

/// A block of code, whose fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

fn quoted(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_fence_cannot_end_its_block() {
        assert_eq!(fenced("a\n````\nb"), "`````\na\n````\nb\n`````");
        assert_eq!(fenced("a"), "```\na\n```");
    }
}
