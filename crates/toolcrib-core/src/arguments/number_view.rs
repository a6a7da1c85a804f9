//! Lets the validator compare the numbers of a tape exactly.
//!
//! The validator compares doubles, and a written number may lie between two of them. It only ever
//! compares with the numbers of the schema, so that any double does which is to each of those as the
//! written number is: less, equal or greater.

use std::borrow::Cow;
use std::cmp::Ordering;

use jsonschema::json::JsonNumber;
use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Number, exact};

use crate::arguments::json_view::Bounds;

/// A number of at most so many bytes and without an exponent has no more digits than a double keeps.
const SHORT: usize = 15;

/// The bytes of a number that looking at it closely covers with one step of [`Bounds`].
const BYTES_PER_STEP: usize = 1024;

/// The largest whole number up to which every whole number is a double: 2^53.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The numbers that a schema compares others with.
#[derive(Debug, Default)]
pub struct SchemaNumbers {
    /// Each as the nearest double and exactly, in ascending order.
    sorted: Vec<(f64, serde_json::Number)>,
    /// Whether there is a `multipleOf` somewhere: it calculates, and does not only compare.
    divides: bool,
}

impl SchemaNumbers {
    /// Collects every number of a schema, whichever keyword it belongs to.
    pub fn of(schema: &Value) -> Self {
        let mut numbers = Self::default();
        // The schemas of JSON Schema itself, which any schema may refer to, compare with 0.
        numbers.sorted.push((0.0, 0.into()));
        numbers.collect(schema);
        numbers.sorted.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        numbers
    }

    fn collect(&mut self, schema: &Value) {
        match schema {
            Value::Number(number) => {
                // Adding 0 makes -0 the zero it equals.
                let nearest = number.as_f64().unwrap_or_default() + 0.0;
                self.sorted.push((nearest, number.clone()));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                self.divides |= members.contains_key("multipleOf");
                members.values().for_each(|value| self.collect(value));
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    /// A double that is to every number of the schema as the written number is, `nearest` being the
    /// nearest one. `None` if there is none, or if that would not do.
    fn stand_in(&self, written: &str, nearest: f64) -> Option<f64> {
        if self.divides && !is_exact(written, nearest) {
            return None;
        }
        let (below, above) = (nearest.next_down(), nearest.next_up());
        let start = self.sorted.partition_point(|(number, _)| *number < below);
        let near = || self.sorted[start..].iter().take_while(|(number, _)| *number <= above);
        let exactly: Vec<_> =
            near().map(|(_, number)| exact::compare(written, &number.to_string())).collect();
        [nearest, below, above].into_iter().find(|double| {
            near().zip(&exactly).all(|((_, number), order)| *order == compare(*double, number))
        })
    }
}

/// Whether calculating with the double is calculating with the written number: the validator takes a
/// double below 2^53 for the shortest decimal it is nearest to, and any other for its own value.
fn is_exact(written: &str, nearest: f64) -> bool {
    if nearest.abs() < EXACT_WHOLE {
        exact::is_kept(written)
    } else {
        exact::compare(written, &format!("{nearest:.0}")) == Some(Ordering::Equal)
    }
}

/// How the validator compares a double with a number of the schema.
fn compare(double: f64, number: &serde_json::Number) -> Option<Ordering> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let Some(whole) = whole else { return double.partial_cmp(&number.as_f64()?) };
    #[expect(clippy::cast_possible_truncation, reason = "values beyond stay beyond all u64")]
    let floor = double.floor() as i128;
    let fraction = if double > double.floor() { Ordering::Greater } else { Ordering::Equal };
    Some(floor.cmp(&whole).then(fraction))
}

/// A number in a tape.
#[derive(Debug, Clone, Copy)]
pub struct NumberView<'a> {
    number: Number,
    cursor: Cursor<'a>,
    bounds: &'a Bounds,
}

impl<'a> NumberView<'a> {
    /// The number at a place; `None` if there is another value.
    pub(super) fn at(cursor: Cursor<'a>, bounds: &'a Bounds) -> Option<Self> {
        cursor.number().map(|number| Self { number, cursor, bounds })
    }

    /// A double to compare in place of the written number, of which `nearest` is the nearest one.
    fn stand_in(&self, nearest: f64) -> f64 {
        let written = self.cursor.source();
        if written.len() <= SHORT && !written.contains(['e', 'E']) {
            return nearest;
        }
        let steps = u32::try_from(written.len() / BYTES_PER_STEP).unwrap_or(u32::MAX);
        self.bounds.take(steps);
        self.bounds.numbers().stand_in(written, nearest).unwrap_or_else(|| {
            self.bounds.note_inexact(self.cursor);
            nearest
        })
    }
}

impl JsonNumber for NumberView<'_> {
    fn as_u64(&self) -> Option<u64> {
        match self.number {
            Number::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    fn as_i64(&self) -> Option<i64> {
        match self.number {
            Number::Unsigned(value) => value.try_into().ok(),
            Number::Negative(value) => Some(value),
            Number::Float(_) => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is meant")]
        let nearest = match self.number {
            Number::Unsigned(value) => value as f64,
            Number::Negative(value) => value as f64,
            Number::Float(value) => value,
        };
        Some(self.stand_in(nearest))
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.cursor.source())
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(match self.number {
            Number::Unsigned(value) => value.into(),
            Number::Negative(value) => value.into(),
            // The parser has refused what is not finite.
            Number::Float(value) => serde_json::Number::from_f64(value).unwrap_or_else(|| 0.into()),
        })
    }

    fn is_integer(&self) -> bool {
        match (self.number, self.cursor.kind()) {
            // The double may be whole where the number is not.
            (Number::Float(value), Kind::Float) => {
                value.fract() == 0.0 && exact::is_whole(self.cursor.source())
            }
            _ => true,
        }
    }

    fn is_written_as_integer(&self) -> bool {
        self.cursor.kind().is_integer()
    }
}
