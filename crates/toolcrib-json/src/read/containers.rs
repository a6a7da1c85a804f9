//! Reading arrays and objects.

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess};

use super::key::MapKey;
use crate::error::ReadError;
use crate::tape::{Cursor, Items, Members};

/// Reads the items of an array. It borrows the iterator, so that leftover items can be detected.
pub(super) struct ItemReader<'a, 'de>(pub(super) &'a mut Items<'de>);

impl<'de> SeqAccess<'de> for ItemReader<'_, 'de> {
    type Error = ReadError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The members of an object.
pub(super) struct MemberReader<'de> {
    members: Members<'de>,
    /// The value of the member whose key was read last.
    value: Option<Cursor<'de>>,
}

impl<'de> MemberReader<'de> {
    pub(super) fn of(object: Cursor<'de>) -> Self {
        Self { members: object.members(), value: None }
    }

    /// The number of unread members.
    pub(super) fn left(&self) -> usize {
        self.members.len()
    }
}

impl<'de> MapAccess<'de> for &mut MemberReader<'de> {
    type Error = ReadError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some((name, value)) = self.members.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(MapKey(name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        match self.value.take() {
            Some(value) => seed.deserialize(value),
            None => Err(ReadError::custom("a member's value is read before its key")),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left())
    }
}
