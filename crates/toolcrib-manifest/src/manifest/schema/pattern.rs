//! Whether a regular expression can be used, found out without compiling it.
//!
//! Compiling patterns would be most of what it costs to load a manifest, and a server with thousands
//! of tools calls few of them. What can keep a pattern from compiling is its text, which is parsed
//! here as the compiler does, and the size of its program, which is bounded from above. What the
//! bound leaves open is left to the compiler.

use regex_syntax::hir::{Class, Hir, HirKind, Look};
use regex_syntax::utf8::Utf8Sequences;

/// Programs of so many states compile: the compiler refuses those of more than 10 MiB, and a state
/// takes fewer than 100 bytes.
const STATES_MAX: u64 = 20_000;

/// Whether a pattern as JSON Schema writes them (ECMA-262) compiles. `false` means that only the
/// compiler can tell.
pub(in crate::manifest) fn surely_compiles(pattern: &str) -> bool {
    if jsonschema_regex::analyze_pattern(pattern).is_some() {
        return true; // Matched without a program.
    }
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return false };
    regex_syntax::parse(&translated).is_ok_and(|hir| states(&hir) <= STATES_MAX)
}

/// The most states that the program of an expression has, with all that leads from one to another.
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
        // They need tables that a compiler can be built without.
        HirKind::Look(
            Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode,
        ) => u64::MAX,
        HirKind::Empty | HirKind::Look(_) => 1,
        // A part that is repeated is compiled as often as it may be there.
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

    /// What the compiler says, with half the room that it has.
    fn compiles_in_half(pattern: &str) -> bool {
        let translated = jsonschema_regex::to_rust_regex(pattern);
        let compile = |text: &str| RegexBuilder::new(text).size_limit(5 << 20).build().is_ok();
        translated.is_ok_and(|text| compile(&text))
    }

    #[test]
    fn patterns_as_people_write_them_need_no_compiler() {
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
    fn what_cannot_be_told_without_compiling_is_left_to_the_compiler() {
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

    /// Expressions with all that makes programs large, some of them just too large.
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
        fn what_is_said_to_compile_compiles_with_room_to_spare(pattern in expression()) {
            if surely_compiles(&pattern) {
                prop_assert!(compiles_in_half(&pattern), "{pattern}");
            }
        }
    }
}
