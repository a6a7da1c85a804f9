//! A word in the index: two numbers instead of a text.

use super::stem::stem;
use super::words::each_word;

/// The stem of a word, ordered by its first letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word {
    /// The first eight bytes; a shorter word is padded with zeros.
    pub(super) head: u64,
    /// FNV-1a of all bytes, equal on every machine, so that answers are, too. Two words with one hash would count as
    /// one word, which does no harm.
    pub(super) hash: u64,
}

impl Word {
    /// The word with this stem.
    pub(super) fn of(stem: &str) -> Self {
        let hash = stem.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { head: head(stem), hash }
    }

    /// The lowest and highest first letters of words that begin with `beginning`; `None` if it is too short to be
    /// useful, or too long to tell.
    pub(super) fn beginning_with(beginning: &str) -> Option<(u64, u64)> {
        let len = beginning.len();
        let telling = beginning.chars().count() >= 3 || !beginning.is_ascii();
        (telling && len <= 8).then(|| {
            let first = head(beginning);
            (first, first | u64::MAX.checked_shr(8 * u32::try_from(len).unwrap_or(8)).unwrap_or(0))
        })
    }
}

fn head(text: &str) -> u64 {
    let bytes = text.bytes().chain(std::iter::repeat(0)).take(8);
    bytes.fold(0, |head, byte| head << 8 | u64::from(byte))
}

/// Calls `take` with each word of a text, as written in lower case and as the index has it.
pub(super) fn each_stem(text: &str, mut take: impl FnMut(&str, Word)) {
    let mut buffer = String::new();
    each_word(text, |written| {
        buffer.clear();
        buffer.push_str(written);
        stem(&mut buffer);
        take(written, Word::of(&buffer));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_between_the_ends_of_their_beginnings() {
        let word = Word::of("directori");
        for (beginning, found) in
            [("dir", true), ("dire", true), ("director", true), ("dis", false), ("zzz", false)]
        {
            let (first, last) = Word::beginning_with(beginning).unwrap();
            assert_eq!((first..=last).contains(&word.head), found, "{beginning}");
        }
        assert_eq!(Word::beginning_with("di"), None);
        assert_eq!(Word::beginning_with("directory"), None);
        assert!(Word::beginning_with("天").is_some());
    }
}
