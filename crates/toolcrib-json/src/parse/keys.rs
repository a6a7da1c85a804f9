//! No key twice in one object, however it is escaped.
//!
//! A small object's keys are compared as they come, by one word each; the whole key is looked at
//! only where these words agree. A large object's keys go into a set once it is read, so that no
//! text makes this quadratic.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Parser, unescape};
use crate::error::ParseError;
use crate::tape::{Kind, Node};

/// The heads of the first keys of an object.
#[derive(Debug, Default)]
pub(super) struct Heads {
    heads: [u64; Self::ROOM],
    has_escapes: bool,
}

impl Heads {
    /// Up to this many keys are compared pair by pair; beyond it a set is cheaper.
    pub(super) const ROOM: usize = 16;

    /// Whether the key after `len` others may be one of them. Keeps it if there is room; if there
    /// is none, the answer is no, and all keys have to be looked at when the object is read.
    #[inline]
    pub(super) fn may_repeat(&mut self, key: Node, len: usize) -> bool {
        let Some((head, before)) = self.heads.get_mut(..=len).and_then(<[u64]>::split_last_mut)
        else {
            return false;
        };
        // The head of an escaped string is not known.
        self.has_escapes |= key.kind() == Kind::EscapedString;
        *head = key.head();
        len > 0 && (self.has_escapes || before.contains(&key.head()))
    }
}

impl Parser<'_> {
    /// Refuses the key at the end of the tape, which is node `key`, if it stands before it in the
    /// object, whose node is `object` and not yet closed.
    #[cold]
    pub(super) fn refuse_repeated_key(&self, object: usize, key: usize) -> Result<(), ParseError> {
        let new = self.nodes[key];
        let text = self.key(new);
        let keys = self.keys(object).take_while(|node| node.span() != new.span());
        for earlier in keys {
            if self.key(earlier) == text {
                return Err(self.repeated(new));
            }
        }
        Ok(())
    }

    /// Refuses an object one of whose `len` keys stands there twice.
    #[cold]
    pub(super) fn refuse_repeated_keys(&self, object: usize, len: usize) -> Result<(), ParseError> {
        let mut seen = HashSet::with_capacity(len);
        match self.keys(object).take(len).find(|key| !seen.insert(self.key(*key))) {
            Some(key) => Err(self.repeated(key)),
            None => Ok(()),
        }
    }

    /// The key nodes of an object, in order; does not end at its end.
    fn keys(&self, object: usize) -> impl Iterator<Item = Node> {
        let mut next = object + 1;
        std::iter::from_fn(move || {
            let key = *self.nodes.get(next)?;
            // A key is one node; the value after it knows where the next key is.
            let value = u32::try_from(next + 1).ok()?;
            next = self.nodes.get(next + 1).map_or(usize::MAX, |node| node.after(value) as usize);
            Some(key)
        })
    }

    fn key(&self, node: Node) -> Cow<'_, str> {
        let raw = &self.text[node.span()];
        if node.kind() == Kind::String { raw.into() } else { unescape(raw).into() }
    }

    fn repeated(&self, key: Node) -> ParseError {
        ParseError {
            problem: format!("the key `{}` is given twice", self.key(key).escape_debug()),
            offset: key.span().start,
        }
    }
}
