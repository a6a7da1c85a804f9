//! Descriptions, by which models choose tools and arguments.

use super::{hidden, shown};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;

/// The number of characters of a description that every provider shows to its models.
const SHOWN_EVERYWHERE: usize = 1024;
/// The minimum number of words that can say what a tool does and when to use it.
const FEWEST_WORDS: usize = 3;

pub(super) fn check(tool: &Node, findings: &mut Findings<'_>) {
    for key in ["title", "description"] {
        if let Some(entry) = tool.entry(key) {
            hidden::check_value(entry, findings);
        }
    }
    check_length(tool, findings);
    let properties = tool.entry("input").and_then(|input| input.node.entry("properties"));
    for argument in properties.map(|entry| entry.node.entries()).unwrap_or_default() {
        match argument.node.entry("description") {
            Some(description) => hidden::check_value(description, findings),
            None if argument.node.entry("$ref").is_some() => {}
            None => {
                let name = &argument.key;
                let message = format!("nothing says what the argument `{name}` means");
                findings.add(
                    Diagnostic::hint("undescribed-argument", &argument.key_span, message)
                        .help("add `description:` to it: models fill it in by that"),
                );
            }
        }
    }
}

fn check_length(tool: &Node, findings: &mut Findings<'_>) {
    let Some((entry, text)) = tool.entry("description").and_then(|e| Some((e, e.node.as_str()?)))
    else {
        return;
    };
    let text = text.trim();
    let name = tool.entry("name").and_then(|entry| entry.node.as_str()).unwrap_or_default();
    if text.is_empty() {
        return; // Reported as an error.
    }
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let said = words(text);
    // Texts in scripts without spaces have few words.
    let few = text.is_ascii() && said.len() < FEWEST_WORDS;
    let repeats = said == words(name);
    if few || repeats {
        let message = if repeats {
            "the description only repeats the name"
        } else {
            "the description is too short to choose the tool by"
        };
        findings.add(Diagnostic::warning("short-description", &shown(entry), message).help(
            "say in a sentence or two what the tool does, when to use it, and what it is not \
                 for",
        ));
    }
    let length = text.chars().count();
    if length > SHOWN_EVERYWHERE {
        let message = format!(
            "the description has {length} characters; OpenAI's models are shown the first \
             {SHOWN_EVERYWHERE}"
        );
        findings.add(
            Diagnostic::warning("long-description", &shown(entry), message)
                .help("say the most important first, and move details to the arguments"),
        );
    }
}
