//! Texts whose answers are kept: who sends the same text again is spared its parsing, its validation
//! and its key. What the checks behind them say is asked anew every time.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashTable;
use toolcrib_json::Tape;
use toolcrib_tool::Arguments;

use super::kept::Kept;
use super::key::{Callee, Key, SEED};

/// The longest text, in bytes, that is known again: a longer one is kept in its key alone.
pub(crate) const LONGEST: usize = 16 * 1024;

/// Which call it is, for a tool whose calls need not all run. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// By what it comes to.
    Key(Key),
    /// By its text, too.
    Spelt(Arc<Spelt>),
    /// By a text that was known when the call came in. Its answer may have gone since.
    Known(Arc<Kept>),
}

impl Question {
    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Key(key) => key,
            Self::Spelt(spelt) => spelt.key(),
            Self::Known(kept) => kept.key(),
        }
    }

    pub(super) fn spelt(&self) -> Option<&Spelt> {
        match self {
            Self::Key(_) => None,
            Self::Spelt(spelt) => Some(spelt),
            Self::Known(kept) => kept.spelt(),
        }
    }
}

/// A text that was accepted as it came, and what it came to.
#[derive(Debug, Clone)]
// In this order: who compares a text reads from the top.
#[repr(C)]
pub(crate) struct Spelt {
    hash: u64,
    text: Box<str>,
    /// All the host said: the key depends on it.
    context: Arc<str>,
    key: Key,
    arguments: Arguments,
}

impl Spelt {
    /// `text` is what came to `arguments` without mending; `key` is that of the call, under
    /// `context`.
    pub(crate) fn of(text: Box<str>, context: &Arc<str>, arguments: &Arguments, key: Key) -> Self {
        let hash = hash(hash_of_name(key.definition().name()), &text, context);
        Self { hash, text, context: Arc::clone(context), key, arguments: arguments.clone() }
    }

    /// What the tool gets.
    pub(crate) fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// Which call it is.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The bytes it takes beyond its key and a fixed size.
    pub(super) fn size(&self) -> usize {
        self.text.len() + self.arguments.tape().map_or(0, Tape::size)
    }

    /// Compared in full, like keys: the hash only picks the bucket.
    #[inline]
    fn is(&self, hash: u64, callee: &Callee, text: &str, context: &str) -> bool {
        self.hash == hash
            && *self.text == *text
            && *self.context == *context
            && self.key.callee() == callee
    }
}

fn hash_of_name(name: &str) -> u64 {
    SEED.hash_one(name)
}

fn hash(name: u64, text: &str, context: &str) -> u64 {
    SEED.hash_one((name, text, context))
}

/// A text to look for. It is hashed with the name that is called and not with the tool, so that the
/// look-up need not wait until the tool is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    hash: u64,
    text: &'a str,
    context: &'a str,
}

/// The kept answers that are known by their texts, at most one for each text.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    table: HashTable<Arc<Kept>>,
    size: usize,
}

/// Names of which texts may be known, as a few bits: a call of any other name need not look, nor take a
/// lock. A bit once set stays until all texts are forgotten.
#[derive(Debug)]
pub(super) struct Names([AtomicU64; 64]);

impl Default for Names {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Names {
    /// The text to look for, if one of that name may be known.
    #[inline]
    pub(super) fn sought<'a>(
        &self,
        name: &str,
        text: &'a str,
        context: &'a str,
    ) -> Option<Sought<'a>> {
        let name = hash_of_name(name);
        let (word, bit) = self.place(name);
        let may_be_known = word.load(Ordering::Relaxed) & bit != 0;
        may_be_known.then(|| Sought { hash: hash(name, text, context), text, context })
    }

    pub(super) fn add(&self, name: &str) {
        let (word, bit) = self.place(hash_of_name(name));
        word.fetch_or(bit, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn place(&self, name: u64) -> (&AtomicU64, u64) {
        // The upper bits: the tables take the lower ones and the uppermost seven.
        (&self.0[(name >> 40) as usize % 64], 1 << ((name >> 48) % 64))
    }
}

impl Spellings {
    /// What the text came to when it was sent last, to the same tool under the same context.
    #[inline]
    pub(super) fn find(&self, sought: Sought<'_>, callee: &Callee) -> Option<&Arc<Kept>> {
        let Sought { hash, text, context } = sought;
        self.table.find(hash, |kept| {
            kept.spelt().is_some_and(|spelt| spelt.is(hash, callee, text, context))
        })
    }

    /// The bytes of all texts.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Knows an answer by its text, if it has one, which is not there yet.
    pub(super) fn insert(&mut self, kept: &Arc<Kept>) {
        let Some(spelt) = kept.spelt() else { return };
        self.size += spelt.size();
        let hash_of = |kept: &Arc<Kept>| kept.spelt().map_or(0, |spelt| spelt.hash);
        self.table.insert_unique(spelt.hash, Arc::clone(kept), hash_of);
    }

    /// Forgets one.
    pub(super) fn remove(&mut self, kept: &Arc<Kept>) {
        let Some(spelt) = kept.spelt() else { return };
        if let Ok(entry) = self.table.find_entry(spelt.hash, |known| Arc::ptr_eq(known, kept)) {
            entry.remove();
            self.size -= spelt.size();
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }
}
