//! Collects the problems of one file while it is checked.

use std::collections::HashSet;
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

    /// Whether an error is listed at a place within the span, of this code if one is given.
    pub(crate) fn has_error_within(&self, span: &Span, code: Option<&str>) -> bool {
        self.list.iter().any(|found| {
            found.severity == Severity::Error
                && span.contains(&found.span.start)
                && code.is_none_or(|code| found.code == code)
        })
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
