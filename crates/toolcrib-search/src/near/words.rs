//! Names as letters and as words: `mcp__fs__readFile` becomes `mcpfsreadfile`, and `mcp fs read File`.

/// The bytes of a name that count, in lower case: letters, digits and everything outside ASCII.
pub(super) fn letters(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().filter(|&byte| counts(byte)).map(|byte| byte.to_ascii_lowercase())
}

/// Whether a byte is part of a word rather than a separator.
pub(super) const fn counts(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// The words of a name: split at separators and at changes of case.
///
/// Digits belong to the letters before them (`sha256`), and a run of capitals is one word up to the
/// capital that begins the next (`HTTPCheck` is `HTTP`, `Check`).
pub(super) fn words(name: &str) -> impl Iterator<Item = &str> {
    let bytes = name.as_bytes();
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + bytes.get(rest..)?.iter().position(|&byte| counts(byte))?;
        rest = start + 1;
        while bytes.get(rest).is_some_and(|&byte| counts(byte)) && !begins_word(bytes, rest) {
            rest += 1;
        }
        Some(&name[start..rest])
    })
}

/// Whether a word begins at `at`, which is inside a run of letters and not its first.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    bytes[at].is_ascii_uppercase()
        && (!bytes[at - 1].is_ascii_uppercase()
            || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase))
}

/// How the words of a query and of a name overlap, whatever their order and case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// The same words.
    Same,
    /// The query has all words of the name, and more.
    MoreInQuery,
    /// The name has all words of the query, and more.
    MoreInName,
}

/// Compares the words of a query with those of `name`; `None` if each has words that the other lacks.
///
/// Each word matches one word only. Words of the query after the 128th match none.
pub(super) fn overlap(query: &[&str], name: &str) -> Option<Overlap> {
    let mut taken = 0_u128;
    let mut more_in_name = false;
    for word in words(name) {
        let partner = query
            .iter()
            .take(128)
            .enumerate()
            .find(|(at, other)| taken >> at & 1 == 0 && other.eq_ignore_ascii_case(word));
        match partner {
            Some((at, _)) => taken |= 1 << at,
            None => more_in_name = true,
        }
    }
    let more_in_query = (taken.count_ones() as usize) < query.len();
    match (more_in_query, more_in_name) {
        (false, false) => Some(Overlap::Same),
        (true, false) => Some(Overlap::MoreInQuery),
        (false, true) => Some(Overlap::MoreInName),
        (true, true) => None,
    }
}

/// How many words of a query `name` has, too, and how many letters they have. Words of the query after the 128th do not
/// count.
pub(super) fn shared_words(query: &[&str], name: &str) -> (usize, usize) {
    let mut taken = 0_u128;
    let mut shared = 0;
    for word in words(name) {
        let mut others = query.iter().take(128).enumerate();
        let is_free = |at: usize| taken >> at & 1 == 0;
        let partner = others.find(|(at, other)| is_free(*at) && other.eq_ignore_ascii_case(word));
        if let Some((at, other)) = partner {
            taken |= 1 << at;
            shared += letters(other).count();
        }
    }
    (taken.count_ones() as usize, shared)
}

/// A name without its namespace: the part after the last `__`, `.`, `/` or `:`.
///
/// `None` if there is no namespace, or nothing after it.
pub(super) fn without_namespace(name: &str) -> Option<&str> {
    let dunder = name.rfind("__").map(|at| at + 2);
    let mark = name.rfind(['.', '/', ':']).map(|at| at + 1);
    let local = &name[dunder.max(mark)?..];
    letters(local).next().map(|_| local)
}

#[cfg(test)]
mod tests {
    use super::{Overlap, letters, overlap, shared_words, without_namespace, words};

    #[test]
    fn names_split_into_words() {
        for (name, expected) in [
            ("read_file", vec!["read", "file"]),
            ("ReadFile", vec!["Read", "File"]),
            ("HTTPCheck2xx", vec!["HTTP", "Check2xx"]),
            ("mcp__fs.read-file", vec!["mcp", "fs", "read", "file"]),
            ("sha256_Sum", vec!["sha256", "Sum"]),
            ("READ_FILE", vec!["READ", "FILE"]),
            ("größe_Änderung", vec!["größe", "Änderung"]),
            ("A", vec!["A"]),
            ("__", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(words(name).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn letters_are_folded_and_separators_dropped() {
        assert!(letters("Read-File_2.x").eq(*b"readfile2x"));
    }

    #[test]
    fn words_are_compared_in_any_order_and_case() {
        assert_eq!(overlap(&["file", "Read"], "read_file"), Some(Overlap::Same));
        assert_eq!(overlap(&["read", "file", "tool"], "FileRead"), Some(Overlap::MoreInQuery));
        assert_eq!(overlap(&["file"], "read_file"), Some(Overlap::MoreInName));
        assert_eq!(overlap(&["file", "edit"], "read_file"), None);
    }

    #[test]
    fn a_word_stands_for_one_word_only() {
        assert_eq!(overlap(&["file", "file"], "read_file"), None);
        assert_eq!(overlap(&["file", "file"], "file"), Some(Overlap::MoreInQuery));
    }

    #[test]
    fn shared_words_are_counted_with_their_letters() {
        assert_eq!(shared_words(&["compute", "final", "Speed"], "calculate_final_speed"), (2, 10));
        assert_eq!(shared_words(&["file", "file"], "file"), (1, 4));
        assert_eq!(shared_words(&["a", "b"], "c"), (0, 0));
    }

    #[test]
    fn namespaces_end_at_the_last_mark() {
        assert_eq!(without_namespace("mcp__fs__read_file"), Some("read_file"));
        assert_eq!(without_namespace("functions.read_file"), Some("read_file"));
        assert_eq!(without_namespace("a.b__c"), Some("c"));
        assert_eq!(without_namespace("read_file"), None);
        assert_eq!(without_namespace("read_file__"), None);
    }
}
