//! YAML syntax errors in plain words.

use serde_yaml::granit_parser::{ErrorKind, ScanError};

use crate::diagnostic::Diagnostic;

/// The diagnostic for a parser's error at a byte offset.
pub(super) fn explain(text: &str, at: usize, error: &ScanError) -> Diagnostic {
    if let Some((key, line)) = unindented_block(text, at) {
        let message = format!("the text of `{key}` is not indented");
        let help = format!("indent each line of the text deeper than `{key}`");
        return Diagnostic::error("syntax", &(line..line + 1), message).help(help);
    }
    if matches!(error.kind(), ErrorKind::InvalidQuotedScalarIndent)
        && let Some(quote) = open_quote(text, at)
    {
        let message =
            "this quote is not closed: the next line is not indented as its text would be";
        let help = "add the closing quote at the end of the text; if the text goes on below, indent its lines";
        return Diagnostic::error("syntax", &(quote..quote + 1), message).help(help);
    }
    let (message, help) = wording(error.kind());
    let at = if is_about_a_tab(error.kind()) { tab(text, at).unwrap_or(at) } else { at };
    let static_message = message.map(str::to_owned);
    let message =
        message.map_or_else(|| format!("not valid YAML: {}", error.kind()), str::to_owned);
    // Underline a character if there is one; errors at the end of a line point after it. A place of
    // spaces only would not be visible.
    let blank = text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len();
    let next = text[at + blank..].chars().next().filter(|next| !next.is_control());
    let width = next.map_or(0, |next| blank + next.len_utf8());
    let diagnostic = Diagnostic::error("syntax", &(at..at + width), message);
    diagnostic.expects(static_message).maybe_help(help.map(str::to_owned))
}

/// The place of the quote that begins a value above a place and is not closed in its line.
fn open_quote(text: &str, at: usize) -> Option<usize> {
    let above = text.get(..at)?.lines().rev();
    above.filter(|line| !line.trim().is_empty()).take(100).find_map(|line| {
        let key = line.find(": ").map_or(0, |colon| colon + 2);
        let value = line.get(key..)?.trim_start_matches([' ', '-']);
        let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''))?;
        let rest = value.get(1..)?.replace("\\\"", "").replace("''", "");
        (!rest.contains(quote)).then(|| offset(text, value))
    })
}

/// A key with `|` or `>` at most two lines above the place whose text is not indented deeper than the key, and where
/// that text begins.
fn unindented_block(text: &str, at: usize) -> Option<(&str, usize)> {
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let lines = text[..end].rsplit('\n').filter(|line| !line.trim().is_empty()).take(3);
    let mut below: Option<&str> = None;
    for line in lines {
        let header = line.trim_end().trim_end_matches(['-', '+']);
        let key = header.strip_suffix(['|', '>']).and_then(|key| key.trim_end().strip_suffix(':'));
        if let (Some(key), Some(below)) = (key, below) {
            let name = key.trim_start_matches([' ', '-']);
            let below_text = below.trim_start();
            let is_shallow = below.len() - below_text.len() <= key.len() - name.len();
            // A key or an entry of a list there would be the next one after an empty text.
            let is_text = !below_text.starts_with("- ")
                && !below_text.contains(": ")
                && !below_text.trim_end().ends_with(':');
            return (is_shallow && is_text).then(|| (name, offset(text, below_text)));
        }
        below = Some(line);
    }
    None
}

/// Where a part of the text begins in it.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

const fn is_about_a_tab(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
    )
}

/// The place of the tab, because the parser may report a place before it, even on the line above, or
/// the one after it: the first tab from that line on with only spaces before it on its line.
fn tab(text: &str, at: usize) -> Option<usize> {
    let at = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text.get(at..)?;
    let indents = |tab: &usize| {
        let line = rest[..*tab].rsplit('\n').next().unwrap_or_default();
        line.chars().all(char::is_whitespace)
    };
    rest.match_indices('\t').map(|(tab, _)| tab).find(indents).map(|tab| at + tab)
}

fn wording(kind: &ErrorKind) -> (Option<&'static str>, Option<&'static str>) {
    let (message, help) = match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => ("YAML does not allow a tab here", "indent with spaces"),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
            ("a quote is opened and never closed", "add the closing quote")
        }
        ErrorKind::InvalidQuotedScalarIndent => (
            "a quote that was opened above is still open on this line",
            "add the closing quote above; if the text goes on here, indent this line",
        ),
        ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::UnclosedFlowCollection { .. } => {
            ("a bracket is opened and never closed", "add the missing `]` or `}`")
        }
        ErrorKind::MismatchedFlowCollectionEnd { .. } | ErrorKind::MisplacedFlowCollectionEnd => (
            "this bracket does not match the one that is open",
            "close brackets in the order they were opened; quote text that contains brackets",
        ),
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => (
            "a comma or the closing bracket is missing here",
            "separate the items with commas; quote text that contains commas, brackets or `: `",
        ),
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
            "a `:` is not allowed here",
            "quote text that contains `: `; if this is a key, give it a line and the right \
             indentation",
        ),
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::MappingKeyNotAllowed
        | ErrorKind::BlockSequenceEntryNotAllowed => (
            "this line does not fit the lines above it",
            "indent keys of one mapping, and items of one list, by the same number of spaces",
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            ("a `:` is missing after the key", "write `key: value`, with a space after the colon")
        }
        ErrorKind::UnexpectedCharacter { .. } => {
            ("text cannot begin with this character", "quote the text")
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "there is text after the closing quote",
            "put the whole text in quotes; inside '…' write a quote as ''",
        ),
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape => (
            "this escape does not exist in a text in double quotes",
            "write `\\\\` for a backslash, or use single quotes, which have no escapes",
        ),
        ErrorKind::RecursionLimitExceeded => (
            "lists and mappings are nested too deep here",
            "flatten it: no manifest needs this \
             depth",
        ),
        _ => return (None, None),
    };
    (Some(message), Some(help))
}
