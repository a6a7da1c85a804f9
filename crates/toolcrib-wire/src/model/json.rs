//! Reads members of parsed JSON with errors that name them, and writes JSON text.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Number, Tape, parse};

use super::ModelError;

/// Parses a whole body or the data of an event.
pub(super) fn parsed(bytes: &[u8]) -> Result<Tape<'_>, ModelError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ModelError::at(String::new(), format!("the JSON must be UTF-8: {error}"))
    })?;
    parse(text).map_err(|error| ModelError::at(String::new(), format!("invalid JSON: {error}")))
}

/// A member that is present and not null.
pub(super) fn member<'a>(value: Cursor<'a>, key: &str) -> Option<Cursor<'a>> {
    value.get(key).filter(|member| member.kind() != Kind::Null)
}

/// A text member; `None` if it is absent or null.
pub(super) fn text<'a>(value: Cursor<'a>, key: &str) -> Result<Option<Cow<'a, str>>, ModelError> {
    let Some(member) = member(value, key) else { return Ok(None) };
    member.as_str().map(Some).ok_or_else(|| ModelError::field(member, "must be a string"))
}

/// A text member that has to be there.
pub(super) fn required_text<'a>(value: Cursor<'a>, key: &str) -> Result<Cow<'a, str>, ModelError> {
    text(value, key)?
        .ok_or_else(|| ModelError::member(value, key, "is missing; it must be a string"))
}

/// A whole number; `None` if it is absent or null. `12.0` is 12.
pub(super) fn whole(value: Cursor<'_>, key: &str) -> Result<Option<u64>, ModelError> {
    let Some(member) = member(value, key) else { return Ok(None) };
    match member.number() {
        Some(Number::Unsigned(number)) => Ok(Some(number)),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number is whole and in range"
        )]
        Some(Number::Float(number)) if number.fract() == 0.0 && (0.0..1e15).contains(&number) => {
            Ok(Some(number as u64))
        }
        _ => Err(ModelError::field(member, "must be a whole number of at least 0")),
    }
}

/// The objects in a list; none if the list is absent or null.
pub(super) fn objects<'a>(
    value: Cursor<'a>,
    key: &str,
) -> Result<impl Iterator<Item = Result<Cursor<'a>, ModelError>>, ModelError> {
    let list = member(value, key);
    if let Some(list) = list.filter(|list| list.kind() != Kind::Array) {
        return Err(ModelError::field(list, "must be a list"));
    }
    Ok(list.into_iter().flat_map(Cursor::items).map(object))
}

/// An object member that has to be there.
pub(super) fn required_object<'a>(value: Cursor<'a>, key: &str) -> Result<Cursor<'a>, ModelError> {
    member(value, key)
        .ok_or_else(|| ModelError::member(value, key, "is missing; it must be an object"))
        .and_then(object)
}

/// The value, if it is an object.
pub(super) fn object(value: Cursor<'_>) -> Result<Cursor<'_>, ModelError> {
    if value.kind() == Kind::Object {
        Ok(value)
    } else {
        Err(ModelError::field(value, "must be an object"))
    }
}

/// Appends `text` as a JSON string.
pub(super) fn write_string(out: &mut String, text: &str) {
    out.push_str(&Value::from(text).to_string());
}

/// Writes an object member by member.
pub(super) struct ObjectWriter<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> ObjectWriter<'a> {
    pub(super) fn new(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Begins a member; its value is to be written next.
    pub(super) fn key(&mut self, key: &str) -> &mut String {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(',');
        }
        write_string(self.out, key);
        self.out.push(':');
        self.out
    }

    pub(super) fn string(&mut self, key: &str, value: &str) {
        write_string(self.key(key), value);
    }

    /// A member whose value is JSON text already.
    pub(super) fn raw(&mut self, key: &str, json: &str) {
        self.key(key).push_str(json);
    }

    pub(super) fn end(self) {
        self.out.push('}');
    }
}
