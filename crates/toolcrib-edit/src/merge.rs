//! The three-way merge: what the source and the target share stays as the file has it, the rest is
//! written as the target has it.

use std::ops::Range;

use super::diff::{Hunk, hunks};
use super::fold;
use super::indent::{Indents, indent};
use super::level::Level;
use super::lines::{Piece, eol_at, eol_before, eol_near, line_end, line_start, pieces, trim};
use super::locate::Found;
use super::pattern::Pattern;

/// What is written instead of a part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The bytes of the file that go.
    pub range: Range<usize>,
    /// The bytes that come instead.
    pub text: Vec<u8>,
}

/// Writes an exact place: the target as it is, but for how its lines end.
pub(super) fn exact(file: &[u8], source: &[u8], target: &[u8], place: &Range<usize>) -> Splice {
    let source_lines: Vec<_> = pieces(source).collect();
    let target_lines: Vec<_> = pieces(target).collect();
    let only_ends_differ = source_lines.len() == target_lines.len()
        && source_lines.iter().zip(&target_lines).all(|(one, other)| one.text == other.text);
    let text = if target_lines.len() == 1 || only_ends_differ {
        // Whoever changes nothing but lines' ends means them.
        target.to_vec()
    } else {
        let lines =
            Lines { source: source_lines.clone(), file: source_lines, target: target_lines };
        lines.merged(eol_near(file, place.start), |line, _| line.to_vec())
    };
    Splice { range: place.clone(), text }
}

/// Writes a place of a later level; `None` if its lines are not the source's after all. `body` is
/// what was searched, and what is before `floor` was written to already.
pub(super) fn drifted(
    body: &[u8],
    pattern: &Pattern<'_>,
    target: &[u8],
    found: &Found,
    place: &Range<usize>,
    floor: usize,
) -> Option<Splice> {
    let level = found.level;
    let mut lines = Lines {
        source: pattern.pieces[found.pieces.clone()].to_vec(),
        file: Vec::new(),
        target: pieces(target).collect(),
    };
    let mut place = place.clone();
    if level > Level::Newlines {
        let edges = Edges { pattern, found, body, floor };
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
        let indents = Indents::new(level, &lines.source, &lines.file, &lines.target, body, &place);
        let as_written = || lines.merged(eol, |line, _| line.to_vec());
        if indents.is_same() {
            as_written()
        } else {
            // A target that is indented as the file is already needs no carrying over, unless
            // nothing would come of it.
            Some(())
                .filter(|()| lines.target_is_indented_as_the_file(level))
                .map(|()| as_written())
                .filter(|text| *text != body[place.clone()])
                .unwrap_or_else(|| lines.merged(eol, |line, at| indents.carry(line, at)))
        }
    };
    Some(Splice { range: place, text })
}

/// The lines of the three texts; source and file have as many.
struct Lines<'a> {
    source: Vec<Piece<'a>>,
    file: Vec<Piece<'a>>,
    target: Vec<Piece<'a>>,
}

impl Lines<'_> {
    /// The target's lines, those that the source has too as the file has them. `eol` ends a new line
    /// where there is no old one that tells how; `write` is given a line of the target and the line
    /// of the source it stands for or before.
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
                    // A lone CR within a text is a character, where it is not how lines end.
                    out.extend_from_slice(own);
                    continue;
                }
                // An inserted line ends as the one before it does.
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
                        (Ok(source), Ok(file)) => fold::folds_to(file, &fold::fold(source)),
                        _ => false,
                    }
                }
            })
    }

    /// Whether the target is indented as the file is, and not as the source: lines that it shares
    /// with the source stand where the file has them, and no line further out.
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

/// What whole lines need at their edges.
struct Edges<'a> {
    pattern: &'a Pattern<'a>,
    found: &'a Found,
    body: &'a [u8],
    floor: usize,
}

impl<'a> Edges<'a> {
    /// Takes the file's blank lines around a place in, as far as the source has some there; what
    /// the source has beyond them is taken off the target.
    fn widen(&self, place: &mut Range<usize>, lines: &mut Lines<'a>) {
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
            // The empty piece after a last line's end is no line.
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

    /// Takes the end of the last line in, if the source has it.
    fn terminate(&self, place: &mut Range<usize>, lines: &mut Lines<'a>) {
        if !self.pattern.is_terminated() {
            return;
        }
        let eol = eol_at(self.body, place.end);
        let target_ends = ends_with_eol(&lines.target);
        if eol == 0 {
            // The file's last line has no end, and keeps none.
            if target_ends {
                lines.target.pop();
            }
        } else if target_ends || (lines.target.len() == 1 && lines.target[0].text.is_empty()) {
            place.end += eol;
            lines.source.push(Piece { text: b"", eol: b"" });
        }
        // Else the target's last line has no end and whole lines are written: the file's stays.
    }

    fn is_blank(&self, text: &[u8]) -> bool {
        trim(text).is_empty()
            || (self.found.level == Level::Folded
                && std::str::from_utf8(text).is_ok_and(fold::is_blank))
    }
}

fn ends_with_eol(lines: &[Piece<'_>]) -> bool {
    lines.len() > 1 && lines[lines.len() - 1].text.is_empty()
}
