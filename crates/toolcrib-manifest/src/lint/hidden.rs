//! Characters that a reader does not see, or that change how the text around them is shown: a model
//! reads them, and the person who reviews the file does not.

use super::shown;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Entry;

/// Looks through a whole file, comments included.
pub(super) fn check_text(findings: &mut Findings<'_>) {
    let text = findings.text;
    // A byte that begins none of them is passed over without being decoded.
    if text.bytes().all(|byte| byte != 0x7f && byte < 0xc2) {
        return;
    }
    // One that was only told where a run of them begins: a hidden sentence is one problem.
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let Some(what) = hidden(text, at, c) else { continue };
        if at == end && at > 0 {
            end += c.len_utf8();
            continue;
        }
        end = at + c.len_utf8();
        let run = text[at..].char_indices().take_while(|(i, c)| hidden(text, at + i, *c).is_some());
        let count = run.count();
        let span = at..at + c.len_utf8();
        let more = match count {
            1 => String::new(),
            _ => format!(", and {} more after it", count - 1),
        };
        findings.add(
            Diagnostic::warning(
                "hidden-character",
                &span,
                format!("the character U+{:04X} stands here, {what}{more}", u32::from(c)),
            )
            .help("remove it: models read it, and people who look at the file do not see it"),
        );
        if findings.is_full() {
            return;
        }
    }
}

/// Looks for those that a value has by way of an escape.
pub(super) fn check_value(entry: &Entry, findings: &mut Findings<'_>) {
    let Some(text) = entry.node.as_str() else { return };
    let source = findings.text.get(entry.node.span.clone()).unwrap_or_default();
    let found = text.char_indices().find_map(|(at, c)| Some((c, hidden(text, at, c)?)));
    if let Some((c, what)) = found.filter(|(c, _)| !source.contains(*c)) {
        let message = format!("an escape puts the character U+{:04X} here, {what}", u32::from(c));
        findings.add(
            Diagnostic::warning("hidden-character", &shown(entry), message)
                .help("remove it: models read it, and people who see the tool do not"),
        );
    }
}

/// What a character does that a reader does not see; none if it is harmless where it stands.
fn hidden(text: &str, at: usize, c: char) -> Option<&'static str> {
    match c {
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some("which turns the direction of the text around it")
        }
        '\u{e0000}'..='\u{e007f}' => Some("which is invisible and spells text to a model"),
        '\u{e0100}'..='\u{e01ef}' => Some("which is invisible and can carry hidden data"),
        // Joiners belong between the letters of some scripts and the parts of an emoji.
        '\u{200c}' | '\u{200d}' => {
            let before = text[..at].chars().next_back();
            let after = text[at + c.len_utf8()..].chars().next();
            let joins = before.zip(after).is_some_and(|(a, b)| !a.is_ascii() && !b.is_ascii());
            (!joins).then_some("which is invisible")
        }
        '\u{ad}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2064}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{180e}' => Some("which is invisible"),
        '\u{2028}' | '\u{2029}' => Some("which ends a line for some readers and not for others"),
        c if c.is_control() && !matches!(c, '\n' | '\r' | '\t') => {
            Some("which is a control character")
        }
        _ => None,
    }
}
