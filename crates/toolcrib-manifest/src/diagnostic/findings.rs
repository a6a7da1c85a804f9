//! Collects the problems of one file while it is checked.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::diagnostic::position::{Span, clamp};
use crate::diagnostic::{Diagnostic, Severity};

/// How many problems of one severity are listed per file. The others are counted. This bounds only
/// the list: a file is always checked completely.
const LISTED_MAX: usize = 1_000;

/// The problems of one file, collected while it is checked.
#[derive(Debug)]
pub(crate) struct Findings<'t> {
    /// The text, without a byte order mark.
    pub(crate) text: &'t str,
    list: Vec<Diagnostic>,
    /// Digests of the problems so far: an aliased block is checked at every use but reported once.
    added: HashSet<u64>,
    /// The codes of all errors by the place where they begin, so that the errors of one tool are found without
    /// looking at those of the others.
    errors_by_start: BTreeMap<usize, Vec<&'static str>>,
    errors: SeverityCount,
    warnings: SeverityCount,
    hints: SeverityCount,
    /// The maximum number of listed problems of one severity.
    limit: usize,
}

/// The counters of one severity.
#[derive(Debug, Default)]
struct SeverityCount {
    listed: usize,
    unlisted: usize,
    /// The place of the first problem that is not listed.
    from: Option<Span>,
}

impl SeverityCount {
    /// Counts a problem; returns whether it is listed.
    fn take(&mut self, span: &Span, limit: usize) -> bool {
        let is_listed = self.listed < limit;
        if is_listed {
            self.listed += 1;
        } else {
            self.unlisted += 1;
            self.from.get_or_insert_with(|| span.clone());
        }
        is_listed
    }

    /// The diagnostic that stands for the problems that are not listed.
    fn rest(&self, severity: Severity) -> Option<Diagnostic> {
        let place = self.from.as_ref()?;
        let kind = severity.as_str();
        let message = match self.unlisted {
            1 => format!("this file has one more {kind}, which is not listed"),
            more => format!("this file has {more} more {kind}s, which are not listed"),
        };
        let rest = Diagnostic::error("unlisted", place, message)
            .help("the whole file was checked; correct the listed problems, then check again");
        Some(Diagnostic { severity, ..rest })
    }
}

impl<'t> Findings<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            list: Vec::new(),
            added: HashSet::new(),
            errors_by_start: BTreeMap::new(),
            errors: SeverityCount::default(),
            warnings: SeverityCount::default(),
            hints: SeverityCount::default(),
            limit: LISTED_MAX,
        }
    }

    /// Lists every problem, however many there are.
    pub(crate) fn unlimited(text: &'t str) -> Self {
        Self { limit: usize::MAX, ..Self::new(text) }
    }

    pub(crate) fn add(&mut self, mut diagnostic: Diagnostic) {
        diagnostic.span = clamp(self.text, &diagnostic.span);
        for (span, _) in &mut diagnostic.secondary {
            *span = clamp(self.text, span);
        }
        let mut digest = DefaultHasher::new();
        (&diagnostic.span, diagnostic.code, &diagnostic.message).hash(&mut digest);
        if !self.added.insert(digest.finish()) {
            return;
        }
        if diagnostic.severity == Severity::Error {
            self.errors_by_start.entry(diagnostic.span.start).or_default().push(diagnostic.code);
        }
        let tally = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
            Severity::Hint => &mut self.hints,
        };
        if tally.take(&diagnostic.span, self.limit) {
            self.list.push(diagnostic);
        }
    }

    pub(crate) fn add_all(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.add(diagnostic));
    }

    pub(crate) fn leave_out_hints(&mut self) {
        self.list.retain(|found| found.severity != Severity::Hint);
        self.hints = SeverityCount::default();
    }

    /// Whether there is an error at a place within the span, of this code if one is given.
    pub(crate) fn has_error_within(&self, span: &Span, code: Option<&str>) -> bool {
        self.error_codes_within(span).any(|found| code.is_none_or(|code| found == code))
    }

    /// The codes of the errors that begin within the span.
    fn error_codes_within(&self, span: &Span) -> impl Iterator<Item = &'static str> {
        let within = if span.is_empty() { 0..0 } else { span.clone() };
        self.errors_by_start.range(within).flat_map(|(_, codes)| codes).copied()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors.listed > 0
    }

    /// Whether another error would be listed and not only counted.
    pub(crate) fn lists_errors(&self) -> bool {
        self.errors.listed < self.limit
    }

    /// The listed problems in the order of the text, with a diagnostic for the number of unlisted
    /// ones.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        let rest = [
            self.errors.rest(Severity::Error),
            self.warnings.rest(Severity::Warning),
            self.hints.rest(Severity::Hint),
        ];
        self.list.extend(rest.into_iter().flatten());
        self.list.sort_by_key(|diagnostic| diagnostic.span.start);
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_one_tool_are_found_without_looking_at_those_of_the_others() {
        let text = "x".repeat(20_000);
        let mut findings = Findings::unlimited(&text);
        for at in 0..18_000 {
            findings.add(Diagnostic::error("wrong-type", &(at..at + 1), "a problem"));
        }
        assert_eq!(findings.error_codes_within(&(9_000..9_003)).count(), 3, "and no other is read");
        assert!(findings.has_error_within(&(9_000..9_003), Some("wrong-type")));
        assert!(!findings.has_error_within(&(9_000..9_003), Some("unknown-key")));
        assert!(!findings.has_error_within(&(18_000..20_000), None));
        assert!(!findings.has_error_within(&(5..5), None));
    }
}
