//! What an edit must prove: its problem is gone, none has come, and nothing else says anything new.

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
    problems: Problems,
}

/// How many problems of each kind and text there are.
type Problems = HashMap<(&'static str, String), usize>;

impl<'t> Proof<'t> {
    pub(super) fn new(file: &'t str, format: Format, text: &'t str, found: &[Diagnostic]) -> Self {
        Self { file, format, text, tree: tree(format, text), problems: counted(found) }
    }

    /// Whether all these edits together are right.
    pub(super) fn holds(&self, found: &[&Diagnostic]) -> bool {
        let after = edited(self.text, found);
        let (Some(old), Some(new)) = (&self.tree, tree(self.format, &after)) else { return false };
        // An alias repeats what its anchor says: an edit of such a text changes more than one place.
        if changes(old, &new) != found.len() {
            return false;
        }
        let left = counted(&load_listing_all(self.file, &after).diagnostics);
        let none_came = left
            .iter()
            .all(|(problem, count)| self.problems.get(problem).is_some_and(|had| had >= count));
        let mended = found.iter().fold(Problems::new(), |mut mended, found| {
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

fn counted(found: &[Diagnostic]) -> Problems {
    let mut problems = Problems::new();
    for found in found {
        *problems.entry((found.code, found.message.clone())).or_default() += 1;
    }
    problems
}

/// In how many places two trees differ: keys with another name, values that are others.
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
            // Quotes change no text, and yet they are the edit of one whose type was a guess.
            usize::from(old_value != new_value || old.style != new.style)
        }
    }
}
