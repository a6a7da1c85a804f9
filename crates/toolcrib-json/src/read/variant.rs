//! Reading enum variants: a string, or the only key of an object.

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer as _, EnumAccess, Error as _, Unexpected, VariantAccess, Visitor,
};

use super::key::MapKey;
use crate::error::ReadError;
use crate::tape::Cursor;

/// `"Variant"`
pub(super) struct UnitVariant<'de>(pub(super) Cursor<'de>);

impl<'de> EnumAccess<'de> for UnitVariant<'de> {
    type Error = ReadError;
    type Variant = VariantName;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, VariantName), ReadError> {
        Ok((seed.deserialize(self.0)?, VariantName))
    }
}

/// A variant's name without a value.
pub(super) struct VariantName;

impl<'de> VariantAccess<'de> for VariantName {
    type Error = ReadError;

    #[inline]
    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, ReadError> {
        Err(ReadError::invalid_type(Unexpected::UnitVariant, &"newtype variant"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ReadError> {
        Err(ReadError::invalid_type(Unexpected::UnitVariant, &"tuple variant"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ReadError> {
        Err(ReadError::invalid_type(Unexpected::UnitVariant, &"struct variant"))
    }
}

/// `{"Variant": value}`
pub(super) struct TaggedVariant<'de> {
    name: Cursor<'de>,
    value: Cursor<'de>,
}

impl<'de> TaggedVariant<'de> {
    pub(super) fn of(object: Cursor<'de>) -> Result<Self, ReadError> {
        match (object.members().next(), object.len()) {
            (Some((name, value)), 1) => Ok(Self { name, value }),
            (_, len) => Err(ReadError::invalid_length(
                len,
                &"an object whose only key is the name of a variant",
            )),
        }
    }
}

impl<'de> EnumAccess<'de> for TaggedVariant<'de> {
    type Error = ReadError;
    type Variant = VariantValue<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, VariantValue<'de>), ReadError> {
        Ok((seed.deserialize(MapKey(self.name))?, VariantValue(self.value)))
    }
}

/// The value beside a variant's name.
pub(super) struct VariantValue<'de>(Cursor<'de>);

impl<'de> VariantAccess<'de> for VariantValue<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.0.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.0.deserialize_struct("", fields, visitor)
    }
}
