//! Common mistakes that make YAML invalid or change its meaning, recognized by the shape of the
//! lines: their actual place, and what to write instead.

use serde_yaml::granit_parser::ErrorKind;
use toolcrib_tool::hidden_characters;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::position::{Span, boundary};
use crate::document::{first_content, shortened};
use crate::words::Words;

mod brackets;

/// Keys of a tool that do not occur in the mappings inside it.
static TOOL_KEYS: Words = Words::of(
    "annotations approval constraints context cwd description examples http input limits name \
     needs output run sandbox tests",
);

/// Typographic quotes of word processors.
const CURLY_QUOTES: [char; 5] = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}'];

/// Space characters that YAML reads as text.
const FOREIGN_BLANKS: [char; 6] =
    ['\u{a0}', '\u{2007}', '\u{2009}', '\u{202f}', '\u{3000}', '\u{205f}'];

/// An invisible character that YAML reads as text.
pub(super) struct InvisibleCharacter {
    /// Its offset in the searched text.
    pub(super) at: usize,
    character: char,
}

impl InvisibleCharacter {
    /// The first one in a text.
    pub(super) fn find(text: &str) -> Option<Self> {
        if text.is_ascii() {
            return None;
        }
        let blank = text
            .char_indices()
            .find(|(_, character)| FOREIGN_BLANKS.contains(character))
            .map(|(at, character)| Self { at, character });
        let hidden = hidden_characters(text)
            .next()
            .map(|hidden| Self { at: hidden.at, character: hidden.character });
        match (blank, hidden) {
            (Some(blank), Some(hidden)) if hidden.at < blank.at => Some(hidden),
            (blank, hidden) => blank.or(hidden),
        }
    }

    /// Its name for messages: `U+00A0 (a no-break space)`.
    pub(super) fn name(&self) -> String {
        let number = u32::from(self.character);
        let what = match self.character {
            '\u{a0}' | '\u{202f}' => "a no-break space",
            '\u{200b}' => "a zero-width space",
            '\u{feff}' => "a byte order mark",
            '\u{ad}' => "a soft hyphen",
            character if FOREIGN_BLANKS.contains(&character) => "a blank that is not a space",
            _ => "invisible",
        };
        format!("U+{number:04X} ({what})")
    }

    /// The text without these characters.
    pub(super) fn removed(text: &str) -> String {
        let mut left = text.to_owned();
        while let Some(invisible_character) = Self::find(&left) {
            left.remove(invisible_character.at);
        }
        left.trim().to_owned()
    }
}

/// A line of a file.
#[derive(Clone, Copy)]
struct SourceLine<'t> {
    start: usize,
    text: &'t str,
}

impl<'t> SourceLine<'t> {
    /// The line at an offset.
    fn at(text: &'t str, offset: usize) -> Self {
        let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
        Self { start, text: text[start..end].trim_end_matches('\r') }
    }

    /// The nearest line above that is not blank or a comment.
    fn above(self, text: &'t str) -> Option<Self> {
        let mut line = self;
        while line.start > 0 {
            line = Self::at(text, line.start - 1);
            let content = line.text.trim_start();
            if !content.is_empty() && !content.starts_with('#') {
                return Some(line);
            }
        }
        None
    }

    fn indent(self) -> usize {
        self.text.len() - self.text.trim_start_matches(' ').len()
    }

    /// The offset of the content, after the dashes of list items.
    fn content(self) -> usize {
        let mut at = self.indent();
        while self.text[at..].starts_with("- ") {
            at += 2;
            at += self.text[at..].len() - self.text[at..].trim_start_matches(' ').len();
        }
        at
    }

    /// The key at the beginning of the line.
    fn key(self) -> Option<&'t str> {
        let content = &self.text[self.content()..];
        let (key, rest) = content.split_once(':')?;
        let plain = |c: char| c.is_alphanumeric() || "_-".contains(c);
        let is_key = !key.is_empty() && key.chars().all(plain);
        (is_key && (rest.is_empty() || rest.starts_with(' '))).then_some(key)
    }

    fn span(self, from: usize, to: usize) -> Span {
        self.start + from..self.start + to
    }
}

