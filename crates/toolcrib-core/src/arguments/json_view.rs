//! Lets the JSON Schema validator read a tape in place.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp};
use serde::Deserialize as _;
use serde_json::Value;
use toolcrib_json::{Cursor, Items, Kind, Members, Number};

/// The representation: instances are places in a tape.
#[derive(Debug)]
pub struct TapeJson;

/// A place in a tape, or a property's name on its own (for `propertyNames`).
#[derive(Debug, Clone, Copy)]
pub enum View<'a> {
    /// A place in a tape.
    At(Cursor<'a>),
    /// A property's name.
    Name(&'a str),
}

impl Json for TapeJson {
    type Node<'a> = View<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    // A lookup scans the members, so one pass over them replaces several lookups.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(View<'_>) -> T) -> T {
        f(View::Name(string))
    }
}

impl<'a> Node<'a, TapeJson> for View<'a> {
    type Object = ObjectView<'a>;
    type Array = ArrayView<'a>;
    type Number = NumberView<'a>;

    fn as_object(&self) -> Option<ObjectView<'a>> {
        match self {
            Self::At(cursor) if cursor.kind() == Kind::Object => Some(ObjectView(*cursor)),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<ArrayView<'a>> {
        match self {
            Self::At(cursor) if cursor.kind() == Kind::Array => Some(ArrayView(*cursor)),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::At(cursor) => cursor.as_str(),
            Self::Name(name) => Some(Cow::Borrowed(name)),
        }
    }

    fn as_number(&self) -> Option<NumberView<'a>> {
        match self {
            Self::At(cursor) => {
                cursor.number().map(|number| NumberView { number, cursor: *cursor })
            }
            Self::Name(_) => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            Self::At(cursor) if cursor.kind() == Kind::True => Some(true),
            Self::At(cursor) if cursor.kind() == Kind::False => Some(false),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::At(cursor) if cursor.kind() == Kind::Null)
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::At(cursor) if cursor.kind().is_number())
    }

    fn is_string(&self) -> bool {
        match self {
            Self::At(cursor) => cursor.kind().is_string(),
            Self::Name(_) => true,
        }
    }

    fn json_type(&self) -> JsonType {
        let Self::At(cursor) = self else { return JsonType::String };
        match cursor.kind() {
            Kind::Null => JsonType::Null,
            Kind::True | Kind::False => JsonType::Boolean,
            Kind::String | Kind::EscapedString => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
            _ => JsonType::Number,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (Self::At(cursor), Value::String(text)) => cursor.equals(text),
            (Self::Name(name), Value::String(text)) => name == text,
            (_, Value::Null) => self.is_null(),
            (_, Value::Bool(truth)) => self.as_boolean() == Some(*truth),
            (_, Value::Number(_)) if !self.is_number() => false,
            _ => cmp::equal(&self.to_value(), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self {
            // The tape is read without a type's demands, so that nothing can fail.
            Self::At(cursor) => Value::deserialize(*cursor).unwrap_or_default(),
            Self::Name(name) => Value::from(*name),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        match self {
            Self::At(cursor) => {
                let (address, tag) = cursor.identity();
                Some(NodeIdentity::tagged(address, tag))
            }
            Self::Name(_) => None,
        }
    }
}

/// An object in a tape.
#[derive(Debug, Clone, Copy)]
pub struct ObjectView<'a>(Cursor<'a>);

impl<'a> Object<'a, TapeJson> for ObjectView<'a> {
    type Node = View<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = MemberViews<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &Box<str>) -> Option<View<'a>> {
        self.0.get(key).map(View::At)
    }

    fn members(&self) -> MemberViews<'a> {
        MemberViews(self.0.members())
    }
}

/// The members of an object in a tape.
#[derive(Debug, Clone)]
pub struct MemberViews<'a>(Members<'a>);

impl<'a> Iterator for MemberViews<'a> {
    type Item = (Cow<'a, str>, View<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        Some((key.key_text(), View::At(value)))
    }
}

/// An array in a tape.
#[derive(Debug, Clone, Copy)]
pub struct ArrayView<'a>(Cursor<'a>);

impl<'a> Array<'a, TapeJson> for ArrayView<'a> {
    type Node = View<'a>;
    type ElementsIter = std::iter::Map<Items<'a>, fn(Cursor<'a>) -> View<'a>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.items().map(View::At)
    }
}

/// A number in a tape.
#[derive(Debug, Clone, Copy)]
pub struct NumberView<'a> {
    number: Number,
    cursor: Cursor<'a>,
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
        Some(match self.number {
            Number::Unsigned(value) => value as f64,
            Number::Negative(value) => value as f64,
            Number::Float(value) => value,
        })
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
        match self.number {
            Number::Float(value) => value.fract() == 0.0,
            _ => true,
        }
    }

    fn is_written_as_integer(&self) -> bool {
        self.cursor.kind().is_integer()
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_json::parse;

    use super::*;

    #[test]
    fn the_tape_keeps_the_validators_contract() {
        let text = jsonschema::json::conformance::document().to_string();
        let tape = parse(&text).expect("the document parses");
        jsonschema::json::conformance::assert_conformance::<TapeJson>(&View::At(tape.root()));
    }
}
