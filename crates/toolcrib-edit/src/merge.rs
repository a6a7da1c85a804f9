//! The three-way merge: text that source and target share stays as in the file; the rest is written as in the target.

use std::ops::Range;

use super::character_folding;
use super::diff::{Hunk, hunks};
use super::lines::{Piece, eol_at, eol_before, eol_near, line_end, line_start, pieces, trim};
use super::locate::Found;
use super::pattern::Pattern;
use super::reindentation::{Reindenter, indent};
use super::tolerance::Level;

/// A replacement for a part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The bytes of the file that are removed.
    pub range: Range<usize>,
    /// The bytes that replace them.
    pub text: Vec<u8>,
}

/// Replaces an exact place with the target, using the file's line ends.
pub(super) fn exact(file: &[u8], source: &[u8], target: &[u8], place: &Range<usize>) -> Splice {
    let source_lines: Vec<_> = pieces(source).collect();
    let target_lines: Vec<_> = pieces(target).collect();
    let only_ends_differ = source_lines.len() == target_lines.len()
        && source_lines.iter().zip(&target_lines).all(|(one, other)| one.text == other.text);
    let text = if target_lines.len() == 1 || only_ends_differ {
        // An edit that changes only line ends means to change them.
        target.to_vec()
    } else {
        let lines =
            MergeLines { source: source_lines.clone(), file: source_lines, target: target_lines };
        lines.merged(eol_near(file, place.start), |line, _| line.to_vec())
    };
    Splice { range: place.clone(), text }
}

/// Replaces a part of a line. Blanks at its edges that source and target share stay as in the file.
pub(super) fn within_line(
    file: &[u8],
    mut source: &[u8],
    mut target: &[u8],
    place: &Range<usize>,
) -> Splice {
    let mut place = place.clone();
    let blanks = |text: &[u8]| std::str::from_utf8(text).map_or(0, character_folding::indent_len);
    let before = blanks(source);
    if before > 0 && target.starts_with(&source[..before]) {
        place.start += blanks(&file[place.clone()]);
        (source, target) = (&source[before..], &target[before..]);
    }
    let shown =
        |text: &[u8]| std::str::from_utf8(text).map_or(text.len(), character_folding::shown_len);
    let after = &source[shown(source)..];
    if !after.is_empty() && target.ends_with(after) {
        place.end = place.start + shown(&file[place.clone()]);
        target = &target[..target.len() - after.len()];
        source = &source[..source.len() - after.len()];
    }
    exact(file, source, target, &place)
}

/// Replaces a place found at a later level; `None` if its lines do not equal the source's after all. `body` is the
/// searched text; bytes before `floor` were already replaced.
pub(super) fn drifted(
    body: &[u8],
    pattern: &Pattern<'_>,
    target: &[u8],
    found: &Found,
    place: &Range<usize>,
    floor: usize,
) -> Option<Splice> {
    let level = found.level;
    let mut lines = MergeLines {
        source: pattern.pieces[found.pieces.clone()].to_vec(),
        file: Vec::new(),
        target: pieces(target).collect(),
    };
    let mut place = place.clone();
    if level > Level::Newlines {
        let edges = LineEdges { pattern, found, body, floor };
        edges.widen(&mut place, &mut lines);
        edges.terminate(&mut place, &mut lines);
    }
    lines.file = pieces(&body[place.clone()]).collect();
    if !lines.are_equal(level) {
        return None;
    }
    let eol = eol_near(body, place.start);
    let text = if level < Level::Indentation {
        lines.merged(eol, |line, _| line.to_vec())
    } else {
        let indents =
            Reindenter::new(level, &lines.source, &lines.file, &lines.target, body, &place);
        let as_written = || lines.merged(eol, |line, _| line.to_vec());
        if indents.is_same() {
            as_written()
        } else {
            // A target that is already indented like the file is not converted, unless nothing would change then.
            Some(())
                .filter(|()| lines.target_is_indented_as_the_file(level))
                .map(|()| as_written())
                .filter(|text| *text != body[place.clone()])
                .unwrap_or_else(|| lines.merged(eol, |line, at| indents.carry(line, at)))
        }
    };
    Some(Splice { range: place, text })
}

/// The lines of the three texts; source and file have the same number.
struct MergeLines<'a> {
    source: Vec<Piece<'a>>,
    file: Vec<Piece<'a>>,
    target: Vec<Piece<'a>>,
}

