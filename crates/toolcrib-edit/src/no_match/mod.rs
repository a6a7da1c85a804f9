//! Explains a source that does not occur in the file: what was probably meant, and why it was not found.

mod already_made;
pub(super) mod cause;
pub(super) mod closest;

use std::fmt;
use std::ops::Range;

use self::cause::Cause;
use self::closest::Closest;
use crate::change::LineRange;

/// The source does not occur in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoMatch {
    /// The most similar part of the file, if any is similar.
    pub closest: Option<Closest>,
    /// Likely mistakes in the source: without them it would have been found.
    pub causes: Vec<Cause>,
    /// Where the target already occurs.
    pub already: Option<LineRange>,
    /// Whether the file is empty.
    pub empty_file: bool,
}

impl NoMatch {
    pub(super) fn new(file: &[u8], source: &str, target: &str) -> Self {
        let already = already_made::find(file, source, target);
        let range = closest::find(file, source);
        let causes = cause::diagnose(file, source, range.as_ref());
        let closest = range.map(|range| Closest::new(file, source, &range));
        Self { closest, causes, already, empty_file: file.is_empty() }
    }
}

impl NoMatch {
    /// The lines of the source are at `place`, but nest otherwise there.
    pub(super) fn nested(file: &[u8], source: &str, target: &str, place: &Range<usize>) -> Self {
        Self {
            closest: Some(Closest::new(file, source, place)),
            causes: vec![Cause::Nesting],
            already: already_made::find(file, source, target),
            empty_file: false,
        }
    }

    /// Whether the refusal names what is wrong.
    fn is_explained(&self) -> bool {
        !self.causes.is_empty() || self.already.is_some()
    }
}

impl fmt::Display for NoMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.empty_file {
            return f.write_str("The file is empty: there is nothing to replace.");
        }
        f.write_str("The source text is not in the file.")?;
        if let Some(lines) = self.already {
            write!(f, " The target text is already at {lines}: was this edit made before?")?;
        }
        for cause in &self.causes {
            write!(f, " {}", cause.describe())?;
        }
        let Some(closest) = &self.closest else {
            if self.is_explained() {
                return Ok(());
            }
            return f.write_str(
                " Nothing in the file is similar. Read the file again, because it may have \
                 changed, and copy the text from there.",
            );
        };
        write!(
            f,
            "\n\nMost similar: {} (`-` the file, `+` the source text):\n{}",
            closest.lines, closest.diff
        )?;
        match &closest.text {
            Some(text) => write!(f, "\nIf you mean this, send exactly this source text:\n{text}"),
            None => f.write_str("\nIf you mean this, read these lines and copy them."),
        }
    }
}
