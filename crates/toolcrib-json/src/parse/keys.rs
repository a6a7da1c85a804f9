//! Refusing duplicate keys, however they are escaped.
//!
//! Each key of an object sets a bit that its text chooses; only where the bit is set already are
//! keys compared. A large object, in which that happens all the time, has its keys compared once it is
//! read: only those that share a bit of a larger bitmap with another key, sorted by their hashes. That
//! takes time in proportion to the number of keys, whatever the text.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};

use super::Parser;
use super::string::unescape;
use crate::error::ParseError;
use crate::tape::{Kind, Node};

/// The state of the duplicate-key detection for one object.
#[derive(Debug, Default)]
pub(super) struct SeenKeys {
    bits: [u64; 4],
    has_escapes: bool,
}

impl SeenKeys {
    /// Up to this many keys are compared as they come; beyond it sorting is cheaper.
    pub(super) const COMPARED: usize = 16;

    /// Whether a key may stand before it in the object already. `false` is certain.
    #[inline]
    pub(super) fn may_hold(&mut self, key: Node, text: &[u8]) -> bool {
        // What an escaped string's bit would be is not known.
        self.has_escapes |= key.kind() == Kind::EscapedString;
        let bit = mixed(ends(text) ^ text.len() as u64);
        let word = &mut self.bits[usize::from(bit >> 6)];
        let bit = 1 << (bit & 63);
        let seen = *word & bit != 0 || self.has_escapes;
        *word |= bit;
        seen
    }
}

/// A byte that depends on all bits of a number: both halves of its product with 2^64 divided by the
/// golden ratio, laid over each other.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower bits are what is meant")]
fn mixed(number: u64) -> u8 {
    let product = u128::from(number) * 0x9E37_79B9_7F4A_7C15;
    (product >> 64) as u8 ^ product as u8
}

/// The first and the last four bytes as one number, or all of them if they are fewer.
#[inline]
fn ends(text: &[u8]) -> u64 {
    match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => text.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Keeps the hashes whose upper bits another one has, too, and a few more.
fn retain_suspects(hashes: &mut Vec<u64>) {
    /// Bits of the bitmap for each hash: of hashes that all differ, about one in this many is kept. A
    /// bitmap that does not fit into a processor's cache would cost more than it saves.
    const BITS_PER_HASH: usize = 8;

    let bits = (hashes.len() * BITS_PER_HASH).next_power_of_two().max(64);
    let unused = u64::BITS - bits.trailing_zeros();
    let place = |hash: u64| {
        let bit = hash >> unused;
        (usize::try_from(bit / 64).unwrap_or_default(), 1_u64 << (bit % 64))
    };
    let (mut seen, mut shared) = (vec![0_u64; bits / 64], vec![0_u64; bits / 64]);
    for &hash in &*hashes {
        let (word, bit) = place(hash);
        if seen[word] & bit != 0 {
            shared[word] |= bit;
        }
        seen[word] |= bit;
    }
    hashes.retain(|&hash| {
        let (word, bit) = place(hash);
        shared[word] & bit != 0
    });
}

impl Parser<'_> {
    /// Refuses the newest key, which is node `key`, if it stands before it in the object, whose
    /// node is `object` and not yet closed.
    #[cold]
    pub(super) fn refuse_repeated_key(
        &self,
        object: usize,
        key: usize,
    ) -> Result<(), Box<ParseError>> {
        let new = self.nodes[key];
        let earlier = self.keys(object).take_while(|(index, _)| *index < key);
        for (_, earlier) in earlier {
            if self.same_key(earlier, new) {
                return Err(self.repeated(new));
            }
        }
        Ok(())
    }

    /// Refuses an object one of whose `len` keys stands there twice.
    #[cold]
    pub(super) fn refuse_repeated_keys(
        &self,
        object: usize,
        len: usize,
    ) -> Result<(), Box<ParseError>> {
        // No text is longer than 2^28 bytes, and none has more nodes.
        const INDEX_BITS: u32 = 28;
        const INDEX: u64 = (1 << INDEX_BITS) - 1;

        // The hashes are keyed: no text can be made in which many keys have the same.
        let hasher = RandomState::new();
        let packed = |(index, key): (usize, Node)| {
            hasher.hash_one(&*self.key(key)) & !INDEX | index as u64 & INDEX
        };
        let mut keys: Vec<u64> = Vec::with_capacity(len);
        keys.extend(self.keys(object).take(len).map(packed));
        retain_suspects(&mut keys);
        keys.sort_unstable();
        let node = |key: &u64| self.nodes[usize::try_from(key & INDEX).unwrap_or_default()];
        let repeated = keys
            .chunk_by(|one, other| one & !INDEX == other & !INDEX)
            .filter_map(|same| {
                let repeats = |at: &usize| {
                    same[..*at].iter().any(|earlier| self.same_key(node(earlier), node(&same[*at])))
                };
                (1..same.len()).find(repeats).map(|at| same[at] & INDEX)
            })
            .min();
        repeated.map_or(Ok(()), |index| Err(self.repeated(node(&index))))
    }

    /// The key nodes of an object, in order; does not end at its end.
    fn keys(&self, object: usize) -> impl Iterator<Item = (usize, Node)> {
        let mut next = object + 1;
        std::iter::from_fn(move || {
            let index = next;
            let key = *self.nodes.get(index)?;
            // A key is one node; the value after it knows where the next key is.
            let value = u32::try_from(index + 1).ok()?;
            next = self.nodes.get(index + 1).map_or(usize::MAX, |node| node.after(value) as usize);
            Some((index, key))
        })
    }

    fn same_key(&self, one: Node, other: Node) -> bool {
        if one.kind() == Kind::String && other.kind() == Kind::String {
            self.bytes[one.span()] == self.bytes[other.span()]
        } else {
            self.key(one) == self.key(other)
        }
    }

    fn key(&self, node: Node) -> Cow<'_, str> {
        let raw = &self.text[node.span()];
        if node.kind() == Kind::String { raw.into() } else { unescape(raw).into() }
    }

    #[cold]
    #[expect(clippy::unnecessary_box_returns, reason = "errors of one word keep parsing short")]
    fn repeated(&self, key: Node) -> Box<ParseError> {
        let problem = format!("the key `{}` is given twice", self.key(key).escape_debug());
        Box::new(ParseError { problem, offset: key.span().start })
    }
}
