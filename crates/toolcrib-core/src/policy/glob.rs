//! Globs over plain text: `*` is any text, `?` is any one character, all else is itself.

use regex::Regex;

/// A compiled glob.
#[derive(Debug, Clone)]
pub(super) enum Glob {
    /// Everything.
    Any,
    /// This very text.
    Literal(String),
    /// Whatever it matches from end to end.
    Pattern(Regex),
}

impl Glob {
    /// Fails, with the reason, only if the glob is too long to compile.
    pub(super) fn new(glob: &str) -> Result<Self, String> {
        if glob == "*" {
            return Ok(Self::Any);
        }
        if !glob.contains(['*', '?']) {
            return Ok(Self::Literal(glob.to_owned()));
        }
        let mut pattern = String::from(r"\A(?s:");
        for character in glob.chars() {
            match character {
                '*' => pattern.push_str(".*"),
                '?' => pattern.push('.'),
                other => pattern.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
            }
        }
        pattern.push_str(r")\z");
        Regex::new(&pattern)
            .map(Self::Pattern)
            .map_err(|error| format!("`{glob}` cannot be used as a glob: {error}"))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Literal(literal) => literal == text,
            Self::Pattern(pattern) => pattern.is_match(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn only_stars_and_question_marks_are_special() {
        for (glob, yes, no) in [
            ("*", &["", "a\nb"][..], &[][..]),
            ("a", &["a"], &["", "aa", "A"]),
            ("a*", &["a", "ab", "a/b\nc"], &["ba"]),
            ("*.txt", &[".txt", "a.txt"], &["atxt", "a.txt "]),
            ("?", &["a", "é", "\n"], &["", "ab"]),
            ("[a]*", &["[a]", "[a]b"], &["a"]),
            ("(a|b)$?", &["(a|b)$c"], &["a"]),
        ] {
            let compiled = Glob::new(glob).expect("it is short");
            for text in yes {
                assert!(compiled.matches(text), "{glob} and {text:?}");
            }
            for text in no {
                assert!(!compiled.matches(text), "{glob} and {text:?}");
            }
        }
    }
}
