//! When two names may refer to one file: some file systems fold case and Unicode forms, and ignore
//! invisible characters (APFS, HFS+, FAT, and ext4 if enabled for a folder).

use std::ffi::OsStr;

use unicode_normalization::UnicodeNormalization as _;

/// Whether both names may refer to the same file on some file system.
pub(super) fn same(a: &OsStr, b: &OsStr) -> bool {
    match (a.to_str(), b.to_str()) {
        (Some(a), Some(b)) if !(a.is_ascii() && b.is_ascii()) => folded(a) == folded(b),
        _ => a.eq_ignore_ascii_case(b),
    }
}

/// A key that all names have in common that may refer to one file.
pub(super) fn folded(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // Folding via capitals: the long s and the Kelvin sign are not the small letters of others.
    let seen = name.nfd().filter(|c| !is_ignorable(*c));
    seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd().collect()
}

/// The characters with the Unicode property `Default_Ignorable_Code_Point`.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn what_some_file_system_takes_for_one_name_is_one() {
        for (a, b) in [
            (".ssh", ".SSH"),
            (".ssh", ".\u{17f}\u{17f}h"),
            (".kube", ".\u{212a}ube"),
            (".git", ".g\u{200c}it"),
            ("gr\u{fc}n", "GRU\u{308}N"),
            ("stra\u{df}e", "STRASSE"),
        ] {
            assert!(same(a.as_ref(), b.as_ref()), "{a} {b}");
            assert_eq!(folded(a), folded(b));
        }
    }

    #[test]
    fn other_names_are_others_whatever_their_bytes() {
        for (a, b) in [("a", "b"), (".git", ".gitignore"), ("gr\u{fc}n", "grun")] {
            assert!(!same(a.as_ref(), b.as_ref()), "{a} {b}");
        }
        let (a, b) = (OsStr::from_bytes(b"\xff"), OsStr::from_bytes(b"\xfe"));
        assert!(same(a, a) && !same(a, b) && !same(a, "\u{ff}".as_ref()));
    }
}
