//! Parsing numbers: checked and converted in one pass, unless they are fractional or very large.

use super::Parser;
use crate::error::ParseError;
use crate::exact;
use crate::tape::{Kind, Node};

/// The largest whole number up to which every whole number is a double: 2^53.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

/// As many digits always fit into a `u64`.
const SAFE_DIGITS: usize = 19;

impl Parser<'_> {
    #[inline(never)]
    pub(super) fn number(&mut self) -> Result<(), Box<ParseError>> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        let digits = start + usize::from(negative);
        let (_, rest) = self.bytes.split_at(digits);
        let mut magnitude = 0_u64;
        let mut len = 0;
        while let Some(digit @ b'0'..=b'9') = rest.get(len) {
            // Meaningless if there are too many digits: then it is not used.
            magnitude = magnitude.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            len += 1;
        }
        self.at = digits + len;
        if len == 0 {
            return Err(self.unexpected("a digit"));
        }
        if len > 1 && rest[0] == b'0' {
            self.at = digits + 1;
            return Err(self.error("a number cannot begin with 0"));
        }
        let (kind, payload) = if let Some(b'.' | b'e' | b'E') = self.peek() {
            self.fraction_and_exponent()?;
            self.float(start)?
        } else if negative {
            match 0_i64.checked_sub_unsigned(magnitude) {
                Some(value) if value < 0 && len <= SAFE_DIGITS => {
                    (Kind::Negative, value.cast_unsigned())
                }
                _ => (Kind::WideInteger, self.double(start)?.to_bits()),
            }
        } else if len <= SAFE_DIGITS {
            (Kind::Unsigned, magnitude)
        } else {
            match self.text[start..self.at].parse() {
                Ok(value) => (Kind::Unsigned, value),
                Err(_) => (Kind::WideInteger, self.double(start)?.to_bits()),
            }
        };
        self.push(Node::new(kind, start..self.at, payload));
        Ok(())
    }

    fn fraction_and_exponent(&mut self) -> Result<(), Box<ParseError>> {
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Box<ParseError>> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    fn float(&mut self, start: usize) -> Result<(Kind, u64), Box<ParseError>> {
        let value = self.double(start)?;
        let is_whole = value.fract() == 0.0 && value.abs() <= EXACT_WHOLE;
        // The double may be whole where the number is not: `1.00000000000000000001`, `1e-400`.
        let written = &self.text[start..self.at];
        // So does 2^53 stand for 2^53 + 1.
        let is_exact = || value.abs() < EXACT_WHOLE || exact::is_kept(written);
        let kind = if is_whole && exact::is_whole(written) && is_exact() {
            self.has_integral_float = true;
            Kind::IntegralFloat
        } else {
            Kind::Float
        };
        Ok((kind, value.to_bits()))
    }

    /// The nearest double of what stands between `start` and here.
    fn double(&mut self, start: usize) -> Result<f64, Box<ParseError>> {
        let value = self.text[start..self.at].parse().unwrap_or(f64::INFINITY);
        if value.is_finite() {
            return Ok(value);
        }
        self.at = start;
        Err(self.error("the number is too large"))
    }
}
