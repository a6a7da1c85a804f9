//! The source stands nowhere: what was meant, and why it was not found.

use std::fmt;

use super::already;
use super::cause::{self, Cause};
use super::change::LineRange;
use super::closest::{self, Closest};

/// The source stands nowhere in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The part of the file that is most like it, if any is like it.
    pub closest: Option<Closest>,
    /// What is likely to be wrong with it: with this put right, it would have been found.
    pub causes: Vec<Cause>,
    /// Where the target stands already.
    pub already: Option<LineRange>,
    /// Whether the file holds nothing.
    pub empty_file: bool,
}

impl Miss {
    pub(super) fn new(file: &[u8], source: &str, target: &str) -> Self {
        let already = already::find(file, source, target);
        let range = closest::find(file, source);
        let causes = cause::diagnose(file, source, range.as_ref());
        let closest = range.map(|range| Closest::new(file, source, &range));
        Self { closest, causes, already, empty_file: file.is_empty() }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.empty_file {
            return f.write_str("The file is empty: there is nothing to replace.");
        }
        f.write_str("The source text is not in the file.")?;
        if let Some(lines) = self.already {
            write!(f, " The target text stands at {lines} already: was this edit made before?")?;
        }
        for cause in &self.causes {
            write!(f, " {}", cause.describe())?;
        }
        let Some(closest) = &self.closest else {
            return f.write_str(
                " Nothing in the file is like it. Read the file again, it may have changed, and \
                 copy the text from there.",
            );
        };
        write!(
            f,
            "\n\nMost like it: {} (`-` what the file says, `+` what the source text says):\n{}",
            closest.lines, closest.diff
        )?;
        match &closest.text {
            Some(text) => write!(f, "\nIf that is meant, send as source text exactly:\n{text}"),
            None => f.write_str("\nIf that is meant, read these lines and copy them."),
        }
    }
}
