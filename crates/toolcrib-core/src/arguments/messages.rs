//! The refusal of arguments of which some were coerced: it lists only what could not be coerced.

use std::collections::{HashMap, HashSet};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use toolcrib_json::Tape;

use super::coerce::Coercion;
use crate::arguments::validators::Problems;
use crate::arguments::violation::{Violations, child};

/// All coercions, each place once.
#[derive(Debug, Default)]
pub(crate) struct Coerced {
    list: Vec<Coercion>,
    /// JSON pointer → position in the list.
    places: HashMap<String, usize>,
}

impl Coerced {
    /// Adds a round. If a place is coerced again, the later round counts.
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

    /// The outermost coerced place that is or contains this one.
    fn holder<'p>(&self, pointer: &'p str) -> Option<&'p str> {
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
        ends.map(|end| &pointer[..end]).find(|outer| self.places.contains_key(*outer))
    }
}

/// The violations of the `original` arguments, and the coercions that helped.
///
/// `last` is the result of the coercions. If a coerced place is still invalid, the coercion did not
/// help, and the original error about that place is reported.
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

/// The JSON pointer of the error; for a missing property, that of the property.
fn place(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            child(pointer, property.as_str().unwrap_or_default())
        }
        _ => pointer.to_owned(),
    }
}
