//! Comparison of values: jq's equality, jq's `<`, and a total order for sorting.

use std::cmp::Ordering;

use super::meter::tick;
use super::value::{Object, Text, Value};

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        if let (Self::Number(left), Self::Number(right)) = (self, other)
            && (left.is_nan() || right.is_nan())
        {
            return false;
        }
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

#[expect(
    clippy::non_canonical_partial_ord_impl,
    reason = "jq orders NaN in a way that no sorting survives: comparing and sorting differ"
)]
/// jq's `<`, where NaN is less than every number, including itself.
impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if let (Self::Number(left), Self::Number(_)) = (self, other)
            && left.is_nan()
        {
            return Some(Ordering::Less);
        }
        Some(self.cmp(other))
    }
}

/// A total order, for sorting.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        tick();
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => left.total_cmp(right),
            (Self::Text(left), Self::Text(right)) => left.as_str().cmp(right.as_str()),
            (Self::Array(left), Self::Array(right)) => left.items().cmp(right.items()),
            (Self::Object(left), Self::Object(right)) => cmp_objects(left, right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// First the sorted keys, then the values in the order of their keys.
fn cmp_objects(left: &Object, right: &Object) -> Ordering {
    let sorted = |object: &Object| {
        let mut members: Vec<(Text, Value)> =
            object.members().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        members.sort_unstable_by(|(left, _), (right, _)| left.as_str().cmp(right.as_str()));
        members
    };
    let (left, right) = (sorted(left), sorted(right));
    let keys = |members: &[(Text, Value)]| -> Vec<Text> {
        members.iter().map(|(key, _)| key.clone()).collect()
    };
    let (left_keys, right_keys) = (keys(&left), keys(&right));
    let by_keys = left_keys.iter().map(Text::as_str).cmp(right_keys.iter().map(Text::as_str));
    by_keys
        .then_with(|| left.iter().map(|(_, value)| value).cmp(right.iter().map(|(_, value)| value)))
}

impl Value {
    /// The order of kinds in jq: null, false, true, numbers, strings, arrays, objects.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(false) => 1,
            Self::Bool(true) => 2,
            Self::Number(_) => 3,
            Self::Text(_) => 4,
            Self::Array(_) => 5,
            Self::Object(_) => 6,
        }
    }
}
