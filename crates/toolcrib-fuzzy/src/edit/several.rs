//! Several edits of one file: all or nothing.

use std::borrow::Cow;
use std::{error, fmt};

use super::{Edit, Level, LineRange, Refusal};

/// A file with all its edits made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The file as it is now.
    pub bytes: Vec<u8>,
    /// What each edit did, in their order.
    pub steps: Vec<Step>,
}

/// What one edit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// At which level its source was found.
    pub level: Level,
    /// The lines it replaced, as they were numbered before it.
    pub lines: Vec<LineRange>,
    /// Its [`diff`](super::Change::diff).
    pub diff: String,
}

/// The edit that was refused; none was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its place among the edits, from 0 on.
    pub index: usize,
    /// How many edits there were.
    pub of: usize,
    /// Why.
    pub refusal: Refusal,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of > 1 {
            write!(f, "Edit {} of {}; none was made. ", self.index + 1, self.of)?;
        }
        self.refusal.fmt(f)
    }
}

// The refusal is part of what it says, so it is no source.
impl error::Error for Rejected {}

/// Makes the edits one after another, each in the file as the ones before it have left it.
///
/// # Errors
///
/// The first edit that is refused; then none is made.
///
/// ```
/// use toolcrib_fuzzy::edit::{Edit, apply};
///
/// let file = b"one\ntwo\n";
/// let edits = [Edit::new("one", "1"), Edit::new("1\ntwo", "1\n2")];
/// assert_eq!(apply(file, &edits).unwrap().bytes, b"1\n2\n");
///
/// let rejected = apply(file, &[Edit::new("one", "1"), Edit::new("three", "3")]).unwrap_err();
/// assert_eq!(rejected.index, 1);
/// ```
pub fn apply(file: &[u8], edits: &[Edit<'_>]) -> Result<Applied, Rejected> {
    let mut bytes = Cow::Borrowed(file);
    let mut steps = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let change =
            edit.find(&bytes).map_err(|refusal| Rejected { index, of: edits.len(), refusal })?;
        steps.push(Step {
            level: change.level(),
            lines: change.lines().to_vec(),
            diff: change.diff(&bytes),
        });
        bytes = Cow::Owned(change.apply(&bytes));
    }
    Ok(Applied { bytes: bytes.into_owned(), steps })
}
