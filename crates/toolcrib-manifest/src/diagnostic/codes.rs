//! Every kind of problem that a check reports, with its stable code and its meaning. They are listed in `codes.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::diagnostic::Severity;

/// A kind of problem that a check reports.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Code {
    /// Its stable code.
    #[serde(skip)]
    pub code: String,
    /// Its severity; a few kinds are less severe in some places.
    pub severity: Severity,
    /// What it means, in one sentence.
    pub summary: String,
    /// What to do about it, if the diagnostic itself has no help text.
    pub help: String,
}

impl Code {
    /// The kind with this code.
    pub fn find(code: &str) -> Option<&'static Self> {
        let at = CODES.binary_search_by(|known| known.code.as_str().cmp(code)).ok()?;
        CODES.get(at)
    }
}

/// All kinds, sorted by code.
pub static CODES: LazyLock<Vec<Code>> = LazyLock::new(|| {
    let read: Result<BTreeMap<String, Code>, _> = toml::from_str(include_str!("codes.toml"));
    #[expect(clippy::expect_used, reason = "a constant; the test of this file reads it")]
    let read = read.expect("the table of codes is valid");
    read.into_iter().map(|(code, known)| Code { code, ..known }).collect()
});

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Collects the Rust sources in a folder and its subfolders.
    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn the_table_is_sorted_and_each_code_has_texts() {
        assert!(CODES.is_sorted_by(|a, b| a.code < b.code));
        for code in CODES.iter() {
            assert!(code.summary.ends_with('.'), "{}", code.code);
            assert!(code.help.ends_with('.') && code.help.len() > 12, "{}", code.code);
        }
    }

    #[test]
    fn every_diagnostic_of_this_crate_is_in_the_table() {
        let made = regex::Regex::new(
            r#"Diagnostic::(?:error|warning|hint)\(\s*"([a-z0-9-]+)"|unread\(\s*\w+,\s*"([a-z0-9-]+)""#,
        );
        let made = made.unwrap();
        let mut texts = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
        let found: BTreeSet<&str> = texts
            .iter()
            .flat_map(|text| made.captures_iter(text))
            .filter_map(|found| found.get(1).or(found.get(2)))
            .map(|code| code.as_str())
            .collect();
        assert!(found.len() > 50, "the sources are read: {}", found.len());
        let unknown: Vec<_> = found.iter().filter(|code| Code::find(code).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
