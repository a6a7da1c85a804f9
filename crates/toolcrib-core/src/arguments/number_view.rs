//! Lets the validator compare the numbers of a tape exactly.
//!
//! The validator compares doubles, and a written number may lie between two of them. It only
//! compares with the numbers of the schema, so any double will do that has the same order relation
//! to each of them as the written number.

use std::borrow::Cow;
use std::cmp::Ordering;

use jsonschema::json::JsonNumber;
use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Number, exact};

use crate::arguments::json_view::Bounds;

/// A number of at most this many bytes and without an exponent has no more digits than a double
/// holds.
const SHORT: usize = 15;

/// How many bytes of a number one step of [`Bounds`] pays for.
const BYTES_PER_STEP: usize = 1024;

/// The largest whole number up to which every whole number is a double: 2^53.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The numbers that a schema compares others with.
#[derive(Debug, Default)]
pub struct SchemaNumbers {
    /// Each as the nearest double and as the exact number, in ascending order.
    sorted: Vec<(f64, serde_json::Number)>,
    /// Whether there is a `multipleOf` somewhere: it calculates, and does not only compare.
    divides: bool,
}

impl SchemaNumbers {
    /// Collects every number of a schema, whichever keyword it belongs to.
    pub fn of(schema: &Value) -> Self {
        let mut numbers = Self::default();
        // The meta-schemas, which any schema may refer to, compare with 0.
        numbers.sorted.push((0.0, 0.into()));
        numbers.collect(schema);
        numbers.sorted.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        numbers
    }

    fn collect(&mut self, schema: &Value) {
        match schema {
            Value::Number(number) => {
                // Adding 0 turns -0 into 0.
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

    /// A double with the same order relation to every number of the schema as the written number;
    /// `nearest` is the nearest double. `None` if there is none, or if comparing is not enough.
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

/// Whether calculating with the double gives the same result as with the written number: the
/// validator reads a double below 2^53 as its shortest decimal, and any other as its exact value.
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
    bounds: &'a Bounds<'a>,
}

impl<'a> NumberView<'a> {
    /// The number at a place; `None` if there is another value.
    pub(super) fn at(cursor: Cursor<'a>, bounds: &'a Bounds<'a>) -> Option<Self> {
        cursor.number().map(|number| Self { number, cursor, bounds })
    }

    /// The double to compare instead of the written number; `nearest` is the nearest double.
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
            // The parser refuses numbers that are not finite.
            Number::Float(value) => serde_json::Number::from_f64(value).unwrap_or_else(|| 0.into()),
        })
    }

    fn is_integer(&self) -> bool {
        match (self.number, self.cursor.kind()) {
            // The double may be whole although the number is not.
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
