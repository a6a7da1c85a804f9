//! Any text as a query or question, and as the tools that are searched.

use toolcrib_search::{Document, Index, Searchable};
use toolcrib_search::{Fingerprints, MAX_QUERY, MAX_SUGGESTIONS, near_names, near_names_among};

/// Panics if an unrelated name is suggested, if a name is missed that differs from the query only in case and
/// separators, or if a search finds a tool without any of the words, or returns a wrong order.
///
/// The first line is the query or question. Each further line is a tool: its name, and after a blank its description.
pub fn find_tools(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let query = lines.next().unwrap_or_default();
    let tools: Vec<(&str, &str)> =
        lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
    near(query, &tools.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    search(query, &tools);
}

fn near(query: &str, names: &[&str]) {
    let found = near_names(query, names.iter().copied());
    let kept = Fingerprints::of(names.iter().copied());
    let among = near_names_among(query, &kept, |at| Some(names[at]));
    assert_eq!(found, among, "a fingerprint hides no name");
    assert_eq!(found, near_names(query, names.iter().rev().copied()), "in any order");
    assert!(found.len() <= MAX_SUGGESTIONS && !found.contains(&query));
    assert!(found.iter().all(|name| names.contains(name)));
    // A naive comparison without distances.
    let plain = |text: &str| -> Vec<u8> {
        let counts = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        text.bytes().filter(counts).map(|byte| byte.to_ascii_lowercase()).collect()
    };
    let letters = plain(query);
    let mut same: Vec<&str> = names.iter().copied().filter(|name| plain(name) == letters).collect();
    same.sort_unstable();
    same.dedup();
    same.retain(|name| *name != query);
    let comparable = (1..=64).contains(&letters.len()) && query.len() <= MAX_QUERY;
    if comparable {
        same.truncate(MAX_SUGGESTIONS);
        assert_eq!(found[..same.len()], same, "what is spelt otherwise comes first");
    }
}

fn search(question: &str, tools: &[(&str, &str)]) {
    let documents: Vec<Document> = tools
        .iter()
        .map(|&(name, description)| {
            Document::of(&Searchable { name, description, ..Searchable::default() })
        })
        .collect();
    let index = Index::of(&documents);
    let hits = index.search(question, usize::MAX);
    assert!(hits.is_sorted_by(|one, other| {
        let order = other.score.total_cmp(&one.score);
        order.then(one.position.cmp(&other.position)).is_lt()
    }));
    for hit in &hits {
        assert!(hit.score > 0.0 && hit.score <= 1.0);
        assert!(!index.matches(question, hit.position).is_empty(), "a hit has its reasons");
    }
    let few = index.search(question, 3);
    assert_eq!(few, hits[..hits.len().min(3)]);
    let even = index.search_among(question, usize::MAX, |position| position % 2 == 0);
    assert!(even.iter().all(|hit| hit.position % 2 == 0));
    assert_eq!(even.len(), hits.iter().filter(|hit| hit.position % 2 == 0).count());
}
