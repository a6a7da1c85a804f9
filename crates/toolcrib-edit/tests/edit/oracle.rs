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
    [Level::TrailingBlanks, Level::Indentation, Level::Folded].into_iter().find_map(|level| {
        let found = whole_lines(file, source, level);
        (!found.is_empty()).then_some((level, found))
    })
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

fn whole_lines(file: &str, source: &str, level: Level) -> Vec<usize> {
    let (mut file, mut source) = (lines(file), lines(source));
    for text in [&mut file, &mut source] {
        if text.len() > 1 && text.last().unwrap().0.is_empty() {
            text.pop();
        }
    }
    if file.len() == 1 && file[0].0.is_empty() && file[0].1.is_empty() {
        return Vec::new();
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
        return Vec::new();
    }
    let keys: Vec<String> = file.iter().map(|line| key(&line.0, level)).collect();
    let mut places = Vec::new();
    let mut at = 0;
    for (line, (text, end)) in file.iter().enumerate() {
        if keys[line..].starts_with(&wanted) {
            places.push(at);
        }
        at += text.len() + end.len();
    }
    places
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
                .replace(['\u{a0}', '\u{3000}', '\t', '\u{b}', '\u{c}'], " ");
            plain.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        }
    }
}
