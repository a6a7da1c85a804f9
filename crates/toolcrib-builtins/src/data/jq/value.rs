//! The values of a query: JSON whose bytes, depth and operations are metered.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use indexmap::IndexMap;

use super::meter::{ExceededLimit, MemoryCharge, exceeded, tick};
use super::number::Number;
use crate::data::json_text::{JsonText, MAX_DEPTH, Token, Tokens, read_string};

/// The longest JSON text of a value inside a query. Values share their parts, so a small value can have a very long
/// text.
const MAX_WRITTEN_BYTES: usize = 16 << 20;
/// How much of a value an error message shows.
const SHOWN_BYTES: usize = 80;

const VALUE_BYTES: usize = size_of::<Value>();
/// An entry of an object: key, value, hash, index.
const ENTRY_BYTES: usize = size_of::<Text>() + VALUE_BYTES + 32;
const HEADER_BYTES: usize = 64;

/// A JSON value.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    Array(Rc<Array>),
    Object(Rc<Object>),
}

/// Text, shared.
#[derive(Debug, Clone)]
pub(super) struct Text(Rc<(Box<str>, MemoryCharge)>);

impl Text {
    pub(super) fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        let charge = MemoryCharge::new(text.len() + HEADER_BYTES);
        Self(Rc::new((text, charge)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// Items, and an upper bound of their depth.
#[derive(Debug, Clone)]
pub(super) struct Array {
    items: Vec<Value>,
    depth: u16,
    charge: MemoryCharge,
}

/// Members in insertion order, and an upper bound of their depth.
#[derive(Debug, Clone)]
pub(super) struct Object {
    members: IndexMap<Text, Value>,
    depth: u16,
    charge: MemoryCharge,
}

/// The depth of a container whose contents have this depth; too deep a value stops the query. That bounds every
/// recursion over a value, including drops.
fn deeper(inner: u16) -> u16 {
    let depth = inner.saturating_add(1);
    if depth > MAX_DEPTH {
        exceeded(ExceededLimit::Nesting);
    }
    depth
}

impl Array {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), depth: 1, charge: MemoryCharge::new(HEADER_BYTES) }
    }

    pub(super) fn items(&self) -> &[Value] {
        &self.items
    }

    pub(super) fn push(&mut self, value: Value) {
        tick();
        self.depth = self.depth.max(deeper(value.depth()));
        self.reserve(1);
        self.items.push(value);
    }

    /// Puts a value at an index; missing items before it become null.
    pub(super) fn put(&mut self, at: usize, value: Value) {
        self.depth = self.depth.max(deeper(value.depth()));
        if at >= self.items.len() {
            self.reserve((at - self.items.len()).saturating_add(1));
            self.items.resize(at + 1, Value::Null);
        }
        self.items[at] = value;
    }

    pub(super) fn take(&mut self, at: usize) -> Value {
        std::mem::replace(&mut self.items[at], Value::Null)
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.items.remove(at);
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Value) -> bool) {
        self.items.retain(keep);
    }

    pub(super) fn splice(&mut self, range: std::ops::Range<usize>, new: &Self) {
        self.depth = self.depth.max(new.depth);
        self.reserve(new.items.len());
        self.items.splice(range, new.items.iter().cloned());
    }

    /// Charges before it allocates, and doubles the capacity as a vector does.
    fn reserve(&mut self, more: usize) {
        let needed = self.items.len().saturating_add(more);
        if needed > self.items.capacity() {
            let capacity = needed.max(self.items.capacity() * 2).max(4);
            self.charge.set(capacity.saturating_mul(VALUE_BYTES).saturating_add(HEADER_BYTES));
            self.items.reserve_exact(capacity - self.items.len());
        }
    }
}

impl Object {
    pub(super) fn new() -> Self {
        Self { members: IndexMap::new(), depth: 1, charge: MemoryCharge::new(HEADER_BYTES) }
    }

    pub(super) fn members(&self) -> &IndexMap<Text, Value> {
        &self.members
    }

    pub(super) fn insert(&mut self, key: Text, value: Value) {
        tick();
        self.depth = self.depth.max(deeper(value.depth()));
        if self.members.len() == self.members.capacity() {
            let capacity = (self.members.capacity() * 2).max(4);
            self.charge.set(capacity.saturating_mul(ENTRY_BYTES).saturating_add(HEADER_BYTES));
            self.members.reserve(capacity - self.members.len());
        }
        self.members.insert(key, value);
    }

    pub(super) fn take(&mut self, key: &str) -> Value {
        self.members.get_mut(key).map_or(Value::Null, |value| std::mem::replace(value, Value::Null))
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.members.shift_remove(key);
    }

    /// Adds the members of another object, which replace its own.
    pub(super) fn extend(&mut self, other: &Self) {
        for (key, value) in &other.members {
            self.insert(key.clone(), value.clone());
        }
    }

