//! Every kind of problem that a check reports, with its stable code and its meaning.

mod errors;
mod remarks;

use crate::diagnostic::Severity;

/// A kind of problem that a check reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code {
    /// Its stable code.
    pub code: &'static str,
    /// Its severity; a few kinds are less severe in some places.
    pub severity: Severity,
    /// What it means, in one sentence.
    pub summary: &'static str,
    /// What to do about it, if the diagnostic itself has no help text.
    pub help: &'static str,
}

impl Code {
    /// The kind with this code.
    pub fn find(code: &str) -> Option<&'static Self> {
        CODES.iter().find(|known| known.code == code)
    }
}

/// All kinds, sorted by code.
pub const CODES: &[Code] = &sorted(errors::ERRORS, remarks::REMARKS);

const COUNT: usize = errors::ERRORS.len() + remarks::REMARKS.len();

/// Merges both tables, in byte order of the codes.
const fn sorted(errors: &[Code], remarks: &[Code]) -> [Code; COUNT] {
    let mut all = [error("", "", ""); COUNT];
    let mut taken = 0;
    while taken < COUNT {
        let next = if taken < errors.len() { errors[taken] } else { remarks[taken - errors.len()] };
        let mut at = taken;
        while at > 0 && is_before(next.code, all[at - 1].code) {
            all[at] = all[at - 1];
            at -= 1;
        }
        all[at] = next;
        taken += 1;
    }
    all
}

/// Whether one code sorts before another, by bytes.
const fn is_before(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return one[at] < other[at];
        }
        at += 1;
    }
    one.len() < other.len()
}

const fn error(code: &'static str, summary: &'static str, help: &'static str) -> Code {
    Code { code, severity: Severity::Error, summary, help }
}

const fn warning(code: &'static str, summary: &'static str, help: &'static str) -> Code {
    Code { code, severity: Severity::Warning, summary, help }
}

const fn hint(code: &'static str, summary: &'static str, help: &'static str) -> Code {
    Code { code, severity: Severity::Hint, summary, help }
}

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
        for code in CODES {
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
