//! Detects mistakes that models make in copying. Each is tried, and reported only if the source would have been found
//! without it.

use std::ops::Range;

use crate::locate;
use crate::pattern::Pattern;

/// Files up to this size are searched completely for a corrected source; in a larger one, only the most similar part
/// is.
const SMALL: usize = 128 * 1024;

/// How many bytes before and after that part are searched.
const SLACK: usize = 4 * 1024;

/// A likely mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The lines are nested otherwise than in the file.
    Nesting,
    /// The lines begin with their numbers, as a listing shows them.
    LineNumbers,
    /// The text is wrapped in a code fence.
    CodeFence,
    /// Characters are written as HTML entities, or the reverse.
    Entities,
    /// Backslashes and quotes are escaped once too often or too rarely.
    Escapes,
    /// An ellipsis replaces lines.
    Elision,
    /// Upper and lower case differ: copy them from the file.
    Case,
    /// Letters of another alphabet look the same.
    LookAlikes,
}

impl Cause {
    /// Its name in data: `nesting`, `line_numbers`, `code_fence`, `entities`, `escapes`, `elision`,
    /// `case`, `look_alikes`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nesting => "nesting",
            Self::LineNumbers => "line_numbers",
            Self::CodeFence => "code_fence",
            Self::Entities => "entities",
            Self::Escapes => "escapes",
            Self::Elision => "elision",
            Self::Case => "case",
            Self::LookAlikes => "look_alikes",
        }
    }

    /// A sentence with what to do.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Nesting => {
                "Its lines are in the file, but nested otherwise: copy the indentation from there."
            }
            Self::LineNumbers => "Its lines begin with line numbers: send the text without them.",
            Self::CodeFence => "It is wrapped in a code fence: send the text without it.",
            Self::Entities => {
                "Characters and HTML entities differ (such as `<` and `&lt;`): write them as the \
                 file does."
            }
            Self::Escapes => {
                "Backslashes or quotes are escaped once too often or too rarely: write them as the \
                 file does."
            }
            Self::Elision => "It replaces lines with an ellipsis: send all of its lines.",
            Self::Case => "Upper and lower case differ: copy them from the file.",
            Self::LookAlikes => {
                "Some letters only look the same (such as a Cyrillic `а` for a Latin `a`): copy \
                 them from the file."
            }
        }
    }
}

/// The mistakes without which the source would have been found.
pub(super) fn diagnose(file: &[u8], source: &str, closest: Option<&Range<usize>>) -> Vec<Cause> {
    let part = match closest {
        _ if file.len() <= SMALL => 0..file.len(),
        Some(range) => {
            range.start.saturating_sub(SLACK)
                ..file.len().min(range.end + SLACK + source.len().min(SMALL))
        }
        None => return Vec::new(),
    };
    if source.len() > SMALL {
        return Vec::new();
    }
    let part = &file[part];
    let text = || String::from_utf8_lossy(part);
    let tries: [(Cause, &dyn Fn() -> bool); 7] = [
        (Cause::LineNumbers, &|| stands(part, without_numbers(source))),
        (Cause::CodeFence, &|| stands(part, without_fence(source))),
        (Cause::Entities, &|| {
            (source.contains('&') || part.contains(&b'&'))
                && stands(characters(&text()).as_bytes(), Some(characters(source)))
        }),
        (Cause::Escapes, &|| {
            stands(part, unescaped(source))
                || stands(part, escaped(source))
                || stands(part, escaped(source).map(|text| text.replace('\n', "\\n")))
        }),
        (Cause::Elision, &|| is_elided(part, source)),
        (Cause::Case, &|| stands(text().to_lowercase().as_bytes(), Some(source.to_lowercase()))),
        (Cause::LookAlikes, &|| stands(latin(&text()).as_bytes(), Some(latin(source)))),
    ];
    tries.into_iter().filter(|(_, tried)| tried()).map(|(cause, _)| cause).collect()
}

fn stands(part: &[u8], text: Option<String>) -> bool {
    text.is_some_and(|text| {
        Pattern::new(text.as_bytes()).is_some_and(|pattern| {
            locate::exact(part, text.as_bytes(), 1).is_some()
                || locate::drifted(part, &pattern, 1).is_some()
        })
    })
}