/// The probable mistake at the place where the parser stopped, if it is recognized.
pub(super) fn find(text: &str, at: usize, kind: &ErrorKind) -> Option<Diagnostic> {
    let found = toml(text)
        .or_else(|| brackets::fence(text, at))
        .or_else(|| brackets::kept_empty_value(text, at))
        .or_else(|| unquoted_reference(text, at))
        .or_else(|| invisible_character(text, at))
        .or_else(|| brackets::star(text, at))
        .or_else(|| brackets::unclosed(text, at));
    found.or_else(|| match kind {
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::InvalidColonPlacement
        | ErrorKind::SimpleKeyExpected
        | ErrorKind::InvalidSimpleKey => missing_blank(text, at).or_else(|| indentation(text, at)),
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::MappingKeyNotAllowed
        | ErrorKind::BlockSequenceEntryNotAllowed => indentation(text, at),
        _ => None,
    })
}

/// A file that is TOML.
pub(super) fn toml(text: &str) -> Option<Diagnostic> {
    let (start, line) = first_content(text)?;
    let is_table = line.starts_with('[')
        && line.ends_with(']')
        && line.trim_matches(['[', ']']).bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    let is_pair = line.split_once('=').is_some_and(|(key, _)| {
        let key = key.trim();
        !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.\"".contains(&byte))
    });
    let others = text.lines().filter(|line| line.contains(" = ") || line.starts_with("[["));
    (is_pair || is_table && others.count() > 0).then(|| {
        let message = "this is TOML, but the file is read as YAML because of its name";
        Diagnostic::error("syntax", &(start..start + line.len()), message)
            .help("rename the file so that it ends in .toml, or write it as YAML: `toolcrib: 1`")
    })
}

/// An unquoted reference inside brackets, where its own braces end the text.
fn unquoted_reference(text: &str, at: usize) -> Option<Diagnostic> {
    let line = SourceLine::at(text, at);
    let within = at - line.start;
    let brace = line.text[..boundary(line.text, within + 2)].rfind("${")?;
    let close = brace + line.text[brace..].find('}')?;
    // The parser stopped at this reference, or right after it.
    if within > close + 1 {
        return None;
    }
    let ends = |c: char| ",[]{}\"' ".contains(c);
    let before = &line.text[..brace];
    let start = before.rfind(ends).map_or(0, |end| end + 1);
    let after = &line.text[close + 1..];
    let end = close + 1 + after.find(|c: char| ",]} ".contains(c)).unwrap_or(after.len());
    let whole = &line.text[start..end];
    let message = format!("`{}` needs quotes here", shortened(whole));
    Some(
        Diagnostic::error("syntax", &line.span(start, end), message)
            .label("inside `[…]` and `{…}` a brace ends the text")
            .help(match whole.trim_matches(CURLY_QUOTES) {
                plain if plain == whole => format!("quote the reference: \"{whole}\""),
                plain => format!("replace the curly quotes with straight ones: \"{plain}\""),
            }),
    )
}

/// An invisible character before the text of this line or the previous one.
fn invisible_character(text: &str, at: usize) -> Option<Diagnostic> {
    let line = SourceLine::at(text, at);
    let lines = [Some(line), line.above(text)];
    let key = |line: SourceLine<'_>| line.text.split(':').next().and_then(InvisibleCharacter::find);
    let (line, invisible_character) =
        lines.into_iter().flatten().find_map(|line| Some((line, key(line)?)))?;
    let message =
        format!("the character {} is here, which YAML reads as text", invisible_character.name());
    let end = invisible_character.at + invisible_character.character.len_utf8();
    Some(
        Diagnostic::error("syntax", &line.span(invisible_character.at, end), message)
            .help("remove it, or replace it with a space"),
    )
}

/// `name:value` and `-name: value` in the previous line, which are texts and not pairs.
fn missing_blank(text: &str, at: usize) -> Option<Diagnostic> {
    let here = SourceLine::at(text, at);
    let line = here.above(text)?;
    let content = &line.text[line.content()..];
    let start = line.content();
    if let Some(rest) = content.strip_prefix('-')
        && rest.starts_with(|c: char| c.is_alphabetic())
    {
        let message = "a space is missing after the dash: this is not an entry of a list";
        return Some(
            Diagnostic::error("syntax", &line.span(start, line.text.len()), message)
                .help(format!("write `- {}`", shortened(rest))),
        );
    }
    let (key, value) = content.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_key = !key.is_empty() && key.chars().all(plain) && !key.contains("http");
    if !is_key || value.is_empty() || value.starts_with([' ', '/']) || content.contains(": ") {
        return None;
    }
    let message = format!("a space is missing after the colon of `{key}`");
    Some(
        Diagnostic::error("syntax", &line.span(start, line.text.len()), message)
            .help(format!("write `{key}: {}`", shortened(value))),
    )
}

