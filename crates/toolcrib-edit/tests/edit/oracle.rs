//! A naive implementation of the same promises: every place is tried, every line is copied.

use toolcrib_edit::Level;
use unicode_normalization::UnicodeNormalization;

/// A line and its line end.
pub(crate) type Line = (String, String);

pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        let len = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        lines.push((rest[..at].to_owned(), rest[at..at + len].to_owned()));
        rest = &rest[at + len..];
    }
    lines.push((rest.to_owned(), String::new()));
    lines
}

/// The strictest level with a place, and where its places begin in the file.
pub(crate) fn places(file: &str, source: &str) -> Option<(Level, Vec<usize>)> {
    let exact = exact(file, source);
    if !exact.is_empty() {
        return Some((Level::Exact, exact));
    }
    let newlines = newlines(file, source);
    if !newlines.is_empty() {
        return Some((Level::Newlines, newlines));
    }
    for level in [Level::TrailingBlanks, Level::Indentation, Level::Folded] {
        let (found, alike) = whole_lines(file, source, level);
        if !found.is_empty() {
            return (!alike.is_empty()).then_some((level, alike));
        }
    }
    let found = parts(file, source);
    (!found.is_empty()).then_some((Level::Folded, found))
}

/// Where a part of a line is written otherwise than a source without line ends.
fn parts(file: &str, source: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let blanks = [' ', '\t', '\u{b}', '\u{c}'];
    let before = &source[..source.len() - source.trim_start_matches(blanks).len()];
    let after = &source[source.trim_end_matches(blanks).len()..];
    let is_indented = |edge: &str| !["", " "].contains(&edge);
    if source.contains(['\n', '\r']) || is_indented(before) || is_indented(after) {
        return places;
    }
    let is_blank = |char: char| [' ', '\t', '\u{b}', '\u{c}', '\u{a0}', '\u{3000}'].contains(&char);
    // Like `key`, but a blank at an edge stays.
    let flat = |text: &str| -> String {
        let edge = |is: bool| if is { " " } else { "" };
        let shown = text.trim_matches(|char| char == '\u{200b}');
        [
            edge(shown.starts_with(is_blank)),
            &key(text, Level::Folded),
            edge(shown.ends_with(is_blank)),
        ]
        .concat()
    };
    let wanted = flat(source);
    let mut line_start = 0;
    for (line, end) in lines(file) {
        let bounds: Vec<usize> = (0..=line.len()).filter(|at| line.is_char_boundary(*at)).collect();
        for (number, &from) in bounds.iter().enumerate() {
            for &to in &bounds[number + 1..] {
                let (before, part, after) = (&line[..from], &line[from..to], &line[to..]);
                let [before_shown, after_shown] =
                    [before, after].map(|text| text.replace('\u{200b}', ""));
                let first = part.chars().next().unwrap();
                let last = part.chars().next_back().unwrap();
                let whole_characters = ![first, last].contains(&'\u{200b}')
                    && !first.is_combining()
                    && !after_shown.starts_with(|char: char| char.is_combining());
                let whole_blanks = !(is_blank(first)
                    && (before_shown.ends_with(is_blank) || before_shown.trim().is_empty()))
                    && !(is_blank(last)
                        && (after_shown.starts_with(is_blank) || after_shown.trim().is_empty()));
                if whole_characters && whole_blanks && flat(part) == wanted {
                    places.push(line_start + from);
                }
            }
        }
        line_start += line.len() + end.len();
    }
    places
}

trait Combining {
    /// Whether the corpus and the properties use it as a part of a letter.
    fn is_combining(&self) -> bool;
}

impl Combining for char {
    fn is_combining(&self) -> bool {
        ['\u{301}', '\u{327}'].contains(self)
    }
}

fn splits(file: &str, at: usize) -> bool {
    file[..at].ends_with('\r') && file[at..].starts_with('\n')
}

fn exact(file: &str, source: &str) -> Vec<usize> {
    let starts = (0..file.len()).filter(|at| file.is_char_boundary(*at));
    starts
        .filter(|at| file[*at..].starts_with(source))
        .filter(|at| !splits(file, *at) && !splits(file, at + source.len()))
        .collect()
}

