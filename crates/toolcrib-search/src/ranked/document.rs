//! The words of a tool, read once.

use super::word::{Word, each_stem};
use super::{FIELDS, Field, Searchable};

/// The words of a tool with their counts for each field. Keep it with the tool: an [`Index`](super::Index) is built
/// from documents, and an unchanged tool need not be read again for the next one.
///
/// It stores no texts, and about 24 bytes for each different word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Sorted by word, without duplicates.
    pub(super) terms: Box<[Term]>,
    /// The number of words in each field.
    pub(super) lengths: [u16; FIELDS],
}

/// A word of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) word: Word,
    /// How often it occurs in each field; 255 means "255 or more".
    pub(super) counts: [u8; FIELDS],
}

impl Document {
    /// Reads a tool. The first 65,535 words of each field count.
    pub fn of(tool: &Searchable<'_>) -> Self {
        let mut words: Vec<(Word, Field)> = Vec::new();
        let mut lengths = [0_u16; FIELDS];
        let mut read = |text: &str, field: Field| {
            let length = &mut lengths[field as usize];
            each_stem(text, |_, word| {
                if *length < u16::MAX {
                    *length += 1;
                    words.push((word, field));
                }
            });
        };
        read(tool.name, Field::Name);
        read(tool.title, Field::Title);
        for tag in &tool.tags {
            read(tag, Field::Tags);
        }
        read(tool.description, Field::Description);
        for parameter in &tool.parameters {
            read(parameter.name, Field::Parameters);
            read(parameter.description, Field::ParameterDescriptions);
        }
        words.sort_unstable();
        let terms = words.chunk_by(|one, other| one.0 == other.0).map(|same| {
            let mut counts = [0_u8; FIELDS];
            for (_, field) in same {
                let count = &mut counts[*field as usize];
                *count = count.saturating_add(1);
            }
            Term { word: same[0].0, counts }
        });
        Self { terms: terms.collect(), lengths }
    }
}
