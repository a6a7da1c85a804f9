//! Near names: the few known names that somebody may have meant by an unknown one.
//!
//! Each candidate gets a cost, or is no suggestion at all:
//!
//! | cost | how the candidate differs from the query | example |
//! |---|---|---|
//! | 0 | case and separators only | `readFile` → `read_file` |
//! | 1 | the same words in another order | `file_read` → `read_file` |
//! | 2 × d | d letters typed wrong, within [`typo_limit`] | `raed_file` → `read_file` |
//! | 3 + 2 × d | the same, after a namespace is taken off the query | `mcp__fs__read_file` → `read_file` |
//! | 3 | the query has more words | `read_file_tool` → `read_file` |
//! | 5 | the candidate has more words, and at most two others do too | `disk` → `disk_usage` |
//!
//! So one wrong letter is the likelier reading than a whole word too many, and that in turn than two
//! wrong letters. Equal costs go by the letters left over, then by name.

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

/// The most names one query is answered with: more than three would be a listing, not a hint.
pub const MAX_SUGGESTIONS: usize = 3;

/// The longest query that is looked at, in bytes. A tool name has at most 64, a namespace doubles
/// that; anything longer is no misspelt name, and looking at it would cost time its sender chooses.
pub const MAX_QUERY: usize = 256;

/// The names among `candidates` that `query` was probably meant to be: at most
/// [`MAX_SUGGESTIONS`], the likeliest first, none if nothing is near.
///
/// The answer depends on the set of candidates alone, not on their order. A candidate equal to the
/// query is never suggested. An empty query and one over [`MAX_QUERY`] bytes have no near names.
///
/// Distances count bytes, with ASCII case and separators ignored: a letter outside ASCII weighs as
/// many edits as it differs in bytes.
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
    for name in candidates {
        let fingerprint = Fingerprint::of_letters(name);
        if query.may_match(fingerprint)
            && let Some(nearness) = query.nearness(name, fingerprint)
        {
            ranking.offer(nearness, name);
        }
    }
    ranking.into_names()
}

/// [`near_names`] for candidates whose fingerprints are kept: only the few that these do not rule
/// out are asked for, by their places. `None` for one that is no candidate this time.
///
/// Fingerprints of other names than those that are handed out can hide a name or lose time, nothing
/// worse.
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
    ranking.into_names()
}

/// The most letters of a name of `len` that may be wrong: none of 1 or 2, then roughly a quarter,
/// never more than four.
///
/// A third, which compilers allow for identifiers in scope, is too much here. Real tool names share
/// `get`, `list` and `user`: of 5,548 taken from public catalogues, a third finds a neighbour for
/// every second one, a quarter for every fifth.
const fn typo_limit(len: usize) -> usize {
    match len {
        0..=2 => 0,
        3..=5 => 1,
        6..=9 => 2,
        10..=14 => 3,
        _ => 4,
    }
}
