//! Proves that an edit is correct: its problem is gone, there is no new one, and nothing else has
//! changed.

use std::collections::HashMap;

use super::edited;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Format, Node, NodeValue, parse};
use crate::manifest::load_listing_all;

/// A text before an edit.
pub(super) struct Proof<'t> {
    file: &'t str,
    format: Format,
    text: &'t str,
    tree: Option<Node>,
    problems: ProblemCounts,
}

/// How many problems of each kind and text there are.
type ProblemCounts = HashMap<(&'static str, String), usize>;

impl<'t> Proof<'t> {
    pub(super) fn new(file: &'t str, format: Format, text: &'t str, found: &[Diagnostic]) -> Self {
        Self { file, format, text, tree: tree(format, text), problems: counted(found) }
    }

    /// Whether all these edits together are correct.
    pub(super) fn holds(&self, found: &[&Diagnostic]) -> bool {
        let after = edited(self.text, found);
        let (Some(old), Some(new)) = (&self.tree, tree(self.format, &after)) else { return false };
        // An alias repeats the content of its anchor, so an edit there changes several places.
        if changes(old, &new) != found.len() {
            return false;
        }
        let left = counted(&load_listing_all(self.file, &after).diagnostics);
        let none_came = left
            .iter()
            .all(|(problem, count)| self.problems.get(problem).is_some_and(|had| had >= count));
        let mended = found.iter().fold(ProblemCounts::new(), |mut mended, found| {
            *mended.entry((found.code, found.message.clone())).or_default() += 1;
            mended
        });
        let gone = mended.iter().all(|(problem, count)| {
            let had = self.problems.get(problem).copied().unwrap_or_default();
            had.saturating_sub(left.get(problem).copied().unwrap_or_default()) >= *count
        });
        none_came && gone
    }
}

fn tree(format: Format, text: &str) -> Option<Node> {
    let mut findings = Findings::new(text);
    parse(format, &mut findings)
}

fn counted(found: &[Diagnostic]) -> ProblemCounts {
    let mut problems = ProblemCounts::new();
    for found in found {
        *problems.entry((found.code, found.message.clone())).or_default() += 1;
    }
    problems
}

/// The number of places in which two trees differ, by a key or a value.
fn changes(old: &Node, new: &Node) -> usize {
    match (&old.value, &new.value) {
        (NodeValue::Sequence(old), NodeValue::Sequence(new)) if old.len() == new.len() => {
            old.iter().zip(new).map(|(old, new)| changes(old, new)).sum()
        }
        (NodeValue::Mapping(old), NodeValue::Mapping(new)) if old.len() == new.len() => old
            .iter()
            .zip(new)
            .map(|(old, new)| usize::from(old.key != new.key) + changes(&old.node, &new.node))
            .sum(),
        (old_value, new_value) => {
            // Quotes do not change the text, but they are an edit of a scalar whose type was
            // guessed.
            usize::from(old_value != new_value || old.style != new.style)
        }
    }
}
