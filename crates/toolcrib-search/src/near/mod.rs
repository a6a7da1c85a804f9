//! Near names: the few known names that an unknown name may stand for.
//!
//! Each candidate gets a cost, or is not suggested:
//!
//! | cost | how the candidate differs from the query | example |
//! |---|---|---|
//! | 0 | case and separators only | `readFile` → `read_file` |
//! | 1 | the same words in another order | `file_read` → `read_file` |
//! | 2 × d | d mistyped letters, within [`typo_limit`] | `raed_file` → `read_file` |
//! | 3 + 2 × d | the same, after a namespace is removed from the query | `mcp__fs__read_file` → `read_file` |
//! | 3 | the query has more words | `read_file_tool` → `read_file` |
//! | 5 | the candidate has more words, and at most two others do too | `disk` → `disk_usage` |
//! | 7 | two words of at least three are the same, with half of the letters; only if there is nothing nearer, and at most three names are like this | `compute_final_speed` → `calculate_final_speed` |
//!
//! So one wrong letter counts as more likely than a whole extra word, which counts as more likely than two wrong
//! letters. Candidates of equal cost are ordered by the difference in length, then by name.

mod distance;
mod fingerprint;
mod query;
mod ranking;
mod sieve;
mod words;

use fingerprint::Fingerprint;
use query::Query;
use ranking::Ranking;

pub use sieve::Fingerprints;

/// The most names in one answer: more than three would be a listing, not a hint.
pub const MAX_SUGGESTIONS: usize = 3;

/// The longest query in bytes that is considered. A tool name has at most 64 bytes, and a namespace doubles that; a
/// longer query is not a misspelled name, and comparing it would take as long as its sender chooses.
pub const MAX_QUERY: usize = 256;

/// The names among `candidates` that `query` probably stands for: at most [`MAX_SUGGESTIONS`], the most likely first;
/// none if nothing is near.
///
/// The answer depends only on the set of candidates, not on their order. A candidate equal to the query is never
/// suggested. An empty query and one over [`MAX_QUERY`] bytes have no near names.
///
/// Distances count bytes and ignore ASCII case and separators; a letter outside ASCII counts once for each byte that
/// differs.
///
/// ```
/// use toolcrib_search::near_names;
///
/// let tools = ["disk_usage", "list_directory", "read_file", "read_files"];
/// assert_eq!(near_names("ReadFile", tools), ["read_file", "read_files"]);
/// assert_eq!(near_names("disk", tools), ["disk_usage"]);
/// ```
pub fn near_names<'a>(query: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let Some(query) = Query::new(query) else { return Vec::new() };
    let mut ranking = Ranking::new();
    let candidates: Vec<&str> = candidates.into_iter().collect();
    for &name in &candidates {
        let fingerprint = Fingerprint::of_letters(name);
        if query.may_match(fingerprint)
            && let Some(nearness) = query.nearness(name, fingerprint)
        {
            ranking.offer(nearness, name);
        }
    }
    if ranking.is_empty() && query.has_words_to_share() {
        let may_share =
            |name: &&&str| query.fingerprint().may_share_two_words(Fingerprint::of(name));
        for name in candidates.iter().filter(may_share) {
            if let Some(nearness) = query.shared(name) {
                ranking.offer(nearness, name);
            }
        }
    }
    ranking.into_names()
}

/// Like [`near_names`], for candidates with stored fingerprints: only the few names that the fingerprints do not rule
/// out are requested, by position. Return `None` for a position that is not a candidate.
///
/// If the fingerprints belong to other names, a name may be missed or time wasted, nothing worse.
///
/// ```
/// use toolcrib_search::{Fingerprints, near_names_among};
///
/// let tools = ["disk_usage", "list_directory", "read_file"];
/// let fingerprints = Fingerprints::of(tools);
/// assert_eq!(near_names_among("raed_file", &fingerprints, |at| Some(tools[at])), ["read_file"]);
/// assert!(near_names_among("raed_file", &fingerprints, |_| None).is_empty());
/// ```
pub fn near_names_among<'a>(
    query: &str,
    fingerprints: &Fingerprints,
    name: impl Fn(usize) -> Option<&'a str>,
) -> Vec<&'a str> {
    let Some(query) = Query::new(query) else { return Vec::new() };
    let mut ranking = Ranking::new();
    fingerprints.that_may_match(&query, |at, fingerprint| {
        if let Some(name) = name(at)
            && let Some(nearness) = query.nearness(name, fingerprint)
        {
            ranking.offer(nearness, name);
        }
    });
    if ranking.is_empty() && query.has_words_to_share() {
        fingerprints.that_may_share_words(&query, |at| {
            if let Some(name) = name(at)
                && let Some(nearness) = query.shared(name)
            {
                ranking.offer(nearness, name);
            }
        });
    }
    ranking.into_names()
}

/// The most wrong letters in a name of length `len`: none for 1 or 2, then roughly a quarter, never more than four.
///
/// A third, which compilers allow for identifiers in scope, is too much here. Real tool names share `get`, `list` and
/// `user`: of 5,548 names from public catalogues, with a limit of a third every second one has a neighbour, with a
/// quarter every fifth.
const fn typo_limit(len: usize) -> usize {
    match len {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        10..=14 => 3,
        _ => 4,
    }
}