/// The source without line numbers and the sign after each.
fn without_numbers(source: &str) -> Option<String> {
    let mut before = 0;
    let stripped: Option<Vec<&str>> = source
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let line = line.trim_start().trim_start_matches('L');
            let rest = line.trim_start_matches(|char: char| char.is_ascii_digit());
            let number = &line[..line.len() - rest.len()];
            // Line numbers rise. A number too large for one is none.
            let number = number.parse().ok().filter(|number: &usize| *number > before);
            before = number.unwrap_or(before);
            let rest = rest.trim_start_matches(' ');
            let text = rest.strip_prefix(['|', ':', '→', '\t', '│', '-', '.', ')']);
            // `30-40`, `3.5` and `10:30` begin with no line number.
            let text = text.filter(|text| !text.starts_with(|char: char| char.is_ascii_digit()));
            // An empty line may consist of the number alone.
            text.or(rest.is_empty().then_some("")).filter(|_| number.is_some())
        })
        .collect();
    let lines = stripped.filter(|lines| !lines.is_empty())?;
    Some(lines.join("\n"))
}

fn without_fence(source: &str) -> Option<String> {
    let inside = source.trim().strip_prefix("```")?.strip_suffix("```")?;
    let (_, inside) = inside.split_once('\n')?;
    Some(inside.trim_end_matches('\n').to_owned())
}

/// The last entity is the one with which others are escaped.
const ENTITIES: [(&str, &str); 13] = [
    ("&lt;", "<"),
    ("&#60;", "<"),
    ("&gt;", ">"),
    ("&#62;", ">"),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#x22;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&nbsp;", " "),
    ("&#38;", "&"),
    ("&amp;", "&"),
];

/// The text with characters instead of entities, including doubly escaped ones.
fn characters(text: &str) -> String {
    let once = |text: String| {
        ENTITIES.iter().fold(text, |text, (entity, char)| {
            if text.contains(entity) { text.replace(entity, char) } else { text }
        })
    };
    once(once(text.to_owned()))
}

fn unescaped(source: &str) -> Option<String> {
    if !source.contains('\\') {
        return None;
    }
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars();
    while let Some(char) = chars.next() {
        match (char, char == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(char @ ('"' | '\'' | '\\' | '`' | '/' | '$')) => out.push(char),
                Some(char) => out.extend(['\\', char]),
                None => out.push('\\'),
            },
            (char, false) => out.push(char),
        }
    }
    Some(out)
}

fn escaped(source: &str) -> Option<String> {
    source.contains(['\\', '"', '\n']).then(|| source.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether the text before and after an ellipsis occurs, but not the ellipsis.
fn is_elided(part: &[u8], source: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let dots = lines.iter().position(|line| {
        let line = line.trim().trim_start_matches(['/', '#', '*', '-', ' ']);
        line.starts_with("...") || line.starts_with('…')
    });
    dots.is_some_and(|at| {
        let (before, after) = (lines[..at].join("\n"), lines[at + 1..].join("\n"));
        [before, after]
            .into_iter()
            .filter(|text| !text.trim().is_empty())
            .map(|text| stands(part, Some(text)))
            .reduce(|one, other| one && other)
            .unwrap_or(false)
    })
}

/// The text with Latin letters instead of lookalikes from other alphabets.
fn latin(text: &str) -> String {
    const ALIKE: [(char, char); 40] = [
        ('а', 'a'),
        ('е', 'e'),
        ('о', 'o'),
        ('р', 'p'),
        ('с', 'c'),
        ('х', 'x'),
        ('у', 'y'),
        ('і', 'i'),
        ('ј', 'j'),
        ('ѕ', 's'),
        ('һ', 'h'),
        ('ԁ', 'd'),
        ('ԛ', 'q'),
        ('ԝ', 'w'),
        ('А', 'A'),
        ('В', 'B'),
        ('Е', 'E'),
        ('К', 'K'),
        ('М', 'M'),
        ('Н', 'H'),
        ('О', 'O'),
        ('Р', 'P'),
        ('С', 'C'),
        ('Т', 'T'),
        ('Х', 'X'),
        ('І', 'I'),
        ('Ѕ', 'S'),
        ('Ј', 'J'),
        ('ο', 'o'),
        ('ν', 'v'),
        ('Α', 'A'),
        ('Β', 'B'),
        ('Ε', 'E'),
        ('Η', 'H'),
        ('Ι', 'I'),
        ('Κ', 'K'),
        ('Μ', 'M'),
        ('Ν', 'N'),
        ('Ο', 'O'),
        ('Τ', 'T'),
    ];
    text.chars()
        .map(|char| match char {
            _ if char.is_ascii() => char,
            // The wide forms of ASCII.
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(char) - 0xfee0).unwrap_or(char),
            _ => ALIKE.iter().find(|(other, _)| *other == char).map_or(char, |(_, latin)| *latin),
        })
        .collect()
}
