//! Reading object keys as the key type of a map.

use std::str::FromStr;

use serde::de::{Deserializer, Error as _, Expected, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::ReadError;
use crate::parse::parse;
use crate::tape::{Cursor, Number};

/// A key, as the type of a map's keys is read from it.
pub(super) struct MapKey<'de>(pub(super) Cursor<'de>);

impl<'de> MapKey<'de> {
    /// The number that the key spells, as JSON spells numbers.
    fn number(&self) -> Option<Number> {
        let text = self.0.plain()?;
        let tape = parse(text).ok()?;
        // No blanks around it.
        if tape.root().source() == text { tape.root().number() } else { None }
    }

    fn read_number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let place = self.0;
        let read = match self.number() {
            Some(Number::Unsigned(value)) => visitor.visit_u64(value),
            Some(Number::Negative(value)) => visitor.visit_i64(value),
            Some(Number::Float(value)) => visitor.visit_f64(value),
            None => Err(self.wrong_type(&visitor)),
        };
        place.here(read)
    }

    /// A whole number that may be too wide for a [`Number`].
    fn wide<T: FromStr>(&self) -> Option<T> {
        self.number().and(self.0.plain())?.parse().ok()
    }

    #[cold]
    fn wrong_type(&self, expected: &dyn Expected) -> ReadError {
        let text = self.0.as_str().unwrap_or_default();
        ReadError::invalid_type(Unexpected::Str(&text), expected).at(self.0)
    }
}

/// Methods for what is read from the number a key spells.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.read_number(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for MapKey<'de> {
    type Error = ReadError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.deserialize_str(visitor)
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.wide() {
            Some(value) => self.0.here(visitor.visit_i128(value)),
            None => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.wide() {
            Some(value) => self.0.here(visitor.visit_u128(value)),
            None => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0.plain() {
            Some("true") => self.0.here(visitor.visit_bool(true)),
            Some("false") => self.0.here(visitor.visit_bool(false)),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    /// A key is always there.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.deserialize_bytes(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.deserialize_bytes(visitor)
    }

    forward_to_deserialize_any! {
        char str string unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
