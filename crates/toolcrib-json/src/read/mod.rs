//! Reading a type: [`Cursor`] as serde's deserializer.

mod containers;
mod key;
mod variant;

use serde::de::{Deserializer, Error as _, Expected, IntoDeserializer, Unexpected, Visitor};

use crate::error::ReadError;
use crate::tape::{Cursor, Kind, Number};

use containers::{ItemReader, MemberReader};
use variant::{TaggedVariant, UnitVariant};

/// Methods for what a JSON number is read into; serde converts between them.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.read_number(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Cursor<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Null => self.here(visitor.visit_unit()),
            Kind::True => self.here(visitor.visit_bool(true)),
            Kind::False => self.here(visitor.visit_bool(false)),
            Kind::String | Kind::EscapedString => self.read_string(visitor),
            Kind::Array => self.read_array(visitor),
            Kind::Object => self.read_object(visitor),
            _ => self.read_number(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::True => self.here(visitor.visit_bool(true)),
            Kind::False => self.here(visitor.visit_bool(false)),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.source().parse() {
            Ok(value) if self.kind().is_integer() => self.here(visitor.visit_i128(value)),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.source().parse() {
            Ok(value) if self.kind().is_integer() => self.here(visitor.visit_u128(value)),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.read_string(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.read_string(visitor)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.read_string(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.read_string(visitor)
    }

    /// The bytes of a string, or the numbers of an array.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::String => self.here(visitor.visit_borrowed_bytes(self.raw_bytes())),
            Kind::EscapedString => {
                let text = self.as_str().unwrap_or_default().into_owned();
                self.here(visitor.visit_byte_buf(text.into_bytes()))
            }
            Kind::Array => self.read_array(visitor),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Null => self.here(visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Null => self.here(visitor.visit_unit()),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.here(visitor.visit_newtype_struct(self))
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Array => self.read_array(visitor),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Object => self.read_object(visitor),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    /// An object, or the fields' values in order.
    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Object => self.read_object(visitor),
            Kind::Array => self.read_array(visitor),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    /// A string that names the variant, or an object whose only key does.
    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let read = match self.kind() {
            Kind::String | Kind::EscapedString => visitor.visit_enum(UnitVariant(self)),
            Kind::Object => TaggedVariant::of(self).and_then(|tagged| visitor.visit_enum(tagged)),
            _ => {
                Err(self.wrong_type(&"the name of a variant, or an object with it as the only key"))
            }
        };
        self.here(read)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.here(visitor.visit_unit())
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for Cursor<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Cursor<'de> {
    /// Says of a failure that it happened here, unless it happened further in.
    #[inline]
    pub(super) fn here<T>(self, read: Result<T, ReadError>) -> Result<T, ReadError> {
        read.map_err(|error| error.at(self))
    }

    #[inline]
    fn read_number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let read = match self.number() {
            Some(Number::Unsigned(value)) => visitor.visit_u64(value),
            Some(Number::Negative(value)) => visitor.visit_i64(value),
            Some(Number::Float(value)) => visitor.visit_f64(value),
            None => return Err(self.wrong_type(&visitor)),
        };
        self.here(read)
    }

    #[inline]
    fn read_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if let Some(text) = self.plain() {
            self.here(visitor.visit_borrowed_str(text))
        } else if let Some(text) = self.unescaped() {
            self.here(visitor.visit_string(text))
        } else {
            Err(self.wrong_type(&visitor))
        }
    }

    fn read_array<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let mut items = self.items();
        let value = self.here(visitor.visit_seq(ItemReader(&mut items)))?;
        match items.len() {
            0 => Ok(value),
            left => Err(self.left_over(self.len() - left)),
        }
    }

    fn read_object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let mut reader = MemberReader::of(self);
        let value = self.here(visitor.visit_map(&mut reader))?;
        match reader.left() {
            0 => Ok(value),
            left => Err(self.left_over(self.len() - left)),
        }
    }

    #[cold]
    fn wrong_type(self, expected: &dyn Expected) -> ReadError {
        let text;
        let unexpected = match self.kind() {
            Kind::Null => Unexpected::Unit,
            Kind::True => Unexpected::Bool(true),
            Kind::False => Unexpected::Bool(false),
            Kind::Array => Unexpected::Seq,
            Kind::Object => Unexpected::Map,
            _ => match self.number() {
                Some(Number::Unsigned(value)) => Unexpected::Unsigned(value),
                Some(Number::Negative(value)) => Unexpected::Signed(value),
                Some(Number::Float(value)) => Unexpected::Float(value),
                None => {
                    text = self.as_str().unwrap_or_default();
                    Unexpected::Str(&text)
                }
            },
        };
        ReadError::invalid_type(unexpected, expected).at(self)
    }

    /// The type read fewer items or members than there are.
    #[cold]
    fn left_over(self, taken: usize) -> ReadError {
        ReadError::invalid_length(self.len(), &format!("{taken}").as_str()).at(self)
    }
}
