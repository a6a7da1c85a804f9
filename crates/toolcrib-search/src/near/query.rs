//! A prepared query: computes how near a name is.

use super::distance::{MAX_PATTERN, Pattern};
use super::fingerprint::{Fingerprint, QueryMask};
use super::ranking::{NearnessKey, SpellingMatch};
use super::words::{Overlap, letters, overlap, shared_words, without_namespace, words};
use super::{MAX_QUERY, typo_limit};

/// The fewest letters that common words must have: `get`, `of` and `id` are in half of all names.
const MIN_SHARED: usize = 4;
/// The common words must make up at least one in this many letters of the longer name: `city` suggests `city_weather`,
/// but not `get_current_weather_forecast_for_city`.
const MIN_SHARE: usize = 4;
/// The fewest words that must be shared if each name has others, too. They must make up half of the longer name's letters.
const MIN_SHARED_WORDS: usize = 2;
/// The longest name that a mistyped query can stand for, in letters.
const MAX_SPELLED: usize = MAX_PATTERN + typo_limit(MAX_PATTERN);

/// An unknown name, prepared for comparison with many known ones.
pub(super) struct Query<'q> {
    text: &'q str,
    words: Vec<&'q str>,
    letters: usize,
    fingerprint: Fingerprint,
    whole: Option<Spelling>,
    local: Option<Spelling>,
}

/// One reading of the query as a mistyped name.
struct Spelling {
    pattern: Pattern,
    fingerprint: Fingerprint,
    limit: usize,
}

impl Spelling {
    fn new(name: &str) -> Option<Self> {
        let pattern = Pattern::new(&letters(name).collect::<Vec<_>>())?;
        let limit = typo_limit(pattern.len());
        Some(Self { pattern, fingerprint: Fingerprint::of(name), limit })
    }

    fn reach(&self) -> QueryMask {
        self.fingerprint.reach(self.limit)
    }

    fn may_match(&self, name: Fingerprint) -> bool {
        self.fingerprint.within(name, self.limit)
    }
}

impl<'q> Query<'q> {
    /// `None` for a query that has no near names, whatever the candidates.
    pub(super) fn new(text: &'q str) -> Option<Self> {
        let len = if text.len() <= MAX_QUERY { letters(text).count() } else { 0 };
        (len > 0).then(|| Self {
            text,
            words: words(text).collect(),
            letters: len,
            fingerprint: Fingerprint::of(text),
            whole: Spelling::new(text),
            local: without_namespace(text).and_then(Spelling::new),
        })
    }

    /// The fingerprint of the whole query.
    pub(super) const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The fingerprints of names for which the query may be a typo: taken as a whole, and without its namespace.
    pub(super) fn reaches(&self) -> (Option<QueryMask>, Option<QueryMask>) {
        let reach = |spelling: &Option<Spelling>| spelling.as_ref().map(Spelling::reach);
        (reach(&self.whole), reach(&self.local))
    }

    /// Whether a name with this fingerprint has to be read.
    pub(super) fn may_match(&self, name: Fingerprint) -> bool {
        self.whole.as_ref().is_some_and(|spelling| spelling.may_match(name))
            || self.local.as_ref().is_some_and(|spelling| spelling.may_match(name))
            || self.fingerprint.shares_words(name)
    }

    /// How near `name`, which has this fingerprint, is; `None` if it is not near, or equals the query.
    pub(super) fn nearness(&self, name: &str, fingerprint: Fingerprint) -> Option<NearnessKey> {
        if name == self.text {
            return None;
        }
        let mut buffer = [0; MAX_SPELLED];
        let mut len = 0;
        for byte in letters(name) {
            if let Some(place) = buffer.get_mut(len) {
                *place = byte;
            }
            len += 1;
        }
        let spelled = buffer.get(..len).and_then(|name| self.spelling(name));
        let reading = if let Some(SpellingMatch::Spelled { wrong: 0 }) = spelled {
            // Nothing can be nearer.
            spelled
        } else {
            // Finding the words of a name costs more than everything else, so it comes last.
            let worded = self.fingerprint.shares_words(fingerprint);
            let wording = worded.then(|| self.wording(name, len)).flatten();
            spelled.into_iter().chain(wording).min_by_key(|it| it.cost())
        }?;
        Some(NearnessKey { reading, left_over: self.letters.abs_diff(len) })
    }

    /// Whether some of its words may be others than those that were meant: two are right, and there are more.
    pub(super) fn has_words_to_share(&self) -> bool {
        self.words.len() > MIN_SHARED_WORDS
    }

    /// How near `name` is by the words that both have, though each has others, too.
    pub(super) fn shared(&self, name: &str) -> Option<NearnessKey> {
        let (count, shared) = shared_words(&self.words, name);
        let longer = self.letters.max(letters(name).count());
        let is_near = count >= MIN_SHARED_WORDS && 2 * shared >= longer && name != self.text;
        is_near.then(|| NearnessKey {
            reading: SpellingMatch::WordsShared,
            left_over: longer - shared,
        })
    }

    /// Reads the query as the mistyped name.
    fn spelling(&self, name: &[u8]) -> Option<SpellingMatch> {
        let wrong = |spelling: &Option<Spelling>| {
            let Spelling { pattern, limit, .. } = spelling.as_ref()?;
            pattern.distance_within(name, *limit)
        };
        let whole = wrong(&self.whole).map(|wrong| SpellingMatch::Spelled { wrong });
        whole.or_else(|| wrong(&self.local).map(|wrong| SpellingMatch::Namespaced { wrong }))
    }

    /// Reads the query as the name with words moved, added or omitted.
    fn wording(&self, name: &str, len: usize) -> Option<SpellingMatch> {
        let (few, many) = (len.min(self.letters), len.max(self.letters));
        if few < MIN_SHARED || few * MIN_SHARE < many {
            return None;
        }
        overlap(&self.words, name).map(|overlap| match overlap {
            Overlap::Same => SpellingMatch::Reordered,
            Overlap::MoreInQuery => SpellingMatch::WordsAdded,
            Overlap::MoreInName => SpellingMatch::WordsMissing,
        })
    }
}
