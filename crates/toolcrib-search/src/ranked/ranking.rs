//! Ranks documents for a question.

use super::index::{Index, Posting};
use super::query::Query;
use super::weights::Weights;
use super::word::Word;
use super::{Field, Hit, Match};

/// The weight of a word that matches only as a prefix.
const BEGINNING: f32 = 0.5;

/// How many words a prefix matches: the first ones.
const MAX_BEGUN: usize = 16;

/// Stop words in more than one of this many documents are skipped: they cost the most and say nothing.
const SELDOM: usize = 4;

/// How many documents are scored together: their scores stay in the processor's nearest cache.
const BLOCK: usize = 1_024;

/// A word of the question with its postings.
struct MatchedWord<'i> {
    postings: &'i [Posting],
    /// Its highest possible score, from its rarity and its own weight.
    gain: f32,
    /// The score rows of a document to which it adds: the whole question, and the parts that contain it.
    rows: Vec<usize>,
    filler: bool,
    /// The index of the question's word that it matches.
    wanted: usize,
}

/// The score of one part of the question in one document.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    worth: f32,
    /// The sum of the rarities of the words that occur in its name.
    covered: f32,
}

/// The matching documents, the best first.
pub(super) fn rank(
    index: &Index,
    query: &Query,
    limit: usize,
    allowed: impl Fn(usize) -> bool,
) -> Vec<Hit> {
    // For each document a score for the whole question, and one for each part.
    let rows = 1 + query.parts;
    let mut found = found(index, query);
    let mut candidates = Candidates::new(rows, index.weights);
    let mut scores = vec![Score::default(); BLOCK * rows];
    for start in (0..index.len()).step_by(BLOCK) {
        for word in &mut found {
            add(word, start, rows, &mut scores);
        }
        for (place, row) in scores.chunks_exact(rows).enumerate() {
            if row[0].worth > 0.0 && allowed(start + place) {
                candidates.push(start + place, row, index.name(start + place));
            }
        }
        scores.fill(Score::default());
    }
    candidates.best(limit)
}

/// Adds a word's weight to the scores of the documents in a block, and advances to the next block.
fn add(found: &mut MatchedWord<'_>, start: usize, rows: usize, scores: &mut [Score]) {
    let mut done = 0;
    for posting in found.postings {
        let place = posting.document() - start;
        if place >= BLOCK {
            break;
        }
        done += 1;
        let worth = found.gain * posting.weight;
        let covered = if posting.is_in(Field::Name) { found.gain } else { 0.0 };
        for row in &found.rows {
            let score = &mut scores[place * rows + row];
            // A stop word adds to documents already found, and finds none.
            if !found.filler || score.worth > 0.0 {
                score.worth += worth;
                score.covered += covered;
            }
        }
    }
    found.postings = &found.postings[done..];
}

/// The documents that have a word of the question.
struct Candidates {
    documents: Vec<usize>,
    /// The score of each for the whole and for each part.
    worth: Vec<f32>,
    /// The highest score of each.
    best: Vec<f32>,
    weights: Weights,
}

impl Candidates {
    fn new(rows: usize, weights: Weights) -> Self {
        Self { documents: Vec::new(), worth: Vec::new(), best: vec![0.0; rows], weights }
    }

    fn push(&mut self, document: usize, row: &[Score], name: f32) {
        self.documents.push(document);
        for (score, best) in row.iter().zip(&mut self.best) {
            let covered = if score.covered > 0.0 { (score.covered / name).min(1.0) } else { 0.0 };
            let worth = score.worth * (1.0 + self.weights.covered_name * covered);
            *best = best.max(worth);
            self.worth.push(worth);
        }
    }

    fn best(self, limit: usize) -> Vec<Hit> {
        let mut shortlist = Shortlist::new(limit);
        let gains = self.gains();
        let rows = self.worth.chunks_exact(self.best.len());
        for (position, row) in self.documents.into_iter().zip(rows) {
            shortlist.offer(Hit { position, score: together(row, &gains, self.weights.part) });
        }
        shortlist.into_hits()
    }

    /// What a score counts for the whole and for each part, so that the best document of the whole has 1, and that of a
    /// part as much as the part is answered.
    fn gains(&self) -> Vec<f32> {
        let strongest = self.best.iter().skip(1).copied().fold(0.0, f32::max);
        let gain = |(row, &best): (usize, &f32)| match row {
            _ if best <= 0.0 => 0.0,
            0 => 1.0 / best,
            _ => (best / strongest).powf(self.weights.weak_part) / best,
        };
        self.best.iter().enumerate().map(gain).collect()
    }
}

