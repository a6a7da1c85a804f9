//! Texts whose answers are kept: who sends the same text again is spared its parsing, its validation
//! and its key. What the checks behind them say is asked anew every time.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use toolcrib_json::Tape;
use toolcrib_tool::Arguments;

use super::key::{Callee, Key, SEED};

/// The longest text, in bytes, that is known again: a longer one is kept in its key alone.
pub(crate) const LONGEST: usize = 16 * 1024;

/// Which call it is, for a tool whose calls need not all run.
#[derive(Debug)]
pub(crate) enum Question {
    /// By what it comes to.
    Key(Key),
    /// By its text, too.
    Spelt(Spelt),
}

impl Question {
    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Key(key) => key,
            Self::Spelt(spelt) => spelt.key(),
        }
    }

    pub(super) fn spelt(&self) -> Option<&Spelt> {
        match self {
            Self::Key(_) => None,
            Self::Spelt(spelt) => Some(spelt),
        }
    }
}

/// A text that was accepted as it came, and what it came to. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Spelt(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    hash: u64,
    /// `None` where the arguments' own text is the one that came: nothing had to be filled in.
    text: Option<Box<str>>,
    /// All the host said: the key depends on it.
    context: Arc<str>,
    arguments: Arguments,
    key: Key,
}

impl Spelt {
    /// `text` is what came to `arguments` without mending; `key` is that of the call, under
    /// `context`.
    pub(crate) fn of(text: Box<str>, context: &Arc<str>, arguments: &Arguments, key: Key) -> Self {
        let hash = hash(key.callee(), &text, context);
        let text = (*text != *arguments.as_str()).then_some(text);
        let (context, arguments) = (Arc::clone(context), arguments.clone());
        Self(Arc::new(Parts { hash, text, context, arguments, key }))
    }

    /// What the tool gets.
    pub(crate) fn arguments(&self) -> &Arguments {
        &self.0.arguments
    }

    /// Which call it is.
    pub(crate) fn key(&self) -> &Key {
        &self.0.key
    }

    /// The bytes it takes beyond its key and a fixed size.
    pub(super) fn size(&self) -> usize {
        let text = self.0.text.as_ref().map_or(0, |text| text.len());
        text + self.0.arguments.tape().map_or(0, Tape::size)
    }

    fn text(&self) -> &str {
        self.0.text.as_deref().unwrap_or(self.0.arguments.as_str())
    }

    /// Compared in full, like keys: the hash only picks the bucket.
    fn is(&self, callee: &Callee, text: &str, context: &str) -> bool {
        self.text() == text && *self.0.context == *context && self.0.key.callee() == callee
    }
}

fn hash(callee: &Callee, text: &str, context: &str) -> u64 {
    SEED.hash_one((callee.definition().name(), text, context))
}

/// The texts of the answers that are kept, at most one of each.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    table: HashTable<Spelt>,
    size: usize,
}

impl Spellings {
    /// What the text came to when it was sent last, to the same tool under the same context.
    pub(super) fn find(&self, callee: &Callee, text: &str, context: &str) -> Option<&Spelt> {
        let is_same = |spelt: &Spelt| spelt.is(callee, text, context);
        self.table.find(hash(callee, text, context), is_same)
    }

    /// The bytes of all.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Keeps one that is not there yet.
    pub(super) fn insert(&mut self, spelt: Spelt) {
        self.size += spelt.size();
        self.table.insert_unique(spelt.0.hash, spelt, |spelt| spelt.0.hash);
    }

    /// Forgets one.
    pub(super) fn remove(&mut self, spelt: &Spelt) {
        let is_it = |known: &Spelt| Arc::ptr_eq(&known.0, &spelt.0);
        if let Ok(entry) = self.table.find_entry(spelt.0.hash, is_it) {
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
