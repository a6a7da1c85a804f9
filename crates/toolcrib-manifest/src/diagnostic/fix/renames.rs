//! Misspelt keys that have only one possible correction.

use crate::diagnostic::fix::Fix;
use crate::document::Entry;

/// Keys of other formats with the same meaning: the mapping, the written key, and our key. Keys
/// that would need another value or place are not in the list.
const SAME_ELSEWHERE: &[(&str, &str, &str)] = &[
    ("a tool", "arguments", "input"),
    ("a tool", "inputSchema", "input"),
    ("a tool", "input_schema", "input"),
    ("a tool", "outputSchema", "output_schema"),
    ("a tool", "parameters", "input"),
    ("`defaults`", "max_concurrent", "concurrent"),
    ("`limits`", "concurrency", "concurrent"),
    ("`limits`", "max_concurrent", "concurrent"),
    ("`limits`", "rate_limit", "rate"),
    ("`retry`", "times", "max"),
];

/// The edit that renames a key of the mapping `what` to its only possible correction: a key of
/// another format, or the only known name that is one typing slip away. `None` if the mapping
/// already has that key, or if `fits` says that the value has another type.
pub(crate) fn rename(
    what: &str,
    entry: &Entry,
    siblings: &[Entry],
    known: &[&'static str],
    fits: impl FnOnce(&str) -> bool,
) -> Option<Fix> {
    let written = entry.key.as_str();
    let same = SAME_ELSEWHERE.iter().find(|(of, from, _)| *of == what && *from == written);
    let meant = match same {
        Some((_, _, ours)) => ours,
        None => only_slip(written, known)?,
    };
    let there = siblings.iter().any(|sibling| sibling.key == meant);
    (!there && fits(meant))
        .then(|| Fix::replace(&entry.key_span, meant, format!("rename `{written}` to `{meant}`")))
}

/// The only known name that is one slip away from the written one; `None` if there are several.
pub(crate) fn only_slip<'n>(written: &str, known: &[&'n str]) -> Option<&'n str> {
    let near = toolcrib_search::near_names(written, known.iter().copied());
    let [only] = near.as_slice() else { return None };
    let only = known.iter().copied().find(|name| name == only)?;
    is_slip(written, only).then_some(only)
}

/// Whether two names differ by one slip: case and separators, or one letter added, omitted,
/// replaced, or swapped with its neighbor. Letters of short names must match, because one letter
/// makes another word.
pub(crate) fn is_slip(written: &str, meant: &str) -> bool {
    let plain = |name: &str| -> Vec<u8> {
        name.bytes()
            .filter(|byte| !matches!(byte, b'_' | b'-' | b' '))
            .map(|byte| byte.to_ascii_lowercase())
            .collect()
    };
    let (a, b) = (plain(written), plain(meant));
    if a == b {
        return true;
    }
    if a.len().min(b.len()) < 4 {
        return false;
    }
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&a[..a.len() - end.min(a.len())], &b[..b.len() - end.min(b.len())]) {
        ([], [_]) | ([_], [] | [_]) => true,
        ([first, second], [one, other]) => first == other && second == one,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_one_letter_or_a_swap() {
        for (written, meant) in [
            ("descripton", "description"),
            ("desciption", "description"),
            ("decsription", "description"),
            ("descriptions", "description"),
            ("Description", "description"),
            ("outputSchema", "output_schema"),
            ("maxlength", "maxLength"),
            ("anotations", "annotations"),
            ("annottations", "annotations"),
        ] {
            assert!(is_slip(written, meant), "{written} → {meant}");
        }
        for (written, meant) in
            [("descrption_", "des"), ("nam", "name"), ("descipton", "description"), ("", "run")]
        {
            assert!(!is_slip(written, meant), "{written} → {meant}");
        }
    }
}