impl MergeLines<'_> {
    /// The target's lines; those that also occur in the source are taken from the file. `eol` ends a new line where no
    /// old line shows how. `write` gets a line of the target and the line of the source that it replaces or precedes.
    fn merged(&self, eol: &[u8], write: impl Fn(&[u8], usize) -> Vec<u8>) -> Vec<u8> {
        let source: Vec<&[u8]> = self.source.iter().map(|piece| piece.text).collect();
        let target: Vec<&[u8]> = self.target.iter().map(|piece| piece.text).collect();
        let mut out = Vec::with_capacity(target.iter().map(|text| text.len() + 2).sum());
        for Hunk { old, new, equal } in hunks(&source, &target) {
            for (offset, at) in new.enumerate() {
                let stands_for = (old.start + offset).min(old.end.saturating_sub(1));
                let stands_for = stands_for.max(old.start);
                if equal {
                    out.extend_from_slice(self.file[stands_for].text);
                } else {
                    out.extend_from_slice(&write(target[at], stands_for));
                }
                if at + 1 == target.len() {
                    break;
                }
                let own = self.target[at].eol;
                if own == b"\r" && !equal {
                    // A lone CR within a text is a character if the file's lines do not end with it.
                    out.extend_from_slice(own);
                    continue;
                }
                // An inserted line ends like the one before it.
                let like = if old.is_empty() { old.start.saturating_sub(1) } else { stands_for };
                let ends = self.file.get(like).map_or(&b""[..], |piece| piece.eol);
                let ends = [ends, eol, own].into_iter().find(|ends| !ends.is_empty());
                out.extend_from_slice(ends.unwrap_or(b"\n"));
            }
        }
        out
    }

    fn are_equal(&self, level: Level) -> bool {
        self.source.len() == self.file.len()
            && self.source.iter().zip(&self.file).all(|(source, file)| match level {
                Level::Exact | Level::Newlines => source.text == file.text,
                Level::TrailingBlanks => {
                    super::lines::trim_end(source.text) == super::lines::trim_end(file.text)
                }
                Level::Indentation => trim(source.text) == trim(file.text),
                Level::Folded => {
                    match (std::str::from_utf8(source.text), std::str::from_utf8(file.text)) {
                        (Ok(source), Ok(file)) => {
                            character_folding::folds_to(file, &character_folding::fold(source))
                        }
                        _ => false,
                    }
                }
            })
    }

    /// Whether the target is indented like the file and unlike the source: lines that it shares with the source are
    /// indented as in the file, and no line is indented less.
    fn target_is_indented_as_the_file(&self, level: Level) -> bool {
        let trimmed = |lines: &[Piece<'_>]| -> Vec<Vec<u8>> {
            lines.iter().map(|line| trim(line.text).to_vec()).collect()
        };
        let mut moved = false;
        for Hunk { old, new, .. } in
            hunks(&trimmed(&self.source), &trimmed(&self.target)).iter().filter(|hunk| hunk.equal)
        {
            for (at, target) in old.clone().zip(&self.target[new.clone()]) {
                if trim(target.text).is_empty() {
                    continue;
                }
                let [source, file, target] =
                    [&self.source[at], &self.file[at], target].map(|line| indent(line.text, level));
                if source != file && target == source {
                    return false;
                }
                moved |= target == file && source != file;
            }
        }
        let shown = |lines: &'_ [Piece<'_>]| -> Vec<Vec<u8>> {
            lines
                .iter()
                .filter(|line| !trim(line.text).is_empty())
                .map(|line| indent(line.text, level).to_vec())
                .collect()
        };
        let outermost = shown(&self.file).into_iter().min_by_key(Vec::len).unwrap_or_default();
        moved && shown(&self.target).iter().all(|own| own.starts_with(&outermost))
    }
}

/// The edges of whole lines.
struct LineEdges<'a> {
    pattern: &'a Pattern<'a>,
    found: &'a Found,
    body: &'a [u8],
    floor: usize,
}

impl<'a> LineEdges<'a> {
    /// Extends a place by the file's blank lines around it, as far as the source has some there; further blank lines of
    /// the source are removed from the target.
    fn widen(&self, place: &mut Range<usize>, lines: &mut MergeLines<'a>) {
        let pieces = &self.found.pieces;
        let (mut first, mut last) = (pieces.start, pieces.end);
        while first > 0 {
            let eol = eol_before(self.body, place.start);
            let start = line_start(self.body, place.start - eol);
            if eol == 0
                || start < self.floor
                || !self.is_blank(&self.body[start..place.start - eol])
            {
                break;
            }
            place.start = start;
            first -= 1;
        }
        while last < self.pattern.lines {
            let start = place.end + eol_at(self.body, place.end);
            if start == place.end || start == self.body.len() {
                break;
            }
            let end = line_end(self.body, start);
            if !self.is_blank(&self.body[start..end]) {
                break;
            }
            place.end = end;
            last += 1;
        }
        lines.source = self.pattern.pieces[first..last].to_vec();
        for _ in 0..first {
            if lines.target.len() > 1 && self.is_blank(lines.target[0].text) {
                lines.target.remove(0);
            }
        }
        for _ in last..self.pattern.lines {
            // The empty piece after the last line end is not a line.
            let tail = usize::from(self.pattern.is_terminated() && ends_with_eol(&lines.target));
            if lines.target.len() > 1 + tail
                && self.is_blank(lines.target[lines.target.len() - 1 - tail].text)
            {
                lines.target.remove(lines.target.len() - 1 - tail);
                if let Some(last) = lines.target.last_mut() {
                    last.eol = b"";
                }
            }
        }
    }

    /// Includes the end of the last line, if the source has it.
    fn terminate(&self, place: &mut Range<usize>, lines: &mut MergeLines<'a>) {
        if !self.pattern.is_terminated() {
            return;
        }
        let eol = eol_at(self.body, place.end);
        let target_ends = ends_with_eol(&lines.target);
        if eol == 0 {
            // The file's last line has no line end and keeps none.
            if target_ends {
                lines.target.pop();
            }
        } else if target_ends || (lines.target.len() == 1 && lines.target[0].text.is_empty()) {
            place.end += eol;
            lines.source.push(Piece { text: b"", eol: b"" });
        }
        // Otherwise the target's last line has no end and whole lines are replaced: the file's end stays.
    }

    fn is_blank(&self, text: &[u8]) -> bool {
        trim(text).is_empty()
            || (self.found.level == Level::Folded
                && std::str::from_utf8(text).is_ok_and(character_folding::is_blank))
    }
}

fn ends_with_eol(lines: &[Piece<'_>]) -> bool {
    lines.len() > 1 && lines[lines.len() - 1].text.is_empty()
}
