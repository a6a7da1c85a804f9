//! Lets the JSON Schema validator read a tape in place.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp};
use serde_json::Value;

use super::tape::{Cursor, Items, Kind, Members};

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
            Self::At(cursor) if self.is_number() => Some(NumberView(cursor.source())),
            _ => None,
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
        self.json_type() == JsonType::Number
    }

    fn json_type(&self) -> JsonType {
        let Self::At(cursor) = self else { return JsonType::String };
        match cursor.kind() {
            Kind::Null => JsonType::Null,
            Kind::True | Kind::False => JsonType::Boolean,
            Kind::Integer | Kind::Float | Kind::IntegralFloat => JsonType::Number,
            Kind::String | Kind::EscapedString => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
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
            Self::At(cursor) => value_of(*cursor),
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

fn value_of(cursor: Cursor<'_>) -> Value {
    match cursor.kind() {
        Kind::Object => cursor
            .members()
            .map(|(name, value)| (name.as_str().unwrap_or_default().into_owned(), value_of(value)))
            .collect(),
        Kind::Array => cursor.items().map(value_of).collect(),
        // The parser is stricter than serde_json, so the text of a scalar always parses.
        _ => serde_json::from_str(cursor.source()).unwrap_or_default(),
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

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        Some((key.text(), View::At(value)))
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

/// A number's own text.
#[derive(Debug, Clone, Copy)]
pub struct NumberView<'a>(&'a str);

impl JsonNumber for NumberView<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.parse().ok()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        // The parser has checked the grammar and the range.
        Cow::Owned(serde_json::from_str(self.0).unwrap_or_else(|_| 0.into()))
    }

    fn is_integer(&self) -> bool {
        if self.0.contains(['.', 'e', 'E']) {
            self.as_f64().is_some_and(|value| value.fract() == 0.0)
        } else {
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parse::parse;

    #[test]
    fn the_tape_keeps_the_validators_contract() {
        let text = jsonschema::json::conformance::document().to_string();
        let tape = parse(&text).expect("the document parses");
        jsonschema::json::conformance::assert_conformance::<TapeJson>(&View::At(tape.root()));
    }
}
