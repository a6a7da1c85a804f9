//! How much each field and each rule of the ranking counts.

use super::{FIELDS, Field};

/// What the ranking weighs. [`Weights::default`] suits catalogues of tools in general; a host with many tools and many
/// questions of its own can measure others and build its index with them
/// ([`Index::with_weights`](super::Index::with_weights)).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Weights {
    /// For each field, in the order of [`Field::ALL`]: its weight, and from 0 to 1 how much a longer field than usual
    /// reduces it.
    pub fields: [(f32, f32); FIELDS],
    /// BM25's saturation: how slowly repeated occurrences stop counting.
    pub saturation: f32,
    /// The weight of a stop word, compared with 1 for another word.
    pub stop_word: f32,
    /// The weight of a synonym, compared with 1 for the word itself.
    pub synonym: f32,
    /// The bonus if a question contains all words of a name.
    pub covered_name: f32,
    /// The weight of the best part of a question with several, from 0 to 1; the rest is the whole question's.
    pub part: f32,
    /// How much a part of a question counts less if no tool answers it as well as another part: 0 for not at all, 1 for
    /// in proportion. Such parts are often not requests ("I am planning a party.").
    pub weak_part: f32,
}

impl Default for Weights {
    fn default() -> Self {
        let mut fields = [(0.0, 0.0); FIELDS];
        fields[Field::Name as usize] = (2.0, 0.3);
        fields[Field::Title as usize] = (1.0, 0.3);
        fields[Field::Tags as usize] = (0.3, 0.3);
        fields[Field::Description as usize] = (1.0, 0.75);
        fields[Field::Parameters as usize] = (0.6, 0.5);
        fields[Field::ParameterDescriptions as usize] = (0.6, 0.75);
        Self {
            fields,
            saturation: 0.9,
            stop_word: 0.3,
            synonym: 0.2,
            covered_name: 0.5,
            part: 0.6,
            weak_part: 0.25,
        }
    }
}
