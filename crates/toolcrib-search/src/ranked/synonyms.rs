//! Synonyms for the words of a question.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::word::{Word, each_stem};

/// The synonyms of a word.
pub(super) fn synonyms(word: Word) -> &'static [Word] {
    TABLE.get(&word.hash).map_or(&[], Vec::as_slice)
}

static TABLE: LazyLock<HashMap<u64, Vec<Word>>> = LazyLock::new(|| {
    let mut table: HashMap<u64, Vec<Word>> = HashMap::new();
    let groups = include_str!("synonyms.txt").lines().filter(|line| !line.starts_with('#'));
    for group in groups {
        let mut words = Vec::new();
        each_stem(group, |_, word| words.push(word));
        for word in &words {
            let known = table.entry(word.hash).or_default();
            let others = words.iter().filter(|other| *other != word);
            for other in others {
                if !known.contains(other) {
                    known.push(*other);
                }
            }
        }
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Word {
        let mut found = None;
        each_stem(text, |_, word| found = Some(word));
        found.unwrap()
    }

    #[test]
    fn synonyms_go_both_ways_and_none_is_its_own() {
        assert!(synonyms(word("folder")).contains(&word("directories")));
        assert!(synonyms(word("directory")).contains(&word("folders")));
        assert!(synonyms(word("axolotl")).is_empty());
        for (hash, others) in TABLE.iter() {
            assert!(others.iter().all(|other| other.hash != *hash));
        }
    }
}
