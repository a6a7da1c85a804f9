//! The variants of an argument vector: optional arguments may be absent, and values listed in a
//! schema may be options or commands of the program.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::document::Node;
use crate::manifest::program::argv::Word;
use crate::manifest::program::input;
use crate::manifest::program::interpreters;
use crate::manifest::program::known;
use crate::manifest::program::options::{Entry, entries};
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Reference, Template};

/// The maximum number of combinations. If there are more, each choice is checked alone.
const MOST: usize = 64;

/// The value of an argument in a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentChoice<'s> {
    /// An unknown value.
    Any,
    Absent,
    Listed(&'s str),
}

type Combination<'s> = Vec<(&'s str, ArgumentChoice<'s>)>;

/// Findings that only the variants of a vector show.
#[derive(Debug, Default)]
pub(super) struct VariantFindings {
    /// Errors about values that would choose a program or be run.
    pub(super) unsafe_values: Vec<Diagnostic>,
    /// Whether a program runs what it reads on standard input.
    pub(super) program_from_stdin: bool,
    /// What may run values from standard input.
    pub(super) input_run: Option<String>,
}

/// Checks every variant of a vector; `known` are the findings about the vector itself.
pub(super) fn check(
    list: &Node,
    words: &[Word<'_>],
    scope: &Scope,
    known: &[Diagnostic],
) -> VariantFindings {
    let mut shown = VariantFindings::default();
    let all = entries(list, words);
    for combination in combinations(&choices(&all, scope)) {
        let variant = variant(&all, scope, &combination);
        let read = known::read(&variant, scope);
        let mut found = Vec::new();
        interpreters::check(&variant, &read, scope, &mut found);
        shown.program_from_stdin |= read.runs_stdin || interpreters::read_stdin(&variant, &read);
        if shown.input_run.is_none() {
            shown.input_run = input::runs_input(&variant, scope);
        }
        found.extend(read.unsafe_values);
        // Findings about the vector itself are reported first, without those of variants.
        for mut diagnostic in found.into_iter().filter(|_| known.is_empty()) {
            let same = |one: &Diagnostic| one.span == diagnostic.span;
            if shown.unsafe_values.iter().any(same) {
                continue;
            }
            diagnostic.message.push_str(&described(&combination));
            shown.unsafe_values.push(diagnostic);
        }
    }
    shown
}

/// The arguments that can make a difference, with their choices.
fn choices<'s>(
    all: &'s [Entry<'_, '_>],
    scope: &'s Scope,
) -> BTreeMap<&'s str, Vec<ArgumentChoice<'s>>> {
    let mut choices: BTreeMap<&str, Vec<ArgumentChoice<'_>>> = BTreeMap::new();
    let mut add = |name: &'s str, choice| {
        let known = choices.entry(name).or_insert_with(|| vec![ArgumentChoice::Any]);
        if !known.contains(&choice) {
            known.push(choice);
        }
    };
    for entry in all {
        if let Some(condition) = entry.condition {
            add(condition, ArgumentChoice::Absent);
        }
        for reference in entry.words.iter().flat_map(|word| word.template.references()) {
            let Reference::Arg(name) = reference else { continue };
            let Some(known) = scope.arguments.get(name) else { continue };
            if known.optional {
                add(name, ArgumentChoice::Absent);
            }
            for text in &known.listed {
                add(name, ArgumentChoice::Listed(text));
            }
        }
    }
    choices
}

/// The combinations of choices, the smallest first, without the empty one.
fn combinations<'s>(choices: &BTreeMap<&'s str, Vec<ArgumentChoice<'s>>>) -> Vec<Combination<'s>> {
    let count = choices.values().try_fold(1_usize, |count, of| count.checked_mul(of.len()));
    let chosen = |of: &[ArgumentChoice<'s>]| -> Vec<ArgumentChoice<'s>> {
        of.iter().copied().filter(|choice| *choice != ArgumentChoice::Any).collect()
    };
    if count.is_none_or(|count| count > MOST) {
        let each = choices
            .iter()
            .flat_map(|(name, of)| chosen(of).into_iter().map(move |choice| vec![(*name, choice)]));
        return each.collect();
    }
    let mut all: Vec<Combination<'s>> = vec![Vec::new()];
    for (name, of) in choices {
        let chosen = chosen(of);
        let more: Vec<_> = all
            .iter()
            .flat_map(|before| {
                chosen
                    .iter()
                    .map(move |choice| before.iter().copied().chain([(*name, *choice)]).collect())
            })
            .collect();
        all.extend(more);
    }
    all.remove(0);
    all.sort_by_key(Vec::len);
    all
}

/// The words of the vector for a combination of choices.
fn variant<'n>(
    all: &[Entry<'_, 'n>],
    scope: &Scope,
    combination: &Combination<'_>,
) -> Vec<Word<'n>> {
    let choice = |name: &str| {
        combination
            .iter()
            .find(|(of, _)| *of == name)
            .map_or(ArgumentChoice::Any, |(_, choice)| *choice)
    };
    let mut words = Vec::new();
    for entry in all {
        if entry.condition.is_some_and(|name| choice(name) == ArgumentChoice::Absent) {
            continue;
        }
        for word in &entry.words {
            let mut pieces: Vec<Piece> = Vec::new();
            let mut dropped = false;
            for piece in &word.template.pieces {
                let piece = match piece {
                    Piece::Reference(Reference::Arg(name)) => match choice(name) {
                        ArgumentChoice::Any => piece.clone(),
                        // A condition can be false although the argument is present.
                        ArgumentChoice::Absent => {
                            dropped |= scope.arguments.get(name).is_some_and(|it| it.optional);
                            piece.clone()
                        }
                        ArgumentChoice::Listed(text) => Piece::Literal(text.to_owned()),
                    },
                    _ => piece.clone(),
                };
                match (pieces.last_mut(), &piece) {
                    (Some(Piece::Literal(before)), Piece::Literal(text)) => before.push_str(text),
                    _ => pieces.push(piece),
                }
            }
            if !dropped {
                words.push(Word { template: Template { pieces }, node: word.node });
            }
        }
    }
    words
}

fn described(combination: &Combination<'_>) -> String {
    let parts = combination.iter().map(|(name, choice)| match choice {
        ArgumentChoice::Listed(text) => format!("where `{name}` is `{text}`"),
        ArgumentChoice::Any | ArgumentChoice::Absent => format!("where `{name}` is absent"),
    });
    format!(", {}", parts.collect::<Vec<_>>().join(" and "))
}
