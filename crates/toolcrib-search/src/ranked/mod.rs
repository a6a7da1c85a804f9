//! Ranked search: finds the tools that a question describes, among thousands.
//!
//! An [`Index`] of [`Document`]s ranks with BM25F: a word counts more if fewer tools have it, and if it occurs in a
//! more prominent field. What improves the ranking further:
//!
//! - **Words as people and programs write them.** `listFiles`, `list_files` and "lists the files" have the same words,
//!   accents and plurals make no difference, and Chinese, Japanese, Korean and Thai are found by pairs of characters.
//! - **Stop words** ("please find me the …") find nothing alone and weigh less than a third.
//! - **Questions that ask for several things** are split: a tool that answers one part perfectly ranks as high as one
//!   that answers a question with a single part. A part that no tool answers well, such as small talk, counts less.
//! - **Full tool names** in the question weigh more than their words do.
//! - **Synonyms and abbreviations** (`folder`, `directory`, `dir`), a small list, count a fifth.
//! - **Names and descriptions of parameters** count, because they show what a tool is about.
//! - **If no tool has any of the words**, they match as prefixes: half a name is enough.
//!
//! The answer depends only on the tools, their order and the question, and is the same on every machine. Nothing is
//! learned, and no model is used; hosts with an embedding model can add it with `HybridIndex`, under the feature
//! `embeddings`.
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
mod weights;
mod word;
mod words;

use std::cmp::Ordering;
use std::fmt;

use query::Query;

pub use document::Document;
#[cfg(feature = "embeddings")]
pub use hybrid::{Embedder, HybridIndex};
pub use index::{Index, MAX_DOCUMENTS};
pub use query::MAX_QUESTION;
pub use weights::Weights;

/// The searchable texts of a tool. Empty texts are ignored.
#[derive(Debug, Clone, Default)]
pub struct Searchable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its display name.
    pub title: &'a str,
    /// Its category and tags.
    pub tags: Vec<&'a str>,
    /// What it does.
    pub description: &'a str,
    /// Its parameters.
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

/// The fields that may contain a word, the most prominent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Field {
    /// The name.
    Name,
    /// The title.
    Title,
    /// The category or a tag.
    Tags,
    /// The description.
    Description,
    /// The name of a parameter.
    Parameters,
    /// The description of a parameter.
    ParameterDescriptions,
}

const FIELDS: usize = Field::ALL.len();

impl Field {
    /// All fields, the most prominent first.
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
    /// Its position among the searched tools.
    pub position: usize,
    /// How well it matches, from 0 to 1; comparable only within one search.
    pub score: f32,
}

impl Hit {
    /// The best first; among equals the lower position.
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.position.cmp(&other.position))
    }
}

/// Why a tool was found: a word of the question that it contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The word, in lower case. The tool may contain another form of it, or a synonym.
    pub word: String,
    /// The most prominent field that contains it.
    pub field: Field,
}

impl Index {
    /// The tools that match a question's words, the best first, at most `limit`; among equals the lower position first.
    ///
    /// Only the first [`MAX_QUESTION`] bytes of the question count, and the first 256 of its words and their synonyms.
    pub fn search(&self, question: &str, limit: usize) -> Vec<Hit> {
        self.search_among(question, limit, |_| true)
    }

    /// [`search`](Self::search) among the documents whose position is `allowed`. The others are ignored, except that
    /// word rarity counts all documents.
    pub fn search_among(
        &self,
        question: &str,
        limit: usize,
        allowed: impl Fn(usize) -> bool,
    ) -> Vec<Hit> {
        ranking::rank(self, &Query::new(question, &self.weights), limit, allowed)
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
        ranking::matches(self, &Query::new(question, &self.weights), position)
    }
}