    /// Like [`extend`](Self::extend), but merges objects under the same key.
    pub(super) fn merge(&mut self, other: &Self) {
        for (key, value) in &other.members {
            let value = match (self.members.get(key.as_str()), value) {
                (Some(Value::Object(_)), Value::Object(new)) => {
                    let Value::Object(mut known) = self.take(key.as_str()) else { continue };
                    Rc::make_mut(&mut known).merge(new);
                    Value::Object(known)
                }
                _ => value.clone(),
            };
            self.insert(key.clone(), value);
        }
    }
}

impl Value {
    pub(super) fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(Text::new(text))
    }

    pub(super) fn object(members: impl IntoIterator<Item = (Text, Value)>) -> Self {
        let mut object = Object::new();
        for (key, value) in members {
            object.insert(key, value);
        }
        Self::Object(Rc::new(object))
    }

    /// Builds the value of a checked text.
    pub(super) fn read(text: JsonText<'_>) -> Self {
        let mut tokens = text.tokens();
        tokens.next().map_or(Self::Null, |first| read(first, &mut tokens))
    }

    fn depth(&self) -> u16 {
        match self {
            Self::Array(array) => array.depth,
            Self::Object(object) => object.depth,
            _ => 0,
        }
    }

    /// Compact JSON; stops the query if it would be very long.
    pub(super) fn to_json(&self) -> String {
        let mut out = String::new();
        if !self.write(&mut out, MAX_WRITTEN_BYTES) {
            exceeded(ExceededLimit::Memory);
        }
        out
    }

    /// Appends compact JSON while `out` is within `max_bytes`; returns whether all of it fitted.
    pub(super) fn write(&self, out: &mut String, max_bytes: usize) -> bool {
        tick();
        if out.len() > max_bytes {
            return false;
        }
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(on) => out.push_str(if *on { "true" } else { "false" }),
            Self::Number(number) => number.write(out),
            Self::Text(text) => write_text(text.as_str(), out),
            Self::Array(array) => {
                out.push('[');
                for (at, item) in array.items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    if !item.write(out, max_bytes) {
                        return false;
                    }
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for (at, (key, value)) in object.members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_text(key.as_str(), out);
                    out.push(':');
                    if !value.write(out, max_bytes) {
                        return false;
                    }
                }
                out.push('}');
            }
        }
        out.len() <= max_bytes
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

fn read(first: Token<'_>, tokens: &mut Tokens<'_>) -> Value {
    match first {
        Token::Open('{') => {
            let mut object = Object::new();
            while let Some(token) = tokens.next() {
                match token {
                    Token::String(key) => {
                        tokens.next();
                        let value = tokens.next().map_or(Value::Null, |next| read(next, tokens));
                        object.insert(Text::new(read_string(key).unwrap_or_default()), value);
                    }
                    Token::Close(_) => break,
                    _ => {}
                }
            }
            Value::Object(Rc::new(object))
        }
        Token::Open(_) => {
            let mut array = Array::new();
            while let Some(token) = tokens.next() {
                match token {
                    Token::Close(_) => break,
                    Token::Comma => {}
                    item => array.push(read(item, tokens)),
                }
            }
            Value::Array(Rc::new(array))
        }
        Token::String(raw) => Value::text(read_string(raw).unwrap_or_default()),
        Token::Scalar("true") => Value::Bool(true),
        Token::Scalar("false") => Value::Bool(false),
        Token::Scalar("null") | Token::Close(_) | Token::Comma | Token::Colon => Value::Null,
        Token::Scalar(number) => Value::Number(Number::read(number)),
    }
}

impl FromIterator<Self> for Value {
    fn from_iter<I: IntoIterator<Item = Self>>(values: I) -> Self {
        let mut array = Array::new();
        for value in values {
            array.push(value);
        }
        Self::Array(Rc::new(array))
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Self::Bool(on)
    }
}

impl From<isize> for Value {
    fn from(integer: isize) -> Self {
        tick();
        Self::Number(i64::try_from(integer).map_or(Number::Float(f64::NAN), Number::Integer))
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Number(i64::try_from(count).map_or(Number::Float(f64::INFINITY), Number::Integer))
    }
}

impl From<f64> for Value {
    fn from(float: f64) -> Self {
        Self::Number(Number::Float(float))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// The object that represents a slice in a path.
impl From<jaq_core::val::Range<Self>> for Value {
    fn from(range: jaq_core::val::Range<Self>) -> Self {
        let bounds = [("start", range.start), ("end", range.end)];
        Self::object(
            bounds.into_iter().map(|(key, bound)| (Text::new(key), bound.unwrap_or(Self::Null))),
        )
    }
}

/// The beginning of the value as JSON, for error messages.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        let complete = self.write(&mut shown, SHOWN_BYTES);
        if complete {
            return f.write_str(&shown);
        }
        let cut = (0..=SHOWN_BYTES).rev().find(|cut| shown.is_char_boundary(*cut));
        write!(f, "{}…", &shown[..cut.unwrap_or_default().min(shown.len())])
    }
}