/// Combines the best part with the whole: a document that answers one of several requests ranks as high as one that
/// answers a single request.
fn together(row: &[f32], gains: &[f32], weight: f32) -> f32 {
    let mut relative = row.iter().zip(gains).map(|(worth, gain)| (worth * gain).min(1.0));
    let whole = relative.next().unwrap_or(0.0);
    relative.reduce(f32::max).map_or(whole, |part| weight * part + (1.0 - weight) * whole)
}

/// The words of the question that occur anywhere, stop words last.
fn found<'i>(index: &'i Index, query: &Query) -> Vec<MatchedWord<'i>> {
    let mut all: Vec<MatchedWord<'i>> = Vec::with_capacity(query.wanted.len());
    let found = |number: usize, word: usize, worth: f32| {
        let wanted = &query.wanted[number];
        let whole = wanted.whole.then_some(0).into_iter();
        let parts = (0..query.parts).filter(|part| wanted.parts >> part & 1 == 1);
        MatchedWord {
            postings: index.postings(word),
            gain: worth * index.rarity(word),
            rows: whole.chain(parts.map(|part| part + 1)).collect(),
            filler: wanted.filler,
            wanted: number,
        }
    };
    for (number, wanted) in query.wanted.iter().enumerate() {
        if let Some(word) = index.number(wanted.word) {
            all.push(found(number, word, wanted.worth));
        }
    }
    all.retain(|found| !found.filler || found.postings.len() <= index.len() / SELDOM);
    all.sort_by_key(|found| found.filler);
    // No document has any of the words, so match them as prefixes.
    if all.first().is_none_or(|first| first.filler) {
        for (number, wanted) in query.wanted.iter().enumerate().filter(|(_, it)| !it.synonym) {
            let ends = Word::beginning_with(&wanted.written).filter(|_| !wanted.filler);
            let begun = ends.map_or(0..0, |(first, last)| index.between(first, last));
            let begun = begun.take(MAX_BEGUN);
            all.extend(begun.map(|word| found(number, word, BEGINNING * wanted.worth)));
        }
        all.sort_by_key(|found| found.filler);
    }
    all
}

/// Which words of the question occur in a document, and where.
pub(super) fn matches(index: &Index, query: &Query, document: usize) -> Vec<Match> {
    let mut matches: Vec<Match> = Vec::new();
    let mut found = found(index, query);
    found.sort_by_key(|found| found.wanted);
    for found in found {
        let Ok(at) = found.postings.binary_search_by_key(&document, |it| it.document()) else {
            continue;
        };
        let wanted = &query.wanted[found.wanted];
        let posting = found.postings[at];
        let Some(field) = Field::ALL.into_iter().find(|field| posting.is_in(*field)) else {
            continue;
        };
        match matches.iter_mut().find(|known| known.word == wanted.written) {
            Some(known) => known.field = known.field.min(field),
            None if found.filler => {}
            None => matches.push(Match { word: wanted.written.clone(), field }),
        }
    }
    matches
}

/// The best hits of all that are offered.
struct Shortlist {
    hits: Vec<Hit>,
    limit: usize,
    /// The score that a hit must exceed, once the list is full.
    floor: f32,
}

impl Shortlist {
    fn new(limit: usize) -> Self {
        Self { hits: Vec::new(), limit, floor: 0.0 }
    }

    /// Takes hits in the order of their positions.
    fn offer(&mut self, hit: Hit) {
        if hit.score <= self.floor || self.limit == 0 {
            return;
        }
        self.hits.push(hit);
        if self.hits.len() >= self.limit.saturating_mul(2).max(64) {
            self.cut();
            self.floor = self.hits.iter().map(|hit| hit.score).fold(f32::INFINITY, f32::min);
        }
    }

    /// Keeps the best.
    fn cut(&mut self) {
        if self.hits.len() > self.limit {
            self.hits.select_nth_unstable_by(self.limit - 1, Hit::order);
            self.hits.truncate(self.limit);
        }
    }

    fn into_hits(mut self) -> Vec<Hit> {
        if self.limit > 0 {
            self.cut();
        }
        self.hits.sort_unstable_by(Hit::order);
        self.hits
    }
}
