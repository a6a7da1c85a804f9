//! Unclosed brackets, empty brackets above content, and fences of Markdown blocks.

use super::SourceLine;
use crate::diagnostic::Diagnostic;
use crate::document::shortened;

/// How many lines above are searched for an unclosed bracket.
const LINES_MAX: usize = 50;

/// The fence of a Markdown code block that was copied together with its content.
pub(super) fn fence(text: &str, at: usize) -> Option<Diagnostic> {
    let line = SourceLine::at(text, at);
    let content = line.text.trim();
    content.starts_with("```").then(|| {
        let message = "this line is the fence of a Markdown code block, not YAML";
        let span = line.span(line.indent(), line.text.trim_end().len());
        Diagnostic::error("syntax", &span, message).help(format!(
            "delete the line `{}`, and the other fence of the block",
            shortened(content)
        ))
    })
}

/// `key: {}` or `key: []` above its intended content: somebody uncommented an example and kept the
/// empty value.
pub(super) fn kept_empty_value(text: &str, at: usize) -> Option<Diagnostic> {
    let here = SourceLine::at(text, at);
    let above = here.above(text)?;
    let key = above.key()?;
    let start = above.content() + key.len() + 1;
    let value = above.text[start..].split(" #").next().unwrap_or_default();
    let empty = value.trim();
    let is_entry = here.text.trim_start().starts_with("- ");
    let is_inside = match empty {
        "{}" => here.indent() > above.content(),
        "[]" => is_entry && here.indent() >= above.content() || here.indent() > above.content(),
        _ => false,
    };
    let start = start + value.len() - value.trim_start().len();
    is_inside.then(|| {
        let message = format!(
            "`{key}` ends with `{empty}` here, and the lines below are indented as its content"
        );
        let content = here.span(here.indent(), here.text.trim_end().len());
        Diagnostic::error("syntax", &above.span(start, start + empty.len()), message)
            .help(format!("delete the `{empty}` behind `{key}:`"))
            .also(&content, "this is probably meant as its content")
    })
}

/// A single star, which begins an alias unless it is quoted.
pub(super) fn star(text: &str, at: usize) -> Option<Diagnostic> {
    let line = SourceLine::at(text, at);
    let is_alone = |star: &usize| {
        let before = line.text[..*star].trim_end();
        let after = &line.text[star + 1..];
        before.ends_with([':', '-', ',', '['])
            && (after.trim().is_empty() || after.trim_start().starts_with([',', '}', ']', '#']))
    };
    let star = line.text.match_indices('*').map(|(star, _)| star).find(is_alone)?;
    Some(
        Diagnostic::error(
            "syntax",
            &line.span(star, star + 1),
            "a `*` without quotes begins an alias",
        )
        .help("quote it: \"*\""),
    )
}

/// A bracket that is opened above a key and never closed.
pub(super) fn unclosed(text: &str, at: usize) -> Option<Diagnostic> {
    let here = SourceLine::at(text, at);
    here.key()?;
    let mut line = here;
    for _ in 0..LINES_MAX {
        line = line.above(text)?;
        let (open, closed) = brackets(line.text);
        if let Some((bracket, sign)) = open {
            let close = if sign == '[' { ']' } else { '}' };
            let end = here.content() + here.key().map_or(0, str::len);
            return Some(
                Diagnostic::error(
                    "syntax",
                    &line.span(bracket, bracket + 1),
                    "a bracket is opened here and never closed",
                )
                .help(format!("add the missing `{close}`"))
                .also(&here.span(here.content(), end), "the next key is inside it"),
            );
        }
        if closed {
            return None;
        }
    }
    None
}

/// The innermost bracket that a line opens as a value and does not close, and whether the line
/// closes a bracket that it did not open.
fn brackets(line: &str) -> (Option<(usize, char)>, bool) {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut closed = false;
    let mut quote = None;
    let mut before = ' ';
    let mut begins_value = true;
    for (at, sign) in line.char_indices() {
        match (quote, sign) {
            (Some(own), _) => quote = Some(own).filter(|own| *own != sign),
            (None, '"' | '\'') if begins_value => quote = Some(sign),
            (None, '#') if before == ' ' => break,
            (None, '[' | '{') if begins_value => open.push((at, sign)),
            (None, ']' | '}') if open.pop().is_none() => closed = true,
            _ => {}
        }
        // A value begins after a colon, a dash, a comma or a bracket and spaces.
        begins_value = match sign {
            ' ' => begins_value || matches!(before, ':' | '-' | ','),
            '[' | '{' => begins_value,
            ',' => !open.is_empty(),
            _ => false,
        };
        before = sign;
    }
    (open.pop(), closed)
}

#[cfg(test)]
mod tests {
    use super::brackets;

    #[test]
    fn brackets_in_texts_and_quotes_do_not_count() {
        for (line, open) in [
            ("argv: [ping, \"-c\"", Some((6, '['))),
            ("argv: [ping, {if: a, then: [x]}", Some((6, '['))),
            ("argv: [ping, {if: a, then: [x]", Some((13, '{'))),
            ("description: Say [this", None),
            ("text: \"[\"", None),
            ("url: https://x/${args.y", None),
            ("argv: [ping] # [", None),
            ("- {a: b", Some((2, '{'))),
        ] {
            assert_eq!(brackets(line).0, open, "{line}");
        }
        assert!(brackets("  x]").1);
    }
}
