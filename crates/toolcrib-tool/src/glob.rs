//! Globs: `*` for any run of characters, `?` for one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text with wildcards: `*` stands for any number of characters, `?` for one. Everything else
/// stands for itself, case included; the whole text has to fit.
///
/// ```
/// use toolcrib_tool::Pattern;
///
/// let pattern = Pattern::new("read_*");
/// assert!(pattern.matches("read_file") && !pattern.matches("reread_file"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Creates a pattern; every text is valid.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether the text matches.
    pub fn matches(&self, text: &str) -> bool {
        fits(&self.0, text)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Pattern {
    fn from(pattern: &str) -> Self {
        Self::new(pattern)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The usual two-pointer algorithm: only the last `*` backtracks, so the time is at most the
/// product of the lengths.
fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // After the last `*`: the rest of the pattern, and the text that it has not consumed.
    let mut star = None;
    loop {
        let text_here = text.clone();
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                if pattern.as_str().is_empty() {
                    return true;
                }
                star = Some((pattern.clone(), text_here.clone()));
                text = text_here;
            }
            (Some('?'), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => {
                let Some((behind, mut rest)) = star.take() else { return false };
                if rest.next().is_none() {
                    return false;
                }
                pattern = behind.clone();
                text = rest.clone();
                star = Some((behind, rest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;
    use proptest::prelude::*;

    /// The definition, taken literally.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=text.len()).any(|at| by_definition(rest, &text[at..])),
            (['?', pattern @ ..], [_, text @ ..]) => by_definition(pattern, text),
            ([one, pattern @ ..], [other, text @ ..]) => {
                one == other && by_definition(pattern, text)
            }
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_pattern_fits_what_its_definition_says(pattern in "[ab*?é]{0,8}", text in "[abé]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(fits(&pattern, &text), by_definition(&chars(&pattern), &chars(&text)));
        }
    }

    #[test]
    fn only_stars_and_question_marks_are_special() {
        for (pattern, yes, no) in [
            ("*", &["", "a\nb"][..], &[][..]),
            ("a*", &["a", "ab", "a/b\nc"], &["ba"]),
            ("*.txt", &[".txt", "a.txt"], &["atxt", "a.txt "]),
            ("?", &["a", "é", "\n"], &["", "ab"]),
            ("[a]*", &["[a]", "[a]b"], &["a"]),
            ("(a|b)$?", &["(a|b)$c"], &["a"]),
        ] {
            for text in yes {
                assert!(fits(pattern, text), "{pattern} and {text:?}");
            }
            for text in no {
                assert!(!fits(pattern, text), "{pattern} and {text:?}");
            }
        }
    }

    #[test]
    fn many_stars_cost_little() {
        assert!(!fits(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!fits(&format!("{}b", "a*".repeat(2_000)), &"a".repeat(20_000)));
    }
}
