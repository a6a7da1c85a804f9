//! Common simple schemes: the exact text, and four levels tried in turn.
//!
//! Written as such tools implement them, and as well as possible: each level needs exactly one place, the file's line
//! ends are restored, and blank edges are removed from both texts.

use crate::case::Case;

/// The exact source.
pub(crate) fn exact_only(case: &Case) -> Option<Vec<u8>> {
    let file = std::str::from_utf8(&case.file).ok()?;
    replaced(file, &case.source, &case.target, case.replace_all).map(String::into_bytes)
}

/// The exact source; with line ends as LF; without blanks at its edges; line by line without blanks.
pub(crate) fn four_levels(case: &Case) -> Option<Vec<u8>> {
    let Case { source, target, replace_all, .. } = case;
    let file = std::str::from_utf8(&case.file).ok()?;
    if source.is_empty() || source == target {
        return None;
    }
    let count = file.matches(source.as_str()).count();
    if count > 0 {
        return replaced(file, source, target, *replace_all).map(String::into_bytes);
    }
    let newlines = if file.contains("\r\n") { "\r\n" } else { "\n" };
    let normal = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    let (file, source, target) = (normal(file), normal(source), normal(target));
    let trimmed = || {
        (!source.trim().is_empty())
            .then(|| replaced(&file, source.trim(), target.trim(), *replace_all))?
    };
    replaced(&file, &source, &target, *replace_all)
        .or_else(trimmed)
        .or_else(|| line_by_line(&file, &source, &target))
        .map(|text| text.replace('\n', newlines).into_bytes())
}

fn replaced(file: &str, source: &str, target: &str, all: bool) -> Option<String> {
    if source.is_empty() || source == target {
        return None;
    }
    match file.matches(source).count() {
        0 => None,
        1 => Some(file.replacen(source, target, 1)),
        _ => all.then(|| file.replace(source, target)),
    }
}

fn line_by_line(file: &str, source: &str, target: &str) -> Option<String> {
    let lines: Vec<&str> = file.split('\n').collect();
    let wanted: Vec<&str> = source.trim_matches('\n').split('\n').map(str::trim).collect();
    if wanted.iter().all(|line| line.is_empty()) || wanted.len() > lines.len() {
        return None;
    }
    let mut places = (0..=lines.len() - wanted.len()).filter(|first| {
        lines[*first..].iter().zip(&wanted).all(|(line, wanted)| line.trim() == *wanted)
    });
    let (first, None) = (places.next()?, places.next()) else { return None };
    let after = &lines[first + wanted.len()..];
    let target: Vec<&str> = target.trim_matches('\n').split('\n').collect();
    Some([&lines[..first], &target, after].concat().join("\n"))
}
