//! Invisible characters, and those that change how the text around them is shown: models read them,
//! but people who review the file do not see them.

use toolcrib_tool::hidden_characters;

use super::shown;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Entry;

/// Checks a whole file, including comments.
pub(super) fn check_text(findings: &mut Findings<'_>) {
    let text = findings.text;
    // Skip bytes that cannot begin such a character without decoding.
    if text.bytes().all(|byte| (byte >= b' ' || b"\n\r\t".contains(&byte)) && byte < 0x7f) {
        return;
    }
    let mut hidden = hidden_characters(text).peekable();
    // A sequence of hidden characters is one problem, reported at its beginning.
    while let Some(first) = hidden.next() {
        let mut end = first.at + first.character.len_utf8();
        let span = first.at..end;
        let mut after = 0;
        while let Some(next) = hidden.next_if(|next| next.at == end) {
            end += next.character.len_utf8();
            after += 1;
        }
        let more = match after {
            0 => String::new(),
            _ => format!(", and {after} more after it"),
        };
        let number = u32::from(first.character);
        findings.add(
            Diagnostic::warning(
                "hidden-character",
                &span,
                format!("the character U+{number:04X} stands here, {}{more}", first.effect),
            )
            .help("remove it: models read it, and people who look at the file do not see it"),
        );
    }
}

/// Checks a value for hidden characters that are written as escapes.
pub(super) fn check_value(entry: &Entry, findings: &mut Findings<'_>) {
    let Some(text) = entry.node.as_str() else { return };
    let source = findings.text.get(entry.node.span.clone()).unwrap_or_default();
    let escaped = hidden_characters(text).find(|hidden| !source.contains(hidden.character));
    if let Some(hidden) = escaped {
        let number = u32::from(hidden.character);
        let message =
            format!("an escape puts the character U+{number:04X} here, {}", hidden.effect);
        findings.add(
            Diagnostic::warning("hidden-character", &shown(entry), message)
                .help("remove it: models read it, and people who see the tool do not"),
        );
    }
}
