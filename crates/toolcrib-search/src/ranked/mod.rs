//! Tools by words: which of thousands somebody means who says what it should do.
//!
//! An [`Index`] of [`Document`]s ranks by BM25F: a word counts the more, the fewer tools have it and the
//! more prominent the place where it stands. What lifts the ranking above that:
//!
//! - **Words as people and programs write them.** `listFiles`, `list_files` and "lists the files" have
//!   the same words, accents and plurals do not matter, and Chinese, Japanese, Korean and Thai are
//!   found by pairs of characters.
//! - **Words that say little** ("please find me the …") find nothing alone and weigh a tenth.
//! - **Questions that ask for several things** are taken apart: a tool that answers one of them
//!   perfectly is as good as one that answers a question of one sentence.
//! - **Names that are spelt out** in the question weigh more than their words do.
//! - **Synonyms and short forms** (`folder`, `directory`, `dir`), a small list, count a fifth.
//! - **Descriptions of parameters** count a little: they say what a tool is about.
//! - **Where nobody has any of the words**, they stand for those that begin so: a name can be typed half.
//!
//! The answer depends on the tools, their order and the question alone, on every machine. Nothing is
//! learned and nothing asked of a model; hosts that have one put it beside with `HybridIndex`, under
//! the feature `embeddings`.
//!
//! ```
//! use toolcrib_search::{Document, Index, Searchable};
//!
//! let tools = [
//!     Searchable { name: "disk_usage", description: "Show used space.", ..Default::default() },
//!     Searchable { name: "tail_log", description: "Show a log's end.", ..Default::default() },
//! ];
//! // Kept beside each tool, for the next index: only what has changed is read again.
//! let documents: Vec<Document> = tools.iter().map(Document::of).collect();
//! let index = Index::of(&documents);
//!
//! let hits = index.search("how full are the disks?", 10);
//! assert_eq!(tools[hits[0].position].name, "disk_usage");
//! assert!(index.search("weather", 10).is_empty());
//! ```

mod document;
mod filler;
#[cfg(feature = "embeddings")]
mod hybrid;
mod index;
mod query;
mod ranking;
mod stem;
mod synonyms;
#[cfg(test)]
mod tests;
mod word;
mod words;

use std::cmp::Ordering;
use std::fmt;

use query::Query;

pub use document::Document;
#[cfg(feature = "embeddings")]
pub use hybrid::{Embedder, HybridIndex};
pub use index::{Index, MAX_DOCUMENTS};

/// What is searched of a tool. Empty is nothing.
#[derive(Debug, Clone, Default)]
pub struct Searchable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its name for people.
    pub title: &'a str,
    /// Its category and tags.
    pub tags: Vec<&'a str>,
    /// What it does.
    pub description: &'a str,
    /// What it is told.
    pub parameters: Vec<Parameter<'a>>,
}

/// A parameter of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parameter<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it means.
    pub description: &'a str,
}

/// Where a word may stand, the most prominent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Field {
    /// In the name.
    Name,
    /// In the title.
    Title,
    /// In the category or a tag.
    Tags,
    /// In the description.
    Description,
    /// In the name of a parameter.
    Parameters,
    /// In the description of a parameter.
    ParameterDescriptions,
}

const FIELDS: usize = Field::ALL.len();

impl Field {
    /// All of them, the most prominent first.
    pub const ALL: [Self; 6] = [
        Self::Name,
        Self::Title,
        Self::Tags,
        Self::Description,
        Self::Parameters,
        Self::ParameterDescriptions,
    ];
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Tags => "tags",
            Self::Description => "description",
            Self::Parameters => "parameters",
            Self::ParameterDescriptions => "parameter descriptions",
        })
    }
}

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its place among what was searched.
    pub position: usize,
    /// How well it fits, from 0 to 1; of use only beside those of the same search.
    pub score: f32,
}

impl Hit {
    /// The best first; of equals the first.
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.position.cmp(&other.position))
    }
}

/// Why a tool was found: a word of the question that stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The word, in lower case. It may stand there in another form or by a synonym.
    pub word: String,
    /// The most prominent place where it stands.
    pub field: Field,
}

impl Index {
    /// The tools that a question's words fit, the best first, at most `limit`; of equals the first.
    ///
    /// The first 4,096 bytes of the question count, and of their words and synonyms the first 256.
    pub fn search(&self, question: &str, limit: usize) -> Vec<Hit> {
        self.search_among(question, limit, |_| true)
    }

    /// [`search`](Self::search) among the documents whose position is `allowed`: others are as if they
    /// were not there, but that the rarity of a word is counted over all.
    pub fn search_among(
        &self,
        question: &str,
        limit: usize,
        allowed: impl Fn(usize) -> bool,
    ) -> Vec<Hit> {
        ranking::rank(self, &Query::new(question), limit, allowed)
    }

    /// Why a search for the question found the document at this position, in the order of the words.
    ///
    /// ```
    /// use toolcrib_search::{Document, Field, Index, Match, Searchable};
    ///
    /// let tool = Searchable { name: "disk_usage", description: "Show space.", ..Default::default() };
    /// let index = Index::of([&Document::of(&tool)]);
    /// let space = Match { word: "space".into(), field: Field::Description };
    /// let disks = Match { word: "disks".into(), field: Field::Name };
    /// assert_eq!(index.matches("the space of disks", 0), [space, disks]);
    /// ```
    pub fn matches(&self, question: &str, position: usize) -> Vec<Match> {
        ranking::matches(self, &Query::new(question), position)
    }
}