/// A key whose indentation matches none of the mappings around it.
fn indentation(text: &str, at: usize) -> Option<Diagnostic> {
    let here = SourceLine::at(text, at);
    let (key, indent) = (here.key()?, here.content());
    // The open mappings, from the innermost, each with its last key.
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut line = here;
    while let Some(above) = line.above(text) {
        line = above;
        let content = above.content();
        if let Some(name) = above.key()
            && open.last().is_none_or(|(inner, _)| content < *inner)
        {
            open.push((content, name));
        }
        // A dash begins an entry, and keys of the entry are not further out.
        if above.indent() < content && open.last().is_some_and(|(inner, _)| above.indent() < *inner)
        {
            open.push((above.indent(), ""));
        }
    }
    if open.iter().any(|(level, name)| *level == indent && !name.is_empty()) {
        return None;
    }
    // A key that only tools have belongs beside the tool's other keys.
    let is_of_tool = |name: &str| TOOL_KEYS.contains(name);
    let beside_tool = is_of_tool(key) && open.iter().any(|(_, name)| is_of_tool(name));
    let nearest = open
        .iter()
        .filter(|(_, name)| !name.is_empty() && (!beside_tool || is_of_tool(name)))
        .min_by_key(|(level, _)| (level.abs_diff(indent), usize::MAX - level))?;
    let section = open.last().map_or("", |(_, name)| name);
    let owner = match section {
        "tools" => "the tool",
        "upstream" => "the server",
        _ => "the mapping",
    };
    let (level, sibling) = nearest;
    let above = match level {
        0 => "are not indented".to_owned(),
        spaces => format!("by {spaces}"),
    };
    let message =
        format!("`{key}` is indented by {indent} spaces, and the keys of {owner} above {above}");
    let help = match level {
        0 => format!("remove the spaces in front of `{key}` if it belongs beside `{sibling}`"),
        _ => format!("indent `{key}` by {level} spaces if it belongs beside `{sibling}`"),
    };
    let end = here.content() + key.len();
    Some(Diagnostic::error("syntax", &here.span(0, end), message).help(help))
}

/// A suggestion for an alias whose anchor is not defined above.
pub(super) fn unknown_alias(text: &str, at: usize, name: &str) -> String {
    let (above, below) = text.split_at(at);
    let known = anchors(above);
    if let Some(near) = toolcrib_search::near_names(name, known.iter().copied()).first() {
        return format!("did you mean `*{near}`?");
    }
    match known.as_slice() {
        [] if anchors(below).contains(&name) => {
            format!("`&{name}` is defined below: move it above its first use")
        }
        [] => format!("define it with `&{name}`, or quote the text: \"*{name}\""),
        [only] => format!("the only anchor above is `&{only}`: write `*{only}`"),
        several => {
            let shown: Vec<String> =
                several.iter().take(5).map(|known| format!("`*{known}`")).collect();
            format!("the anchors above are {}", shown.join(", "))
        }
    }
}

/// A suggestion for `<<` with something other than a mapping.
pub(super) fn merge_meant(text: &str, at: usize, written: Option<&str>) -> String {
    let known = anchors(&text[..at]);
    let meant = written.and_then(|written| {
        let near = toolcrib_search::near_names(written, known.iter().copied());
        near.first().copied()
    });
    match (meant, known.as_slice()) {
        (Some(meant), _) => format!("write `<<: *{meant}`, with the star of an alias"),
        (None, [only]) => format!("write `<<: *{only}`"),
        _ => "write `<<: *name`, with the name of an anchor (`&name`) above".to_owned(),
    }
}

/// The names of the anchors in a text, in order.
fn anchors(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('&') {
        let before = text[..at].chars().next_back();
        let name = &text[at + 1..];
        let end = name.find(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
        let name = &name[..end.unwrap_or(name.len())];
        let begins = before.is_none_or(|before| before.is_whitespace() || "[{,".contains(before));
        let line = SourceLine::at(text, at).text;
        if begins && !name.is_empty() && !line.trim_start().starts_with('#') {
            found.push(name);
        }
    }
    found
}
