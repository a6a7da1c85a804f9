//! Which documents fit a question best.

use super::index::{Index, Posting};
use super::query::Query;
use super::word::Word;
use super::{Field, Hit, Match};

/// What each part of a question counts beside the whole.
const PART: f32 = 0.7;

/// How much it adds when a question has all words of a name.
const COVERED_NAME: f32 = 0.5;

/// What a word is worth that a word of the question is only the beginning of.
const BEGINNING: f32 = 0.5;

/// Words that a beginning stands for: the first ones.
const MAX_BEGUN: usize = 16;

/// Fillers that more than one in so many documents have are left out: they cost the most, and say
/// nothing.
const SELDOM: usize = 4;

/// Documents that are scored at once: their scores stay in the processor's nearest cache.
const BLOCK: usize = 1_024;

/// A word of the question where it stands.
struct Found<'i> {
    postings: &'i [Posting],
    /// What it is worth at most: for its rarity, and by itself.
    gain: f32,
    /// The rows of a document's scores that it adds to: the whole, and the parts it stands in.
    rows: Vec<usize>,
    filler: bool,
    /// Which of the question's words it stands for.
    wanted: usize,
}

/// What the words of one part of the question are worth in one document.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    worth: f32,
    /// The rarities of the words that stand in its name.
    covered: f32,
}

/// The documents that fit, the best first.
pub(super) fn rank(
    index: &Index,
    query: &Query,
    limit: usize,
    allowed: impl Fn(usize) -> bool,
) -> Vec<Hit> {
    // Of each document a score for the whole question, and one for each part.
    let rows = 1 + query.parts;
    let mut found = found(index, query);
    let mut candidates = Candidates::new(rows);
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

/// Adds what a word is worth to the scores of the documents of a block, and goes on to the next.
fn add(found: &mut Found<'_>, start: usize, rows: usize, scores: &mut [Score]) {
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
            // What says little adds to what was found, and finds nothing.
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
    /// What each is worth to the whole and to each part.
    worth: Vec<f32>,
    /// The most that any is worth to each of them.
    best: Vec<f32>,
}

impl Candidates {
    fn new(rows: usize) -> Self {
        Self { documents: Vec::new(), worth: Vec::new(), best: vec![0.0; rows] }
    }

    fn push(&mut self, document: usize, row: &[Score], name: f32) {
        self.documents.push(document);
        for (score, best) in row.iter().zip(&mut self.best) {
            let covered = if score.covered > 0.0 { (score.covered / name).min(1.0) } else { 0.0 };
            let worth = score.worth * (1.0 + COVERED_NAME * covered);
            *best = best.max(worth);
            self.worth.push(worth);
        }
    }

    fn best(self, limit: usize) -> Vec<Hit> {
        let mut shortlist = Shortlist::new(limit);
        let rows = self.worth.chunks_exact(self.best.len());
        for (position, row) in self.documents.into_iter().zip(rows) {
            shortlist.offer(Hit { position, score: together(row, &self.best) });
        }
        shortlist.into_hits()
    }
}

/// The best of the parts, beside the whole: whoever answers one of several things that are asked for
/// fits as well as whoever answers a question that is one.
fn together(row: &[f32], best: &[f32]) -> f32 {
    let relative = |(worth, best): (&f32, &f32)| if *best > 0.0 { worth / best } else { 0.0 };
    let mut relative = row.iter().zip(best).map(relative);
    let whole = relative.next().unwrap_or(0.0);
    relative.reduce(f32::max).map_or(whole, |part| PART * part + (1.0 - PART) * whole)
}

/// The words of the question that stand anywhere; those that say little at the end.
fn found<'i>(index: &'i Index, query: &Query) -> Vec<Found<'i>> {
    let mut all: Vec<Found<'i>> = Vec::with_capacity(query.wanted.len());
    let found = |number: usize, word: usize, worth: f32| {
        let wanted = &query.wanted[number];
        let whole = wanted.whole.then_some(0).into_iter();
        let parts = (0..query.parts).filter(|part| wanted.parts >> part & 1 == 1);
        Found {
            postings: index.postings(word),
            gain: worth * index.rarity(word),
            rows: whole.chain(parts.map(|part| part + 1)).collect(),
            filler: wanted.is_filler(),
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
    // Nobody has any of the words: then they are beginnings of others.
    if all.first().is_none_or(|first| first.filler) {
        for (number, wanted) in query.wanted.iter().enumerate().filter(|(_, it)| !it.synonym) {
            let ends = Word::beginning_with(&wanted.written).filter(|_| !wanted.is_filler());
            let begun = ends.map_or(0..0, |(first, last)| index.between(first, last));
            let begun = begun.take(MAX_BEGUN);
            all.extend(begun.map(|word| found(number, word, BEGINNING * wanted.worth)));
        }
        all.sort_by_key(|found| found.filler);
    }
    all
}

/// Which words of the question stand in a document, and where.
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
    /// What a hit must exceed, once there are enough.
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
