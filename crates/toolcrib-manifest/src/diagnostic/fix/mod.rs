//! Fixes: edits that are offered only if they are unambiguous, and applied only if they are proven
//! correct.

mod proof;
mod renames;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::fix::proof::Proof;
use crate::diagnostic::position::{Lines, Span, without_bom};
use crate::document::Format;
use crate::manifest::load_listing_all;

pub(crate) use renames::{only_slip, rename};

/// The maximum number of rounds: an edit may make another one provable.
const ROUNDS_MAX: usize = 8;
/// How many edits of a file are tried one by one, after the proof of all edits together has failed.
const TRIES_MAX: usize = 100;

/// An unambiguous fix of a problem: a range of the text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fix {
    /// The byte range that is replaced, in the text without a byte order mark.
    pub span: Span,
    /// The replacement.
    pub text: String,
    /// A description of the edit in the imperative: "rename `descripton` to `description`".
    pub what: String,
}

impl Fix {
    pub(crate) fn replace(span: &Span, text: impl Into<String>, what: impl Into<String>) -> Self {
        Self { span: span.clone(), text: text.into(), what: what.into() }
    }

    /// Quotes a plain scalar; `None` if it is not on one line.
    pub(crate) fn quote(span: &Span, raw: &str) -> Option<Self> {
        if raw.is_empty() || raw.contains(|c: char| c.is_control()) {
            return None;
        }
        let quoted = if raw.contains(['"', '\\']) {
            format!("'{}'", raw.replace('\'', "''"))
        } else {
            format!("\"{raw}\"")
        };
        Some(Self::replace(span, quoted, format!("quote `{raw}`")))
    }
}

/// A text with all unambiguous fixes applied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fixed {
    /// The fixed text, without a byte order mark.
    pub text: String,
    /// The edits, in the order of the text.
    pub applied: Vec<AppliedFix>,
}

/// An applied edit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedFix {
    /// The line, from 1. No edit changes the number of lines.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The code of the fixed problem.
    pub code: &'static str,
    /// A description of the edit, in the imperative.
    pub what: String,
}

/// Applies the fixes that are unambiguous, and leaves every other byte unchanged.
///
/// An edit is kept only if it is proven correct: when loaded again, the text lacks the problem, has
/// no new one, and has the same meaning everywhere else, including aliases. Fixing a fixed text
/// changes nothing.
///
/// ```
/// let text = "toolcrib: 1\ntools:\n  - name: uptime\n    descripton: Show how long it runs. # since boot\n    \
///             version: 1.10\n    run: {argv: [uptime]}\n";
/// let fixed = toolcrib_manifest::fix_str("uptime.yaml", text);
/// assert_eq!(
///     fixed.text,
///     text.replace("descripton", "description").replace("1.10", "\"1.10\"")
/// );
/// assert_eq!(fixed.applied[0].what, "rename `descripton` to `description`");
/// ```
pub fn fix_str(file: &str, text: &str) -> Fixed {
    let mut fixed = Fixed { text: without_bom(text).to_owned(), applied: Vec::new() };
    let format = Format::of(file);
    for _ in 0..ROUNDS_MAX {
        let found = load_listing_all(file, &fixed.text).diagnostics;
        let offered = apart(&found);
        if offered.is_empty() {
            break;
        }
        let proof = Proof::new(file, format, &fixed.text, &found);
        let kept = if proof.holds(&offered) {
            offered
        } else {
            let one_by_one = offered.into_iter().take(TRIES_MAX);
            let single: Vec<_> = one_by_one.filter(|found| proof.holds(&[*found])).collect();
            // Each edit is correct alone; that they are correct together has to be proven as well.
            if proof.holds(&single) { single } else { single.into_iter().take(1).collect() }
        };
        if kept.is_empty() {
            break;
        }
        // Counting the lines before each place anew would take the square of the time.
        let lines = Lines::new(&fixed.text);
        for found in &kept {
            let (Some(fix), (line, column)) = (&found.fix, lines.line_column(found.span.start))
            else {
                continue;
            };
            fixed.applied.push(AppliedFix {
                line,
                column,
                code: found.code,
                what: fix.what.clone(),
            });
        }
        fixed.text = edited(&fixed.text, &kept);
    }
    fixed.applied.sort_by_key(|applied| (applied.line, applied.column));
    fixed
}

/// The problems with a fix, in the order of the text, except those whose edits overlap an earlier
/// one.
fn apart(found: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut offered: Vec<(&Diagnostic, &Fix)> =
        found.iter().filter_map(|found| Some((found, found.fix.as_ref()?))).collect();
    offered.sort_by_key(|(_, fix)| (fix.span.start, fix.span.end));
    let mut end = 0;
    offered.retain(|(_, fix)| {
        let free = fix.span.start >= end && !fix.span.is_empty();
        if free {
            end = fix.span.end;
        }
        free
    });
    offered.into_iter().map(|(found, _)| found).collect()
}

/// The text after these edits, which are in the order of the text and do not overlap.
fn edited(text: &str, found: &[&Diagnostic]) -> String {
    let mut after = String::with_capacity(text.len() + 16 * found.len());
    let mut from = 0;
    for fix in found.iter().filter_map(|found| found.fix.as_ref()) {
        after.push_str(text.get(from..fix.span.start).unwrap_or_default());
        after.push_str(&fix.text);
        from = fix.span.end;
    }
    after.push_str(text.get(from..).unwrap_or_default());
    after
}
