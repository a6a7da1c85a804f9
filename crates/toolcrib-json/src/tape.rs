//! A parsed JSON text: a flat list of nodes that point into it.
//!
//! Nodes lie in reading order; a container's node is followed by its children, and knows where the
//! next sibling starts. A node is 16 bytes, and what a reader would have to find out again is in
//! them: numbers are converted already.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use crate::parse::unescape;

/// A parsed JSON text, owned (`Tape<'static>`) or borrowed.
///
/// Made by [`parse`](crate::parse()) and [`parse_owned`](crate::parse_owned).
#[derive(Debug, Clone)]
pub struct Tape<'t> {
    text: Cow<'t, str>,
    nodes: Vec<Node>,
    has_integral_float: bool,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`
    True,
    /// `false`
    False,
    /// A number without fraction and exponent, from 0 to 2^64 - 1.
    Unsigned,
    /// A number without fraction and exponent, from -2^63 to -1.
    Negative,
    /// Another number without fraction and exponent, which is read as a double: beyond 64 bits, or
    /// `-0`.
    WideInteger,
    /// A number with one of them, and with a fractional or very large value.
    Float,
    /// A number written with a fraction or an exponent whose value is a whole number within
    /// ±2^53, such as `5.0`.
    IntegralFloat,
    /// A string without escapes.
    String,
    /// A string with escapes.
    EscapedString,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

impl Kind {
    /// Whether this is a number, however it is written.
    #[inline]
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Unsigned | Self::Negative | Self::WideInteger | Self::Float | Self::IntegralFloat
        )
    }

    /// Whether this is a number written without fraction and exponent.
    #[inline]
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::Unsigned | Self::Negative | Self::WideInteger)
    }

    /// Whether this is a string, with escapes or without.
    #[inline]
    pub const fn is_string(self) -> bool {
        matches!(self, Self::String | Self::EscapedString)
    }
}

/// A number's value, as the types of most programs hold it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Written without fraction and exponent, from 0 to 2^64 - 1.
    Unsigned(u64),
    /// Written without fraction and exponent, from -2^63 to -1.
    Negative(i64),
    /// The nearest double of any other; always finite.
    Float(f64),
}

/// Bits of [`Node::place`] that hold the kind.
const KIND_BITS: u32 = 4;
const KIND_MASK: u32 = (1 << KIND_BITS) - 1;

/// The kinds by number; unused numbers map to the last one.
const KINDS: [Kind; 1 << KIND_BITS] = [
    Kind::Null,
    Kind::True,
    Kind::False,
    Kind::Unsigned,
    Kind::Negative,
    Kind::WideInteger,
    Kind::Float,
    Kind::IntegralFloat,
    Kind::String,
    Kind::EscapedString,
    Kind::Array,
    Kind::Object,
    Kind::Object,
    Kind::Object,
    Kind::Object,
    Kind::Object,
];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// Where the node starts in the text, and below that its kind. Strings are meant without
    /// their quotes, containers with their brackets.
    place: u32,
    end: u32,
    /// Containers: the index of the first node after this one and its children (upper half), and
    /// how many items or members there are (lower half). Numbers: the bits of the value.
    payload: u64,
}

impl Node {
    /// A node of a text that is no longer than [`MAX_TEXT`](crate::MAX_TEXT).
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "longer texts are refused at the door")]
    pub(crate) fn new(kind: Kind, span: Range<usize>, payload: u64) -> Self {
        let place = (span.start as u32) << KIND_BITS | kind as u32;
        Self { place, end: span.end as u32, payload }
    }

    /// Ends a container before the byte `end`; the tape goes on with the node `next`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "no more nodes than bytes, which fit")]
    pub(crate) fn close(&mut self, end: usize, next: usize, len: usize) {
        self.end = end as u32;
        self.payload = (next as u64) << 32 | len as u64;
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        KINDS[(self.place & KIND_MASK) as usize]
    }

    /// Whether there may be nodes inside of it: the last two kinds.
    #[inline]
    fn is_container(self) -> bool {
        self.place & KIND_MASK >= Kind::Array as u32
    }

    #[inline]
    pub(crate) fn span(self) -> Range<usize> {
        (self.place >> KIND_BITS) as usize..self.end as usize
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
    fn len(self) -> u32 {
        self.payload as u32
    }

    /// The same node in a text that begins `bytes` later, of a tape that begins `nodes` later.
    #[inline]
    fn moved(self, bytes: u32, nodes: u32) -> Self {
        let nodes = if self.is_container() { u64::from(nodes) << 32 } else { 0 };
        let payload = self.payload - nodes;
        Self { place: self.place - (bytes << KIND_BITS), end: self.end - bytes, payload }
    }

    /// The node after this one and its children, this one being `index`.
    #[inline]
    pub(crate) fn after(self, index: u32) -> u32 {
        if self.is_container() { (self.payload >> 32) as u32 } else { index + 1 }
    }
}

impl<'t> Tape<'t> {
    pub(crate) fn new(text: Cow<'t, str>, nodes: Vec<Node>, has_integral_float: bool) -> Self {
        Self { text, nodes, has_integral_float }
    }

    /// The text the tape was made from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes the text out; copied if the tape borrows it.
    pub fn into_text(self) -> String {
        self.text.into_owned()
    }

    /// Bytes the text and its nodes take.
    pub fn size(&self) -> usize {
        self.text.len() + self.nodes.capacity() * size_of::<Node>()
    }

    /// The outermost value.
    #[inline]
    pub fn root(&self) -> Cursor<'_> {
        Cursor { tape: self, index: 0 }
    }

    /// The place with an [index](Cursor::index) of this tape; `None` beyond its end.
    pub fn at(&self, index: u32) -> Option<Cursor<'_>> {
        ((index as usize) < self.nodes.len()).then_some(Cursor { tape: self, index })
    }

    /// How many places there are: values and keys.
    pub fn places(&self) -> usize {
        self.nodes.len()
    }

    /// Whether some whole number is written as a float.
    #[inline]
    pub fn has_integral_float(&self) -> bool {
        self.has_integral_float
    }

    #[inline]
    fn node(&self, index: u32) -> Node {
        // A cursor only ever holds an index the parser wrote into this very tape.
        self.nodes[index as usize]
    }
}

/// A place in a [`Tape`]; as cheap to copy as a slice.
///
/// It is a [`serde::Deserializer`]: `T::deserialize(cursor)` reads the value into a type.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    tape: &'a Tape<'a>,
    index: u32,
}

impl<'a> Cursor<'a> {
    #[inline]
    fn node(self) -> Node {
        self.tape.node(self.index)
    }

    /// What stands here.
    #[inline]
    pub fn kind(self) -> Kind {
        self.node().kind()
    }

    /// Items of an array or members of an object; 0 for scalars.
    #[inline]
    pub fn len(self) -> usize {
        let node = self.node();
        if node.is_container() { node.len() as usize } else { 0 }
    }

    /// Whether there are no items or members.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Where the value stands in the text, quotes and brackets included.
    #[inline]
    pub fn span(self) -> Range<usize> {
        let node = self.node();
        let quote = usize::from(node.kind().is_string());
        let span = node.span();
        span.start - quote..span.end + quote
    }

    /// The whole text, in which [`span`](Self::span) is.
    #[inline]
    pub fn text(self) -> &'a str {
        &self.tape.text
    }

    /// The value's own text, quotes and brackets included.
    #[inline]
    pub fn source(self) -> &'a str {
        &self.tape.text[self.span()]
    }

    /// The number; `None` if this is not one.
    #[inline]
    pub fn number(self) -> Option<Number> {
        let node = self.node();
        Some(match node.kind() {
            Kind::Unsigned => Number::Unsigned(node.payload),
            Kind::Negative => Number::Negative(node.payload.cast_signed()),
            Kind::WideInteger | Kind::Float | Kind::IntegralFloat => {
                Number::Float(f64::from_bits(node.payload))
            }
            _ => return None,
        })
    }

    /// The value alone, as a tape of its own: what parsing its [`source`](Self::source) would give, at
    /// the cost of a copy.
    ///
    /// ```
    /// let message = toolcrib_json::parse(r#"{"id": 1, "arguments": {"path": "a.txt"}}"#).unwrap();
    /// let arguments = message.root().get("arguments").unwrap().to_tape();
    /// assert_eq!(arguments.text(), r#"{"path": "a.txt"}"#);
    /// assert_eq!(arguments.root().get("path").unwrap().source(), r#""a.txt""#);
    /// ```
    pub fn to_tape(self) -> Tape<'static> {
        let span = self.span();
        #[expect(clippy::cast_possible_truncation, reason = "longer texts are refused at the door")]
        let bytes = span.start as u32;
        let after = self.node().after(self.index);
        let nodes: Vec<_> = self.tape.nodes[self.index as usize..after as usize]
            .iter()
            .map(|node| node.moved(bytes, self.index))
            .collect();
        let has_integral_float = self.tape.has_integral_float
            && nodes.iter().any(|node| node.kind() == Kind::IntegralFloat);
        Tape::new(Cow::Owned(self.tape.text[span].to_owned()), nodes, has_integral_float)
    }

    /// The string, unescaped; `None` if this is not a string.
    #[inline]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        match self.plain() {
            Some(plain) => Some(Cow::Borrowed(plain)),
            None => self.unescaped().map(Cow::Owned),
        }
    }

    /// The string, unescaped; empty if this is not a string. For keys, which always are.
    #[inline]
    pub fn key_text(self) -> Cow<'a, str> {
        match self.plain() {
            Some(plain) => Cow::Borrowed(plain),
            None => Cow::Owned(self.unescaped().unwrap_or_default()),
        }
    }

    /// The string, if it is written without escapes.
    #[inline]
    pub(crate) fn plain(self) -> Option<&'a str> {
        let node = self.node();
        if node.kind() == Kind::String { Some(&self.tape.text[node.span()]) } else { None }
    }

    /// The string, if it is written with escapes.
    #[cold]
    pub(crate) fn unescaped(self) -> Option<String> {
        let node = self.node();
        (node.kind() == Kind::EscapedString).then(|| unescape(&self.tape.text[node.span()]))
    }

    /// The bytes of a string as it is written, escapes and all, without its quotes; those of
    /// [`source`](Self::source) for all else.
    #[inline]
    pub fn raw_bytes(self) -> &'a [u8] {
        &self.tape.text.as_bytes()[self.node().span()]
    }

    /// The items of an array; none for all else.
    #[inline]
    pub fn items(self) -> Items<'a> {
        let node = self.node();
        let remaining = if node.kind() == Kind::Array { node.len() } else { 0 };
        Items { tape: self.tape, next: self.index + 1, remaining }
    }

    /// The members of an object; none for all else.
    #[inline]
    pub fn members(self) -> Members<'a> {
        let node = self.node();
        let remaining = if node.kind() == Kind::Object { node.len() } else { 0 };
        Members { tape: self.tape, next: self.index + 1, remaining }
    }

    /// The value of a member. Looks at one key after another.
    pub fn get(self, key: &str) -> Option<Cursor<'a>> {
        self.members().find_map(|(name, value)| name.equals(key).then_some(value))
    }

    /// Whether this is the string `text`.
    #[inline]
    pub fn equals(self, text: &str) -> bool {
        let node = self.node();
        match node.kind() {
            Kind::String => self.tape.text.as_bytes()[node.span()] == *text.as_bytes(),
            Kind::EscapedString => self.as_str().is_some_and(|own| own == text),
            _ => false,
        }
    }

    /// The place as a number: places are numbered from 0 in the order of the text, so that those
    /// inside a container are in [`places`](Self::places) of it.
    #[inline]
    pub fn index(self) -> u32 {
        self.index
    }

    /// The numbers of this place and of all places inside it.
    #[inline]
    pub fn places(self) -> Range<u32> {
        self.index..self.node().after(self.index)
    }

    /// Two numbers that are together the same for the same place of the same tape only.
    #[inline]
    pub fn identity(self) -> (usize, u32) {
        (std::ptr::from_ref(self.tape) as usize, self.index)
    }

    /// The JSON pointer of the place; a key has that of its member. Walks down from the root.
    pub fn pointer(self) -> String {
        let mut pointer = String::new();
        let mut place = self.tape.root();
        while place.index < self.index {
            let step = match place.kind() {
                Kind::Object => place
                    .members()
                    .take_while(|(name, _)| name.index <= self.index)
                    .last()
                    .map(|(name, value)| (name.key_text(), value)),
                _ => place
                    .items()
                    .enumerate()
                    .take_while(|(_, item)| item.index <= self.index)
                    .last()
                    .map(|(position, item)| (Cow::Owned(position.to_string()), item)),
            };
            // The parser puts every node but the first inside of a container.
            let Some((name, inner)) = step else { break };
            // Writing to a String cannot fail.
            let _ = write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1"));
            place = inner;
        }
        pointer
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

    #[inline]
    fn next(&mut self) -> Option<Cursor<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let cursor = Cursor { tape: self.tape, index: self.next };
        self.next = cursor.node().after(self.next);
        Some(cursor)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining as usize, Some(self.remaining as usize))
    }
}

