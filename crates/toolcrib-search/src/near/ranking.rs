//! Keeps the best few near names.

use super::MAX_SUGGESTIONS;

/// How the query may differ from the name that was meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum SpellingMatch {
    /// This many letters are wrong; none if only case and separators differ.
    Spelled { wrong: usize },
    /// The same words in another order.
    Reordered,
    /// Like `Spelled`, after a namespace.
    Namespaced { wrong: usize },
    /// The query has all words of the name, and more.
    WordsAdded,
    /// The query has some of the words of the name.
    WordsMissing,
    /// Each has words that the other lacks, and most letters are in words of both.
    WordsShared,
}

impl SpellingMatch {
    /// How unlikely it is: the table at the top of this module's parent.
    pub(super) const fn cost(self) -> usize {
        match self {
            Self::Spelled { wrong } => 2 * wrong,
            Self::Reordered => 1,
            Self::Namespaced { wrong } => 3 + 2 * wrong,
            Self::WordsAdded => 3,
            Self::WordsMissing => 5,
            Self::WordsShared => 7,
        }
    }
}

/// The sort key of a name.
#[derive(Clone, Copy)]
pub(super) struct NearnessKey {
    /// The most likely difference.
    pub(super) reading: SpellingMatch,
    /// The difference in length, in letters.
    pub(super) left_over: usize,
}

/// The most likely names so far.
pub(super) struct Ranking<'a> {
    best: Shortlist<'a>,
    /// A separate list, because it counts only while it is short: words in many names suggest none of them.
    words_missing: Shortlist<'a>,
}

impl<'a> Ranking<'a> {
    pub(super) const fn new() -> Self {
        // One more than is shown, to distinguish "three" from "more than three".
        Self {
            best: Shortlist::new(MAX_SUGGESTIONS),
            words_missing: Shortlist::new(MAX_SUGGESTIONS + 1),
        }
    }

    /// Considers a name. The order of offers and repeated offers make no difference.
    pub(super) fn offer(&mut self, nearness: NearnessKey, name: &'a str) {
        let list = match nearness.reading {
            SpellingMatch::WordsMissing | SpellingMatch::WordsShared => &mut self.words_missing,
            _ => &mut self.best,
        };
        list.insert((nearness.reading.cost(), nearness.left_over, name));
    }

    /// Whether no name was near.
    pub(super) const fn is_empty(&self) -> bool {
        self.best.places.is_empty() && self.words_missing.places.is_empty()
    }

    /// The names, most likely first.
    pub(super) fn into_names(self) -> Vec<&'a str> {
        let Self { mut best, words_missing } = self;
        if words_missing.places.len() <= MAX_SUGGESTIONS {
            words_missing.places.into_iter().for_each(|place| best.insert(place));
        }
        best.places.into_iter().map(|(_, _, name)| name).collect()
    }
}

/// Cost, difference in length, name: the sort order of the answer.
type RankKey<'a> = (usize, usize, &'a str);

/// A sorted list that keeps its first few entries.
struct Shortlist<'a> {
    places: Vec<RankKey<'a>>,
    len: usize,
}

impl<'a> Shortlist<'a> {
    const fn new(len: usize) -> Self {
        Self { places: Vec::new(), len }
    }

    fn insert(&mut self, place: RankKey<'a>) {
        if let Err(at) = self.places.binary_search(&place)
            && at < self.len
        {
            self.places.insert(at, place);
            self.places.truncate(self.len);
        }
    }
}
