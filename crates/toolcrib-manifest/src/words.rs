//! Lists of words, written as one text with blanks between the words.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Deserializer};

/// Words with blanks between them.
#[derive(Debug, Default)]
pub(crate) struct Words(Cow<'static, str>);

impl Words {
    pub(crate) const fn of(words: &'static str) -> Self {
        Self(Cow::Borrowed(words))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_ascii_whitespace()
    }

    pub(crate) fn contains(&self, word: &str) -> bool {
        self.iter().any(|known| known == word)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces each `@name` by the list with this name.
    pub(crate) fn replace_names(&mut self, lists: &HashMap<String, Self>) {
        if self.0.contains('@') {
            let list = |word| lists.get(word?).map(|list| &*list.0);
            let words: Vec<&str> =
                self.iter().map(|word| list(word.strip_prefix('@')).unwrap_or(word)).collect();
            self.0 = words.join(" ").into();
        }
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|words| Self(words.into()))
    }
}