fn newlines(file: &str, source: &str) -> Vec<usize> {
    let normal = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    let source = normal(source);
    let starts = (0..file.len()).filter(|at| file.is_char_boundary(*at) && !splits(file, *at));
    starts.filter(|at| normal(&file[*at..]).starts_with(&source)).collect()
}

/// Where the lines occur, and where they also nest alike.
fn whole_lines(file: &str, source: &str, level: Level) -> (Vec<usize>, Vec<usize>) {
    let (mut file, mut source) = (lines(file), lines(source));
    for text in [&mut file, &mut source] {
        if text.len() > 1 && text.last().unwrap().0.is_empty() {
            text.pop();
        }
    }
    if file.len() == 1 && file[0].0.is_empty() && file[0].1.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut wanted: Vec<String> = source.iter().map(|line| key(&line.0, level)).collect();
    if level > Level::TrailingBlanks {
        while wanted.last().is_some_and(String::is_empty) {
            wanted.pop();
        }
        while wanted.first().is_some_and(String::is_empty) {
            wanted.remove(0);
        }
    }
    if wanted.iter().all(String::is_empty) {
        return (Vec::new(), Vec::new());
    }
    let keys: Vec<String> = file.iter().map(|line| key(&line.0, level)).collect();
    let (mut places, mut alike) = (Vec::new(), Vec::new());
    let mut at = 0;
    let blank = source.iter().take_while(|line| key(&line.0, level).is_empty()).count();
    let source = if level > Level::TrailingBlanks { &source[blank..] } else { &source[..] };
    for (line, (text, end)) in file.iter().enumerate() {
        if keys[line..].starts_with(&wanted) {
            places.push(at);
            if level < Level::Indentation || nests(&source[..wanted.len()], &file[line..]) {
                alike.push(at);
            }
        }
        at += text.len() + end.len();
    }
    (places, alike)
}

/// Whether lines nest alike: each is compared with each.
fn nests(source: &[Line], file: &[Line]) -> bool {
    let blanks = [' ', '\t', '\u{b}', '\u{c}'];
    let indent = |line: &str| line[..line.len() - line.trim_start_matches(blanks).len()].to_owned();
    let mut indents: Vec<(String, String)> = source
        .iter()
        .zip(file)
        .filter(|(line, _)| !line.0.trim_matches(blanks).is_empty())
        .map(|(line, there)| (indent(&line.0), indent(&there.0)))
        .collect();
    let begins_behind = indents.first().is_some_and(|it| it.0.is_empty() && !it.1.is_empty())
        && indents.iter().any(|it| !it.0.is_empty());
    let begins_with_a_blank = indents.first().is_some_and(|it| it.0 == " " && it.1.is_empty());
    if begins_behind || begins_with_a_blank {
        indents.remove(0);
    }
    let deeper = |one: &str, other: &str| {
        let plain = [one, other].iter().all(|it| it.trim_matches([' ', '\t']).is_empty());
        let known = plain && (one.starts_with(other) || other.starts_with(one));
        known.then(|| one.len().cmp(&other.len()))
    };
    indents.iter().all(|one| {
        indents.iter().all(|other| match (deeper(&one.0, &other.0), deeper(&one.1, &other.1)) {
            (Some(source), Some(file)) => source == file,
            _ => true,
        })
    })
}

/// The part of a line that a level compares.
pub(crate) fn key(line: &str, level: Level) -> String {
    let blanks = [' ', '\t', '\u{b}', '\u{c}'];
    match level {
        Level::TrailingBlanks => line.trim_end_matches(blanks).to_owned(),
        Level::Indentation => line.trim_matches(blanks).to_owned(),
        _ => {
            let shown: String = line.replace(['\u{200b}', '\u{feff}'], "").nfc().collect();
            let plain = shown
                .replace(['“', '”', '„'], "\"")
                .replace(['‘', '’'], "'")
                .replace(['–', '—', '−'], "-")
                .replace('…', "...")
                .replace(['\u{a0}', '\u{3000}', '\t', '\u{b}', '\u{c}'], " ");
            plain.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        }
    }
}
