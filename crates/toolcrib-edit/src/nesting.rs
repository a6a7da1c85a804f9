//! Whether the lines of a source nest as they do in the file.

use std::cmp::Ordering;

use super::lines::{Piece, pieces, trim};
use super::reindentation::indent;
use super::tolerance::Level;

/// Up to this many different indentations are compared each with each; of more, only neighbours.
const COMPARED: usize = 64;

/// How a line is indented in the source, and in the file.
type Indents<'a> = (&'a [u8], &'a [u8]);

/// Whether of any two lines, the one that is indented more in the source is also indented more at the place in the
/// file, and lines with equal indentation have equal indentation there. Tabs and spaces cannot be compared, so they
/// never differ; nor do form feeds and other blanks. Blank lines do not count.
///
/// A source may begin behind the indentation of its first line, or with one stray blank: then that line does not count
/// either.
pub(super) fn is_alike(source: &[Piece<'_>], place: &[u8], level: Level) -> bool {
    let visible = source.iter().zip(pieces(place)).filter(|(line, _)| !trim(line.text).is_empty());
    let mut indents: Vec<Indents<'_>> = visible
        .map(|(line, there)| (indent(line.text, level), indent(there.text, level)))
        .collect();
    if let [(first, there), others @ ..] = indents.as_slice() {
        let is_behind = first.is_empty() && others.iter().any(|(other, _)| !other.is_empty());
        if (is_behind && !there.is_empty()) || (*first == b" " && there.is_empty()) {
            indents.remove(0);
        }
    }
    indents.sort_unstable();
    indents.dedup();
    let reach = if indents.len() > COMPARED { 1 } else { COMPARED };
    indents.iter().enumerate().all(|(at, one)| {
        indents[at + 1..].iter().take(reach).all(|other| {
            let (source, file) = (compare(one.0, other.0), compare(one.1, other.1));
            source.is_none() || file.is_none() || source == file
        })
    })
}

/// Which indentation is deeper; `None` if they consist of different blanks, or of other blanks than tabs and spaces.
fn compare(one: &[u8], other: &[u8]) -> Option<Ordering> {
    let is_plain = |indent: &[u8]| indent.iter().all(|blank| matches!(blank, b' ' | b'\t'));
    let is_known = is_plain(one) && is_plain(other);
    let is_known = is_known && (one.starts_with(other) || other.starts_with(one));
    is_known.then(|| one.len().cmp(&other.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(source: &str, file: &str) -> bool {
        let source: Vec<_> = pieces(source.as_bytes()).collect();
        is_alike(&source, file.as_bytes(), Level::Indentation)
    }

    #[test]
    fn lines_nest_alike_whatever_the_width_of_a_step() {
        assert!(alike("a\n  b\n    c\nd", "\ta\n\t\tb\n\t\t\tc\n\td"));
        assert!(alike("a\n\n b", "  a\n\n      b"));
        assert!(alike("a\n        b", "    a\n        b"));
    }

    #[test]
    fn a_line_on_another_level_is_a_difference() {
        assert!(!alike("a\n  b\nc", "a\n  b\n  c"));
        assert!(!alike("a\n  b\n  c", "a\n  b\nc"));
        assert!(!alike("a\nb", "a\n  b"));
        assert!(!alike("  a\n    b\n    c", "  a\n      b\n    c"));
        let many: Vec<String> = (0..COMPARED * 2).map(|at| " ".repeat(at) + "x\n").collect();
        let many = many.concat();
        assert!(alike(&many, &many));
        assert!(!alike(&many, &many.replace("  x\n   x\n", "  x\n  x\n")));
    }

    #[test]
    fn tabs_and_spaces_beside_each_other_are_no_difference() {
        assert!(alike("  a\n  b", "\ta\n    b"));
        assert!(alike("\ta\n  b", "    a\n    b"));
    }

    #[test]
    fn a_source_may_begin_behind_the_first_indentation() {
        assert!(alike("a\n    b", "  a\n  b"));
        assert!(alike(" a\nb", "a\nb"));
        assert!(!alike("a\nb\nc", "  a\n    b\n  c"));
    }
}
