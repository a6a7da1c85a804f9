//! The inverted index: built from documents, immutable.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::document::Document;
use super::weights::Weights;
use super::word::Word;
use super::{FIELDS, Field};

/// The words of many tools, each with the tools that contain it. Immutable: when a tool changes, build another index
/// from the stored documents.
///
/// A tool is identified by its position among the documents. Indexing ten thousand tools takes a few milliseconds, and
/// 8 bytes for each different word of each tool.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Sorted.
    words: Box<[Word]>,
    /// The start of each word's postings, and the end of the last ones.
    starts: Box<[u32]>,
    /// By word, then by document.
    postings: Box<[Posting]>,
    /// For each document, the sum of the rarities of its name's words.
    names: Box<[f32]>,
    /// What its ranking weighs.
    pub(super) weights: Weights,
}

/// A word in a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    /// The position of the document, and in the lower bits a flag for each field that contains the word.
    place: u32,
    /// The weight except for the word's rarity: depends on its counts in the fields and on their lengths.
    pub(super) weight: f32,
}

impl Posting {
    pub(super) const fn document(self) -> usize {
        (self.place >> FIELDS) as usize
    }

    pub(super) const fn is_in(self, field: Field) -> bool {
        self.place >> field as usize & 1 == 1
    }
}

/// The most documents of an index, limited by the bits of a posting.
pub const MAX_DOCUMENTS: usize = 1 << (u32::BITS as usize - FIELDS);

impl Index {
    /// Builds the index of these documents. Documents after the first [`MAX_DOCUMENTS`] are ignored.
    pub fn of<'d>(documents: impl IntoIterator<Item = &'d Document>) -> Self {
        Self::with_weights(documents, Weights::default())
    }

    /// [`of`](Self::of) with other weights than the default ones.
    pub fn with_weights<'d>(
        documents: impl IntoIterator<Item = &'d Document>,
        weights: Weights,
    ) -> Self {
        let documents: Vec<&Document> = documents.into_iter().take(MAX_DOCUMENTS).collect();
        let usual = usual_lengths(&documents);
        // First collect the words, and how many documents have each.
        let mut numbers: HashMap<u64, u32, BuildHasherDefault<PrehashedWord>> = HashMap::default();
        let mut found: Vec<(Word, u32)> = Vec::new();
        let total = documents.iter().map(|document| document.terms.len()).sum();
        let mut number_of = Vec::with_capacity(total);
        for term in documents.iter().flat_map(|document| &document.terms) {
            let number = *numbers.entry(term.word.hash).or_insert_with(|| {
                found.push((term.word, 0));
                index_of(found.len() - 1)
            });
            found[number as usize].1 += 1;
            number_of.push(number);
        }
        // Then compute where the postings of each word begin.
        let mut order: Vec<u32> = (0..index_of(found.len())).collect();
        order.sort_unstable_by_key(|&number| found[number as usize].0);
        let mut starts = Vec::with_capacity(order.len() + 1);
        let mut next = vec![0_u32; found.len()];
        let mut start = 0;
        for &number in &order {
            starts.push(start);
            next[number as usize] = start;
            start += found[number as usize].1;
        }
        starts.push(start);
        // Then fill in the postings, document by document, so that they are sorted.
        let mut postings = vec![Posting { place: 0, weight: 0.0 }; total];
        let mut names = Vec::with_capacity(documents.len());
        let mut numbers = number_of.into_iter();
        for (position, document) in documents.iter().enumerate() {
            let worth = worth_in(document, &usual, &weights);
            let mut name = 0.0;
            for (term, number) in document.terms.iter().zip(&mut numbers) {
                let mut place = index_of(position) << FIELDS;
                let mut weight = 0.0;
                for (field, &count) in term.counts.iter().enumerate() {
                    place |= u32::from(count > 0) << field;
                    weight += worth[field] * f32::from(count);
                }
                weight = weight * (weights.saturation + 1.0) / (weights.saturation + weight);
                let posting = Posting { place, weight };
                if posting.is_in(Field::Name) {
                    name += rarity(documents.len(), found[number as usize].1 as usize);
                }
                let next = &mut next[number as usize];
                postings[*next as usize] = posting;
                *next += 1;
            }
            names.push(name);
        }
        Self {
            words: order.iter().map(|&number| found[number as usize].0).collect(),
            starts: starts.into(),
            postings: postings.into(),
            names: names.into(),
            weights,
        }
    }

    /// How many documents it has.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The number of a word, if any document contains it.
    pub(super) fn number(&self, word: Word) -> Option<usize> {
        self.words.binary_search(&word).ok()
    }

    /// The numbers of the words whose first letters are in this range.
    pub(super) fn between(&self, first: u64, last: u64) -> Range<usize> {
        let from = self.words.partition_point(|word| word.head < first);
        from..self.words.partition_point(|word| word.head <= last)
    }

    /// The postings of a word, in the order of the documents.
    pub(super) fn postings(&self, number: usize) -> &[Posting] {
        &self.postings[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    /// The rarity of a word: how much its occurrence says about a tool.
    pub(super) fn rarity(&self, number: usize) -> f32 {
        rarity(self.len(), self.postings(number).len())
    }

    /// The sum of the rarities of a document's name.
    pub(super) fn name(&self, document: usize) -> f32 {
        self.names[document]
    }
}

/// Converts a number that is always below [`u32::MAX`]: memory holds at most 67 million documents with words.
fn index_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// BM25's inverse document frequency, never below zero.
#[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
fn rarity(documents: usize, having: usize) -> f32 {
    let without = documents.saturating_sub(having) as f32;
    (1.0 + (without + 0.5) / (having as f32 + 0.5)).ln()
}

/// The average length of each field.
#[expect(clippy::cast_precision_loss, reason = "an average of counts")]
fn usual_lengths(documents: &[&Document]) -> [f32; FIELDS] {
    let mut all = [0_u64; FIELDS];
    for document in documents {
        for (sum, &length) in all.iter_mut().zip(&document.lengths) {
            *sum += u64::from(length);
        }
    }
    all.map(|sum| sum as f32 / documents.len().max(1) as f32)
}

/// The weight of a word in each field of a document.
fn worth_in(document: &Document, usual: &[f32; FIELDS], weights: &Weights) -> [f32; FIELDS] {
    let mut worth = [0.0; FIELDS];
    for (field, (weight, by_length)) in weights.fields.into_iter().enumerate() {
        if document.lengths[field] > 0 {
            let length = f32::from(document.lengths[field]) / usual[field];
            worth[field] = weight / (1.0 - by_length + by_length * length);
        }
    }
    worth
}

/// A hasher for values that are already hashes.
#[derive(Default)]
struct PrehashedWord(u64);

impl Hasher for PrehashedWord {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
