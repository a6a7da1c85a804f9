//! Several edits of one file: all or none.

use std::borrow::Cow;
use std::{error, fmt};

use super::lines::LineCounter;
use super::{Change, Edit, Level, LineRange, Refusal};

/// A file with all its edits made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdits {
    /// The file with the edits.
    pub bytes: Vec<u8>,
    /// The effect of each edit, in order.
    pub steps: Vec<EditEffect>,
}

/// The effect of one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditEffect {
    /// The level at which its source was found.
    pub level: Level,
    /// The lines it replaced, numbered before the edit.
    pub lines: Vec<LineRange>,
    /// Its [`diff`](super::Change::diff).
    pub diff: String,
}

/// The refused edit; none was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedEdit {
    /// Its index among the edits, from 0.
    pub index: usize,
    /// The number of edits.
    pub of: usize,
    /// The reason.
    pub refusal: Refusal,
    /// Whether it could have been made in the original file: an earlier edit removed the text that it quotes, or added
    /// a second occurrence.
    pub stood_before: bool,
}

impl fmt::Display for RejectedEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of > 1 {
            write!(f, "Edit {} of {}; none was made. ", self.index + 1, self.of)?;
        }
        if self.stood_before {
            f.write_str(
                "Each edit is made in the result of the previous ones, and one of them changed \
                 the text that this one quotes: quote the changed text, or combine both edits. ",
            )?;
        }
        self.refusal.fmt(f)
    }
}

// The refusal is part of the message, so it is not a `source`.
impl error::Error for RejectedEdit {}

/// Makes the edits one after another, each in the result of the previous ones. Only [`near_line`](Edit::near_line)
/// refers to the original file, because that is what the caller has seen.
///
/// # Errors
///
/// The first refused edit; then none is made.
///
/// ```
/// use toolcrib_edit::{Edit, apply};
///
/// let file = b"one\ntwo\n";
/// let edits = [Edit::new("one", "1"), Edit::new("1\ntwo", "1\n2")];
/// assert_eq!(apply(file, &edits).unwrap().bytes, b"1\n2\n");
///
/// let rejected = apply(file, &[Edit::new("one", "1"), Edit::new("three", "3")]).unwrap_err();
/// assert_eq!(rejected.index, 1);
/// ```
pub fn apply(file: &[u8], edits: &[Edit<'_>]) -> Result<AppliedEdits, RejectedEdit> {
    let mut bytes = Cow::Borrowed(file);
    let mut steps = Vec::with_capacity(edits.len());
    let mut near: Vec<Option<usize>> = edits.iter().map(|edit| edit.near_line).collect();
    for (index, edit) in edits.iter().enumerate() {
        let here = Edit { near_line: near[index], ..*edit };
        let change = here.find(&bytes).map_err(|refusal| RejectedEdit {
            index,
            of: edits.len(),
            stood_before: index > 0 && edit.find(file).is_ok(),
            refusal,
        })?;
        let later = &mut near[index + 1..];
        if later.iter().any(Option::is_some) {
            let moves = moves(&bytes, &change);
            later.iter_mut().flatten().for_each(|line| *line = moved(*line, &moves));
        }
        steps.push(EditEffect {
            level: change.level(),
            lines: change.lines().to_vec(),
            diff: change.diff(&bytes),
        });
        bytes = Cow::Owned(change.apply(&bytes));
    }
    Ok(AppliedEdits { bytes: bytes.into_owned(), steps })
}

/// For each splice: its lines, and how many line ends it removed and added.
fn moves(file: &[u8], change: &Change) -> Vec<(LineRange, usize, usize)> {
    let counter = LineCounter::new(file);
    let ends = |splice: &super::Splice| {
        (counter.ends_in(&file[splice.range.clone()]), counter.ends_in(&splice.text))
    };
    change
        .lines()
        .iter()
        .zip(change.splices())
        .map(|(lines, splice)| {
            let (gone, come) = ends(splice);
            (*lines, gone, come)
        })
        .collect()
}

/// The new number of a line after a change; for a replaced line, that of the replacement's beginning or end.
fn moved(line: usize, moves: &[(LineRange, usize, usize)]) -> usize {
    let mut now = line;
    for (lines, gone, come) in moves.iter().take_while(|(lines, ..)| lines.first <= line) {
        now = if lines.last < line {
            now + come - gone
        } else {
            now - (line - lines.first) + (line - lines.first).min(*come)
        };
    }
    now
}
