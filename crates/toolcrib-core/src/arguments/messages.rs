//! Why arguments are refused after some of them were coerced: only what could not be coerced is wrong.

use std::collections::{HashMap, HashSet};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use toolcrib_json::Tape;

use super::coerce::Coercion;
use crate::arguments::validators::Problems;
use crate::arguments::violation::{Violations, child};

/// What was coerced in all rounds, each place once.
#[derive(Debug, Default)]
pub(crate) struct Coerced {
    list: Vec<Coercion>,
    /// JSON pointer → position in the list.
    places: HashMap<String, usize>,
}

impl Coerced {
    /// Adds a round. A place that is coerced again becomes what the later round says.
    pub(crate) fn add(&mut self, round: Vec<Coercion>) {
        for coercion in round {
            if let Some(earlier) = self.places.get(&coercion.pointer) {
                self.list[*earlier] = coercion;
            } else {
                self.places.insert(coercion.pointer.clone(), self.list.len());
                self.list.push(coercion);
            }
        }
    }

    pub(crate) fn list(&self) -> &[Coercion] {
        &self.list
    }

    /// The outermost coerced place that a place is or lies in.
    fn holder<'p>(&self, pointer: &'p str) -> Option<&'p str> {
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
        ends.map(|end| &pointer[..end]).find(|outer| self.places.contains_key(*outer))
    }
}

/// What is wrong with the `original` arguments, and the coercions that helped.
///
/// `last` is what coercion made of them. Where something in a coerced place is still wrong, the
/// coercion was no help and the first complaint about that place stands.
pub(crate) fn refusal(
    original: &Tape<'_>,
    first: &Problems<'_>,
    last: &Tape<'_>,
    found: &Problems<'_>,
    done: &Coerced,
    schema: &Value,
) -> (Violations, Vec<Coercion>) {
    let complained: HashSet<_> = first.errors.iter().map(place).collect();
    let mut failed = HashSet::new();
    let mut left = Vec::new();
    for error in &found.errors {
        let place = place(error);
        match done.holder(&place) {
            None => left.push(error),
            Some(holder) => {
                failed.insert(holder.to_owned());
                if !complained.contains(holder) {
                    left.push(error);
                }
            }
        }
    }
    let first_complaints = first.errors.iter().filter(|error| failed.contains(&place(error)));
    let violations = Violations::of(first_complaints, original, schema, false).and(Violations::of(
        left,
        last,
        schema,
        found.stopped,
    ));
    let helped = done.list.iter().filter(|coercion| {
        done.holder(&coercion.pointer).is_none_or(|holder| !failed.contains(holder))
    });
    (violations, helped.cloned().collect())
}

/// The JSON pointer of what is wrong; that of the property where one is missing.
fn place(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            child(pointer, property.as_str().unwrap_or_default())
        }
        _ => pointer.to_owned(),
    }
}
