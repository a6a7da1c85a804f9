//! The operators `+ - * / %` of jq values.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::rc::Rc;

use jaq_core::ops::Math;
use jaq_core::{Error, ValR};

use super::meter::{ExceededLimit, exceeded, tick};
use super::number::Number;
use super::value::Value;

/// The longest text that joining and repeating may make, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 20;

fn failed(left: Value, operator: Math, right: Value) -> ValR<Value> {
    Err(Error::math(left, operator, right))
}

/// Stops the query before a text of this length is made.
fn check_length(bytes: usize) {
    if bytes > MAX_TEXT_BYTES {
        exceeded(ExceededLimit::Memory);
    }
}

impl Add for Value {
    type Output = ValR<Self>;

    fn add(self, right: Self) -> ValR<Self> {
        tick();
        match (self, right) {
            (Self::Null, other) | (other, Self::Null) => Ok(other),
            (Self::Number(left), Self::Number(right)) => Ok(Self::Number(left + right)),
            (Self::Text(left), Self::Text(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                check_length(left.len() + right.len());
                Ok(Self::text([left, right].concat()))
            }
            (Self::Array(mut left), Self::Array(right)) => {
                let array = Rc::make_mut(&mut left);
                right.items().iter().for_each(|item| array.push(item.clone()));
                Ok(Self::Array(left))
            }
            (Self::Object(mut left), Self::Object(right)) => {
                Rc::make_mut(&mut left).extend(&right);
                Ok(Self::Object(left))
            }
            (left, right) => failed(left, Math::Add, right),
        }
    }
}

impl Sub for Value {
    type Output = ValR<Self>;

    fn sub(self, right: Self) -> ValR<Self> {
        tick();
        match (self, right) {
            (Self::Number(left), Self::Number(right)) => Ok(Self::Number(left - right)),
            (Self::Array(mut left), Self::Array(right)) => {
                let mut unwanted: Vec<&Self> = right.items().iter().collect();
                unwanted.sort_unstable();
                Rc::make_mut(&mut left).retain(|item| unwanted.binary_search(&item).is_err());
                Ok(Self::Array(left))
            }
            (left, right) => failed(left, Math::Sub, right),
        }
    }
}

impl Mul for Value {
    type Output = ValR<Self>;

    fn mul(self, right: Self) -> ValR<Self> {
        tick();
        match (self, right) {
            (Self::Number(left), Self::Number(right)) => Ok(Self::Number(left * right)),
            (Self::Text(text), Self::Number(count)) | (Self::Number(count), Self::Text(text)) => {
                let count = count.as_f64();
                if count.is_nan() || count <= 0.0 {
                    return Ok(Self::Null);
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "positive, and saturating is what is meant"
                )]
                let count = count.ceil() as usize;
                check_length(text.as_str().len().saturating_mul(count));
                Ok(Self::text(text.as_str().repeat(count)))
            }
            (Self::Object(mut left), Self::Object(right)) => {
                Rc::make_mut(&mut left).merge(&right);
                Ok(Self::Object(left))
            }
            (left, right) => failed(left, Math::Mul, right),
        }
    }
}

impl Div for Value {
    type Output = ValR<Self>;

    fn div(self, right: Self) -> ValR<Self> {
        tick();
        match (self, right) {
            (Self::Number(left), Self::Number(right)) => {
                left.divide(&right).map(Self::Number).ok_or_else(|| divisor_is_zero(left))
            }
            (Self::Text(text), Self::Text(separator)) => {
                let (text, separator) = (text.as_str(), separator.as_str());
                Ok(match (text.is_empty(), separator.is_empty()) {
                    (true, _) => Self::from_iter([]),
                    (_, true) => text.chars().map(|one| Self::text(one.to_string())).collect(),
                    _ => text.split(separator).map(Self::text).collect(),
                })
            }
            (left, right) => failed(left, Math::Div, right),
        }
    }
}

impl Rem for Value {
    type Output = ValR<Self>;

    fn rem(self, right: Self) -> ValR<Self> {
        tick();
        match (self, right) {
            (Self::Number(left), Self::Number(right)) => {
                left.remainder(&right).map(Self::Number).ok_or_else(|| divisor_is_zero(left))
            }
            (left, right) => failed(left, Math::Rem, right),
        }
    }
}

fn divisor_is_zero(left: Number) -> Error<Value> {
    let left = Value::Number(left);
    Error::str(format_args!("{left} cannot be divided because the divisor is zero"))
}

impl Neg for Value {
    type Output = ValR<Self>;

    fn neg(self) -> ValR<Self> {
        match self {
            Self::Number(number) => Ok(Self::Number(-number)),
            other => Err(Error::typ(other, "number")),
        }
    }
}
