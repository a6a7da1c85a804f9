//! jq's numbers: integers while they fit, else double precision. There are no big integers: a literal of the input that
//! neither type holds exactly stays as written until something is computed with it.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::ops::{Add, Mul, Neg, Sub};
use std::rc::Rc;

/// Significant digits that double precision always preserves.
const SAFE_DIGITS: usize = 15;
/// Floats from here on are written with an exponent; below, every whole number is exact enough.
const PLAIN_LIMIT: f64 = 1e17;

#[derive(Debug, Clone)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
    Literal(Rc<str>),
}

impl Number {
    /// Parses a JSON number.
    pub(super) fn read(text: &str) -> Self {
        if let Ok(integer) = text.parse::<i64>()
            && text != "-0"
        {
            return Self::Integer(integer);
        }
        let float = text.parse::<f64>().unwrap_or(f64::NAN);
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let digits = mantissa.trim_start_matches(['-', '0', '.']);
        let significant = digits.bytes().filter(u8::is_ascii_digit).count();
        if float.is_finite() && significant > SAFE_DIGITS {
            return Self::Literal(text.into());
        }
        Self::Float(float)
    }

    pub(super) fn as_f64(&self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "the meaning of an integer as a float")]
            Self::Integer(integer) => *integer as f64,
            Self::Float(float) => *float,
            Self::Literal(text) => text.parse().unwrap_or(f64::NAN),
        }
    }

    /// The integer, if it is one and fits.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(integer) => Some(*integer),
            Self::Float(float) => to_integer(*float),
            Self::Literal(_) => to_integer(self.as_f64()),
        }
    }

    pub(super) fn is_nan(&self) -> bool {
        matches!(self, Self::Float(float) if float.is_nan())
    }

    /// Writes it as JSON, which has neither NaN nor infinity: jq writes `null` and the largest number.
    pub(super) fn write(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Integer(integer) => write!(out, "{integer}"),
            Self::Literal(text) => write!(out, "{text}"),
            Self::Float(float) if float.is_nan() => write!(out, "null"),
            Self::Float(float) => {
                let float = float.clamp(f64::MIN, f64::MAX);
                if float.fract() == 0.0 && float.abs() < PLAIN_LIMIT {
                    write!(out, "{float:.0}")
                } else if (1e-5..PLAIN_LIMIT).contains(&float.abs()) {
                    write!(out, "{float}")
                } else {
                    write!(out, "{float:e}")
                }
            }
        };
    }

    /// `left ÷ right`; `None` for a zero divisor.
    pub(super) fn divide(&self, right: &Self) -> Option<Self> {
        if let (Self::Integer(left), Self::Integer(right)) = (self, right)
            && left.checked_rem(*right) == Some(0)
        {
            return left.checked_div(*right).map(Self::Integer);
        }
        let divisor = right.as_f64();
        (divisor != 0.0).then(|| Self::Float(self.as_f64() / divisor))
    }

    /// `left % right` of the whole parts, as in jq; `None` for a zero divisor.
    pub(super) fn remainder(&self, right: &Self) -> Option<Self> {
        if self.is_nan() || right.is_nan() {
            return Some(Self::Float(f64::NAN));
        }
        let (left, right) = (self.saturated(), right.saturated());
        // `MIN % -1` is zero; `wrapping_rem` handles that.
        (right != 0).then(|| Self::Integer(left.wrapping_rem(right)))
    }

    /// The whole part, at most the largest integer.
    fn saturated(&self) -> i64 {
        match self {
            Self::Integer(integer) => *integer,
            #[expect(clippy::cast_possible_truncation, reason = "saturating is what is meant")]
            other => other.as_f64() as i64,
        }
    }

    /// A total order for sorting, in which NaN comes first.
    pub(super) fn total_cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (Self::Integer(left), right) => cmp_integer(*left, right.as_f64()),
            (left, Self::Integer(right)) => cmp_integer(*right, left.as_f64()).reverse(),
            (left, right) => {
                let (left, right) = (left.as_f64(), right.as_f64());
                left.partial_cmp(&right).unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
            }
        }
    }
}

/// Compares exactly: going through floats would make neighbours equal, and an order that is not transitive breaks
/// sorting.
fn cmp_integer(left: i64, right: f64) -> Ordering {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if right.is_nan() || right < -BEYOND {
        return Ordering::Greater;
    }
    if right >= BEYOND {
        return Ordering::Less;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked above")]
    let whole = right.trunc() as i64;
    left.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&right.fract()).unwrap_or(Ordering::Equal))
}

fn to_integer(float: f64) -> Option<i64> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    let fits = float.fract() == 0.0 && (-BEYOND..BEYOND).contains(&float);
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    fits.then_some(float as i64)
}

/// Integer arithmetic where it fits, else double precision.
macro_rules! arithmetic {
    ($($operator:ident $method:ident $checked:ident $symbol:tt;)*) => {$(
        impl $operator for Number {
            type Output = Self;

            fn $method(self, right: Self) -> Self {
                if let (Self::Integer(left), Self::Integer(right)) = (&self, &right)
                    && let Some(result) = left.$checked(*right)
                {
                    return Self::Integer(result);
                }
                Self::Float(self.as_f64() $symbol right.as_f64())
            }
        }
    )*};
}

arithmetic! {
    Add add checked_add +;
    Sub sub checked_sub -;
    Mul mul checked_mul *;
}

impl Neg for Number {
    type Output = Self;

    fn neg(self) -> Self {
        match &self {
            Self::Integer(integer) if *integer != 0 => {
                integer.checked_neg().map_or_else(|| Self::Float(-self.as_f64()), Self::Integer)
            }
            Self::Integer(_) => self,
            _ => Self::Float(-self.as_f64()),
        }
    }
}
