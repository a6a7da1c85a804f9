//! A parsed JSON text that owns nothing: a flat list of nodes that point into the text.
//!
//! Building a `serde_json::Value` is most of the cost of a small call, and nothing but error
//! messages needs one. The tape is one `Vec` whose nodes lie in reading order; a container's node
//! is followed by its children, and every node knows where the next sibling starts.

use std::borrow::Cow;
use std::ops::Range;

/// A parsed JSON text.
#[derive(Debug, Clone)]
pub struct Tape<'t> {
    text: &'t str,
    nodes: Vec<Node>,
    has_integral_float: bool,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`
    True,
    /// `false`
    False,
    /// A number without fraction and exponent.
    Integer,
    /// A number with one, and with a fractional value.
    Float,
    /// A number written with a fraction or an exponent whose value is a whole number within
    /// ±2^53, such as `5.0`.
    IntegralFloat,
    /// A string without escapes; the span is what stands between the quotes.
    String,
    /// A string with escapes.
    EscapedString,
    /// `[…]`
    Array,
    /// `{…}`; the children are key, value, key, value, …
    Object,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Where the node stands in the text: strings without their quotes, containers with brackets.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Index of the first node after this one and its children.
    pub(super) next: u32,
    /// Items of an array, members of an object.
    pub(super) len: u32,
}

impl<'t> Tape<'t> {
    pub(super) fn new(text: &'t str, nodes: Vec<Node>, has_integral_float: bool) -> Self {
        Self { text, nodes, has_integral_float }
    }

    /// The text the tape was made from.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The outermost value.
    pub fn root(&self) -> Cursor<'_> {
        Cursor { tape: self, index: 0 }
    }

    /// Whether some whole number is written as a float.
    pub fn has_integral_float(&self) -> bool {
        self.has_integral_float
    }

    fn node(&self, index: u32) -> Node {
        // A cursor only ever holds an index the parser wrote into this very tape.
        self.nodes[index as usize]
    }
}

/// A place in a [`Tape`].
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    tape: &'a Tape<'a>,
    index: u32,
}

impl<'a> Cursor<'a> {
    /// What stands here.
    pub fn kind(self) -> Kind {
        self.tape.node(self.index).kind
    }

    /// Items of an array or members of an object; 0 for scalars.
    pub fn len(self) -> usize {
        self.tape.node(self.index).len as usize
    }

    /// Whether there are no items or members.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Where the value stands in the text, quotes and brackets included.
    pub fn span(self) -> Range<usize> {
        let node = self.tape.node(self.index);
        let quote = usize::from(matches!(node.kind, Kind::String | Kind::EscapedString));
        node.start as usize - quote..node.end as usize + quote
    }

    /// The value's own text, quotes and brackets included.
    pub fn source(self) -> &'a str {
        &self.tape.text[self.span()]
    }

    /// The string, unescaped; `None` if this is not a string.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let node = self.tape.node(self.index);
        let raw = &self.tape.text[node.start as usize..node.end as usize];
        match node.kind {
            Kind::String => Some(Cow::Borrowed(raw)),
            // The parser has checked every escape, so this cannot fail.
            Kind::EscapedString => {
                Some(Cow::Owned(serde_json::from_str(self.source()).unwrap_or_default()))
            }
            _ => None,
        }
    }

    /// The string, unescaped; empty if this is not a string. For keys, which always are.
    pub(super) fn text(self) -> Cow<'a, str> {
        let node = self.tape.node(self.index);
        if node.kind == Kind::String {
            return Cow::Borrowed(&self.tape.text[node.start as usize..node.end as usize]);
        }
        self.as_str().unwrap_or_default()
    }

    /// The first byte of a string as it is written, escapes and all.
    pub(super) fn first_raw_byte(self) -> Option<u8> {
        let node = self.tape.node(self.index);
        self.tape.text.as_bytes()[node.start as usize..node.end as usize].first().copied()
    }

    /// The items of an array.
    pub fn items(self) -> Items<'a> {
        let node = self.tape.node(self.index);
        let remaining = if node.kind == Kind::Array { node.len } else { 0 };
        Items { tape: self.tape, next: self.index + 1, remaining }
    }

    /// The members of an object.
    pub fn members(self) -> Members<'a> {
        let node = self.tape.node(self.index);
        let remaining = if node.kind == Kind::Object { node.len } else { 0 };
        Members { items: Items { tape: self.tape, next: self.index + 1, remaining: remaining * 2 } }
    }

    /// The value of a member.
    pub fn get(self, key: &str) -> Option<Cursor<'a>> {
        self.members().find_map(|(name, value)| name.equals(key).then_some(value))
    }

    /// Whether this is the string `text`.
    pub fn equals(self, text: &str) -> bool {
        let node = self.tape.node(self.index);
        match node.kind {
            Kind::String => {
                let own = &self.tape.text.as_bytes()[node.start as usize..node.end as usize];
                own == text.as_bytes()
            }
            Kind::EscapedString => self.as_str().is_some_and(|own| own == text),
            _ => false,
        }
    }

    /// A number that is the same for the same place of the same tape only.
    pub(super) fn identity(self) -> (usize, u32) {
        (std::ptr::from_ref(self.tape) as usize, self.index)
    }
}

/// The items of an array, in order.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    tape: &'a Tape<'a>,
    next: u32,
    remaining: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Cursor<'a>;

    fn next(&mut self) -> Option<Cursor<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let cursor = Cursor { tape: self.tape, index: self.next };
        self.next = self.tape.node(self.next).next;
        Some(cursor)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining as usize, Some(self.remaining as usize))
    }
}

/// The members of an object, in order: the key as a string node, and the value.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    items: Items<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cursor<'a>, Cursor<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.items.next()?, self.items.next()?))
    }
}
