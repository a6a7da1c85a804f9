//! Transfers indentation from the source and target to the style of the file.

use std::ops::Range;

use super::character_folding;
use super::lines::{self, Piece, eol_before, line_start, pieces, trim};
use super::tolerance::Level;

/// How many lines before and after a place show how the file indents.
const AROUND: usize = 64;

/// The indentation of a line, as a level reads it.
pub(super) fn indent(text: &[u8], level: Level) -> &[u8] {
    match std::str::from_utf8(text) {
        Ok(line) if level == Level::Folded => &text[..character_folding::indent_len(line)],
        _ => lines::indent(text),
    }
}

/// One step of indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndentUnit {
    Tab,
    Spaces(usize),
}

impl IndentUnit {
    /// Whether these blanks are one step.
    fn is(self, blanks: &[u8]) -> bool {
        match self {
            Self::Tab => blanks == b"\t",
            Self::Spaces(width) => {
                blanks.len() == width && blanks.iter().all(|blank| *blank == b' ')
            }
        }
    }
}

/// Maps the source's indentation to the file's.
pub(super) struct Reindenter<'a> {
    level: Level,
    /// The indentation of each visible line of the source, there and in the file.
    pairs: Vec<IndentMapping<'a>>,
    source_unit: Option<IndentUnit>,
    file_unit: Option<IndentUnit>,
}

struct IndentMapping<'a> {
    line: usize,
    source: &'a [u8],
    file: &'a [u8],
}

impl<'a> Reindenter<'a> {
    /// From lines that are equal one by one.
    pub(super) fn new(
        level: Level,
        source: &[Piece<'a>],
        file: &[Piece<'a>],
        target: &[Piece<'a>],
        body: &'a [u8],
        place: &Range<usize>,
    ) -> Self {
        let pairs: Vec<IndentMapping<'a>> = source
            .iter()
            .zip(file)
            .enumerate()
            .filter(|(_, (source, _))| !trim(source.text).is_empty())
            .map(|(line, (source, file))| IndentMapping {
                line,
                source: indent(source.text, level),
                file: indent(file.text, level),
            })
            .collect();
        let written = [source, target].map(|texts| unit_of(texts.iter().map(|text| text.text)));
        let file_unit = unit_of(file.iter().map(|text| text.text))
            .or_else(|| unit_of(surroundings(body, place).map(|line| line.text)));
        let [of_source, of_target] = written;
        // A line indented by one step in the file shows the source's step, unless that would be two steps.
        let told = pairs
            .iter()
            .filter(|pair| file_unit.is_some_and(|unit| unit.is(pair.file)))
            .filter(|pair| (2..=4).contains(&pair.source.len()))
            .find(|pair| pair.source.iter().all(|blank| *blank == b' '))
            .map(|pair| IndentUnit::Spaces(pair.source.len()));
        let source_unit = told.or(match (of_source, of_target) {
            (Some(IndentUnit::Spaces(one)), Some(IndentUnit::Spaces(other))) => {
                Some(IndentUnit::Spaces(one.min(other)))
            }
            (one, other) => one.or(other),
        });
        Self { level, pairs, source_unit, file_unit }
    }

    /// Whether the file is indented like the source.
    pub(super) fn is_same(&self) -> bool {
        self.pairs.iter().all(|pair| pair.source == pair.file)
    }

    /// The line of the target with the file's indentation; `at` is the line of the source that it replaces or precedes.
    pub(super) fn carry(&self, line: &[u8], at: usize) -> Vec<u8> {
        if trim(line).is_empty() {
            return line.to_vec();
        }
        let own = indent(line, self.level);
        [self.indent_for(own, at).as_slice(), &line[own.len()..]].concat()
    }

    fn indent_for(&self, own: &[u8], at: usize) -> Vec<u8> {
        let nearest = |pair: &&IndentMapping<'_>| pair.line.abs_diff(at);
        // The longest indentation of the source that this one begins with.
        let beginning = self
            .pairs
            .iter()
            .filter(|pair| own.starts_with(pair.source))
            .min_by_key(|pair| (usize::MAX - pair.source.len(), nearest(pair)));
        if let Some(pair) = beginning {
            return [pair.file, &self.convert(&own[pair.source.len()..])].concat();
        }
        // If it is indented less than every line of the source, reduce it equally in the file.
        let deeper = self
            .pairs
            .iter()
            .filter(|pair| pair.source.starts_with(own))
            .min_by_key(|pair| (pair.source.len(), nearest(pair)));
        if let Some(pair) = deeper {
            let less = self.convert(&pair.source[own.len()..]);
            let kept = pair.file.len().saturating_sub(less.len());
            return pair.file[..kept].to_vec();
        }
        own.to_vec()
    }

    /// Converts the source's units to the file's.
    fn convert(&self, blanks: &[u8]) -> Vec<u8> {
        let (Some(from), Some(to)) = (self.source_unit, self.file_unit) else {
            return blanks.to_vec();
        };
        let only = |byte| blanks.iter().all(|blank| *blank == byte);
        let (steps, rest) = match from {
            _ if from == to => return blanks.to_vec(),
            IndentUnit::Tab if only(b'\t') => (blanks.len(), 0),
            IndentUnit::Spaces(width) if only(b' ') => (blanks.len() / width, blanks.len() % width),
            _ => return blanks.to_vec(),
        };
        let mut converted = match to {
            IndentUnit::Tab => b"\t".repeat(steps),
            IndentUnit::Spaces(width) => b" ".repeat(width * steps),
        };
        converted.extend(std::iter::repeat_n(b' ', rest));
        converted
    }
}

/// The smallest step between consecutive visible lines; a tab if any line begins with one.
fn unit_of<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Option<IndentUnit> {
    let mut before: Option<usize> = None;
    let mut smallest: Option<usize> = None;
    for text in texts.filter(|text| !trim(text).is_empty()) {
        let own = lines::indent(text);
        if own.first() == Some(&b'\t') {
            return Some(IndentUnit::Tab);
        }
        if let Some(step) = before.map(|before| own.len().abs_diff(before))
            && step > 1
        {
            smallest = Some(smallest.map_or(step, |known| known.min(step)));
        }
        before = Some(own.len());
    }
    smallest.map(IndentUnit::Spaces)
}

/// The lines around a place, including its own.
fn surroundings<'a>(body: &'a [u8], place: &Range<usize>) -> impl Iterator<Item = Piece<'a>> {
    let mut start = place.start;
    for _ in 0..AROUND {
        let eol = eol_before(body, start);
        if eol == 0 {
            break;
        }
        start = line_start(body, start - eol);
    }
    let before = pieces(&body[start..place.start]).count();
    let inside = pieces(&body[place.clone()]).count();
    pieces(&body[start..]).take(before + inside + AROUND)
}