impl ExactSizeIterator for Items<'_> {}

/// The members of an object, in order: the key as a string node, and the value.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    tape: &'a Tape<'a>,
    next: u32,
    remaining: u32,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cursor<'a>, Cursor<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        let name = Cursor { tape: self.tape, index: self.next };
        // A key is one node.
        let value = Cursor { tape: self.tape, index: self.next + 1 };
        self.next = value.node().after(value.index);
        Some((name, value))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining as usize, Some(self.remaining as usize))
    }
}

impl ExactSizeIterator for Members<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, parse_owned};

    #[test]
    fn every_kind_stands_at_its_number_and_containers_come_last() {
        assert!(
            KINDS[..=Kind::Object as usize].iter().zip(0..).all(|(kind, at)| *kind as u8 == at)
        );
        for kind in KINDS {
            let node = Node::new(kind, 0..0, 0);
            assert_eq!(node.kind(), kind);
            assert_eq!(node.is_container(), matches!(kind, Kind::Array | Kind::Object), "{kind:?}");
        }
    }

    #[test]
    fn a_node_is_sixteen_bytes() {
        assert_eq!(size_of::<Node>(), 16);
    }

    #[test]
    fn a_pointer_leads_to_its_place() {
        let tape = parse(r#"{"a":[1,{"b~/":[[],{}]}],"c\"":2}"#).unwrap();
        let mut pointers = Vec::new();
        for index in 0..u32::try_from(tape.nodes.len()).unwrap() {
            pointers.push(Cursor { tape: &tape, index }.pointer());
        }
        assert_eq!(
            pointers,
            [
                "",
                "/a",
                "/a",
                "/a/0",
                "/a/1",
                "/a/1/b~0~1",
                "/a/1/b~0~1",
                "/a/1/b~0~1/0",
                "/a/1/b~0~1/1",
                "/c\"",
                "/c\"",
            ]
        );
    }

    #[test]
    fn a_place_alone_is_what_parsing_its_text_gives() {
        let tape =
            parse(r#" {"a":[1,{"b\"":[-7, {}, 5.0, null]}], "\u0063":"d", "e":2.5e300} "#).unwrap();
        for index in 0..u32::try_from(tape.nodes.len()).unwrap() {
            let place = Cursor { tape: &tape, index };
            let parsed = parse_owned(place.source().to_owned()).unwrap();
            assert_eq!(format!("{:?}", place.to_tape()), format!("{parsed:?}"));
        }
    }

    #[test]
    fn children_of_a_scalar_are_none() {
        let tape = parse(r#"["x", 7, "\n"]"#).unwrap();
        for item in tape.root().items() {
            assert_eq!((item.len(), item.items().count(), item.members().count()), (0, 0, 0));
        }
    }
}
