//! Refusals that do not depend on the file.

use super::diff::hunks;
use super::refusal::Refusal;

/// Refuses edits that cannot be meant, whatever the file contains.
pub(super) fn check(source: &str, target: &str) -> Result<(), Refusal> {
    if source.is_empty() {
        return Err(Refusal::EmptySource);
    }
    if source == target {
        return Err(Refusal::NoChange);
    }
    match omission(source, target) {
        Some((line, text)) => Err(Refusal::Omission { line, text: text.to_owned() }),
        None => Ok(()),
    }
}

/// Whether a text is invisible: blanks, line ends, characters of no width.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|char| char.is_whitespace() || super::character_folding::is_widthless(char))
}

/// A line of the target that replaces omitted lines, and its number in the target.
fn omission<'a>(source: &str, target: &'a str) -> Option<(usize, &'a str)> {
    let may_hold_one = target.contains("...") || target.contains('…');
    if !may_hold_one {
        return None;
    }
    let source: Vec<&str> = source.lines().map(str::trim).collect();
    let lines: Vec<&str> = target.lines().map(str::trim).collect();
    for hunk in hunks(&source, &lines).into_iter().filter(|hunk| !hunk.equal) {
        for at in hunk.new {
            let marker = marker(lines[at]);
            let says_so = marker == Some(OmissionMarker::SaysSo);
            // A bare ellipsis is a marker if it replaces several lines.
            let instead = marker == Some(OmissionMarker::Ellipsis) && hunk.old.len() > 1;
            if (says_so || instead) && !source.contains(&lines[at]) {
                return Some((at + 1, lines[at]));
            }
        }
    }
    None
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum OmissionMarker {
    /// `// ... existing code ...`
    SaysSo,
    /// `# ...`
    Ellipsis,
}

/// Beginnings and ends of comments in common languages.
const OPENERS: [&str; 14] =
    ["<!--", "{/*", "/**", "/*", "///", "//", "--", "(*", "\"\"\"", "#", ";", "%", "*", "REM "];
const CLOSERS: [&str; 6] = ["-->", "*/}", "*/", "*)", "\"\"\"", "#"];

/// Typical words of a marker beside its ellipsis.
const SAID: [&str; 18] = [
    "rest of",
    "the rest",
    "existing",
    "remaining",
    "remainder",
    "unchanged",
    "not changed",
    "no change",
    "same as",
    "stays the same",
    "omitted",
    "as before",
    "as above",
    "previous code",
    "other code",
    "more code",
    "code here",
    "rest unchanged",
];

fn marker(line: &str) -> Option<OmissionMarker> {
    let opened = OPENERS.iter().find_map(|opener| line.strip_prefix(opener));
    let text = opened.unwrap_or(line).trim();
    let text = CLOSERS.iter().find_map(|closer| text.strip_suffix(closer)).unwrap_or(text).trim();
    let text = text
        .strip_prefix(['(', '[', '<', '{'])
        .and_then(|text| text.strip_suffix([')', ']', '>', '}']))
        .unwrap_or(text)
        .trim();
    let bare = text.trim_matches(['.', '…', ' ']);
    let dots = |edge: &str| edge.contains("...") || edge.contains('…');
    let begins = &text[..text.len() - text.trim_start_matches(['.', '…', ' ']).len()];
    let ends = &text[text.trim_end_matches(['.', '…', ' ']).len()..];
    if bare.is_empty() {
        // Outside a comment an ellipsis is code in some languages.
        return (opened.is_some() && dots(text)).then_some(OmissionMarker::Ellipsis);
    }
    // Three dots directly before a word are a spread operator.
    let spread = !begins.ends_with(' ');
    if (!dots(begins) || spread) && !dots(ends) {
        return None;
    }
    // A sentence with quotes or calls is code or prose that trails off.
    let short = bare.split_whitespace().count() <= 10 && !bare.contains(['"', '\'', '=', ';']);
    let bare = bare.to_lowercase();
    (short && SAID.iter().any(|said| bare.contains(said))).then_some(OmissionMarker::SaysSo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_of_omitted_lines_are_detected() {
        for line in [
            "... rest of code ...",
            "rest of code …",
            "// ... existing code ...",
            "// ...existing code...",
            "# ... (rest of the function unchanged)",
            "/* … remaining methods … */",
            "<!-- ... same as before ... -->",
            "{/* ... existing JSX ... */}",
            "-- ... rest of the query",
            "[... rest of file unchanged ...]",
        ] {
            assert!(omission("a\nb", &format!("a\n{line}\n")).is_some(), "{line}");
        }
        assert_eq!(omission("a\nb\nc\nd", "a\n// ...\nd"), Some((2, "// ...")));
    }

    #[test]
    fn code_and_prose_are_not_markers() {
        for line in [
            "...",
            "def f(): ...",
            "print(\"loading the rest of the data...\")",
            "// Wait ...",
            "fn f(...rest) {",
            "[...existing, item]",
            "...remaining,",
            "Loading...",
            "# ...",
        ] {
            assert_eq!(omission("a", &format!("a\n{line}\n")), None, "{line}");
        }
        let both = "a\n// ... existing code ...\nb";
        assert_eq!(omission(both, &both.replace('b', "c")), None);
    }
}
