//! Edits that put a problem right, offered where only one edit would, and applied only if proven.

mod proof;
mod renames;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::fix::proof::Proof;
use crate::diagnostic::position::{Span, line_column, without_bom};
use crate::document::Format;
use crate::manifest::load_listing_all;

pub(crate) use renames::{only_slip, rename};

/// So many rounds: an edit may be what makes another one provable.
const ROUNDS_MAX: usize = 8;
/// So many edits of one file are tried one by one, where they do not hold all together.
const TRIES_MAX: usize = 100;

/// The only edit that puts a problem right: a piece of the text, and what stands there afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fix {
    /// The bytes that are replaced, of the text without a byte order mark.
    pub span: Span,
    /// What stands there afterwards.
    pub text: String,
    /// What the edit does, in the imperative: "rename `descripton` to `description`".
    pub what: String,
}

impl Fix {
    pub(crate) fn replace(span: &Span, text: impl Into<String>, what: impl Into<String>) -> Self {
        Self { span: span.clone(), text: text.into(), what: what.into() }
    }

    /// Puts quotes round a scalar that was written without; none if it is not on one line.
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

/// A text with everything put right that has only one right edit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fixed {
    /// The text afterwards, without a byte order mark.
    pub text: String,
    /// What was done, in the order of the text.
    pub applied: Vec<Applied>,
}

/// One edit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The line, from 1. No edit changes the number of lines.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The problem that is gone.
    pub code: &'static str,
    /// What was done, in the imperative.
    pub what: String,
}

/// Puts right what has only one right edit, and leaves every other byte as it is.
///
/// An edit is kept only if it is proven: loaded again, the text lacks the problem, has no new one,
/// and says the same as before everywhere else, behind aliases too. Doing it again changes nothing.
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
            // Each is right alone; that they are right together is proven like anything else.
            if proof.holds(&single) { single } else { single.into_iter().take(1).collect() }
        };
        if kept.is_empty() {
            break;
        }
        for found in &kept {
            let (Some(fix), (line, column)) =
                (&found.fix, line_column(&fixed.text, found.span.start))
            else {
                continue;
            };
            fixed.applied.push(Applied { line, column, code: found.code, what: fix.what.clone() });
        }
        fixed.text = edited(&fixed.text, &kept);
    }
    fixed.applied.sort_by_key(|applied| (applied.line, applied.column));
    fixed
}

/// The problems with an edit, in the order of the text, those left out that overlap an earlier one.
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

/// The text after the edits, which stand in its order and do not overlap.
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
