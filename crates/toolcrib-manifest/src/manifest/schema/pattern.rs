//! Checks whether a regular expression is valid without compiling it.
//!
//! Compiling patterns would dominate the time to load a manifest, although a server with thousands
//! of tools calls few of them. A pattern is invalid if it cannot be parsed, which is checked as the
//! compiler does, or if its program is too large, for which there is an upper bound. Only patterns
//! above the bound are left to the compiler.

use regex_syntax::hir::{Class, Hir, HirKind, Look};
use regex_syntax::utf8::Utf8Sequences;

/// The number of states up to which a program certainly compiles: the limit is 10 MiB, and a state
/// takes less than 100 bytes.
const STATES_MAX: u64 = 20_000;

/// Whether a pattern of JSON Schema (ECMA-262) certainly compiles. `false` means that only the
/// compiler can decide.
pub(in crate::manifest) fn surely_compiles(pattern: &str) -> bool {
    if jsonschema_regex::analyze_pattern(pattern).is_some() {
        return true; // Matched without a program.
    }
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return false };
    regex_syntax::parse(&translated).is_ok_and(|hir| states(&hir) <= STATES_MAX)
}

/// An upper bound for the states of an expression's program.
fn states(hir: &Hir) -> u64 {
    let all = |parts: &[Hir]| {
        parts.iter().fold(2, |sum: u64, part| sum.saturating_add(states(part)).saturating_add(2))
    };
    match hir.kind() {
        HirKind::Literal(literal) => 1 + count(literal.0.len()),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges().iter();
            let sequences = ranges.flat_map(|range| Utf8Sequences::new(range.start(), range.end()));
            2 + sequences.map(|sequence| count(sequence.len())).sum::<u64>()
        }
        HirKind::Class(Class::Bytes(class)) => 2 + count(class.ranges().len()),
        // They need tables that are optional in the compiler.
        HirKind::Look(
            Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode,
        ) => u64::MAX,
        HirKind::Empty | HirKind::Look(_) => 1,
        // A repeated part is compiled for each repetition.
        HirKind::Repetition(repetition) => {
            let copies = repetition.max.unwrap_or(repetition.min).max(1);
            states(&repetition.sub)
                .saturating_add(2)
                .saturating_mul(copies.into())
                .saturating_add(3)
        }
        HirKind::Capture(capture) => states(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
    }
}

fn count(number: usize) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::RegexBuilder;

    use super::*;

    /// Whether the pattern compiles with half of the limit.
    fn compiles_in_half(pattern: &str) -> bool {
        let translated = jsonschema_regex::to_rust_regex(pattern);
        let compile = |text: &str| RegexBuilder::new(text).size_limit(5 << 20).build().is_ok();
        translated.is_ok_and(|text| compile(&text))
    }

    #[test]
    fn common_patterns_need_no_compiler() {
        for pattern in [
            "",
            "^[a-z0-9][a-z0-9.-]{0,252}$",
            r"^\d{4}-\d{2}-\d{2}$",
            r"^\w+@\w+\.[a-z]{2,}$",
            "^(get|put|post)$",
            "[^/]+",
            r"^[\p{L} ]{1,4}$",
            "^(?:[0-9]{1,3}\\.){3}[0-9]{1,3}$",
        ] {
            assert!(surely_compiles(pattern), "{pattern}");
            assert!(compiles_in_half(pattern), "{pattern}");
        }
    }

    #[test]
    fn undecidable_patterns_are_left_to_the_compiler() {
        for pattern in [
            "(",
            "[z-a]",
            "(?=look)",
            r"(a)\1",
            "(?<n>a)(?<n>b)",
            "((a{100}){100}){100}",
            r"^\p{L}{1000}$",
            "a{4294967295}",
        ] {
            assert!(!surely_compiles(pattern), "{pattern}");
        }
    }

    /// Expressions with everything that makes programs large, some of them just too large.
    fn expression() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "[a-z]{1,8}",
            Just(r"\w".to_owned()),
            Just(r"\d".to_owned()),
            Just(".".to_owned()),
            Just("[^/]".to_owned()),
            Just(r"\p{L}".to_owned()),
            Just(r"\p{Han}".to_owned()),
            Just("[a-zäöü€𝄞]".to_owned()),
            Just("(?i:k[s-ſ])".to_owned()),
            Just("^".to_owned()),
            Just("$".to_owned()),
            Just(String::new()),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let times = (0_u32..40, 0_u32..600).prop_map(|(min, more)| (min, min + more));
            prop_oneof![
                (inner.clone(), times, any::<bool>()).prop_map(|(part, (min, max), lazy)| {
                    format!("(?:{part}){{{min},{max}}}{}", if lazy { "?" } else { "" })
                }),
                (inner.clone(), 0_u32..600).prop_map(|(part, min)| format!("({part}){{{min},}}")),
                (inner.clone(), prop_oneof!["[*+?]", Just("*?".to_owned())])
                    .prop_map(|(part, times)| format!("(?:{part}){times}")),
                proptest::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
                proptest::collection::vec(inner, 1..4)
                    .prop_map(|parts| format!("({})", parts.join("|"))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn accepted_patterns_compile_with_half_of_the_limit(pattern in expression()) {
            if surely_compiles(&pattern) {
                prop_assert!(compiles_in_half(&pattern), "{pattern}");
            }
        }
    }
}
