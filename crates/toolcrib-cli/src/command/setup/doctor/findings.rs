//! What was looked at, and how it stands with it.

/// How it stands with a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is as promised.
    Good,
    /// It is worth knowing.
    Note,
    /// It works, but less than it could, or less safely.
    Warning,
    /// It does not work, or a promise does not hold.
    Failure,
}

impl Verdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) section: &'static str,
    pub(super) about: &'static str,
    pub(super) verdict: Verdict,
    pub(super) says: String,
    /// What to do.
    pub(super) help: Option<&'static str>,
    /// What a program said about it, line by line.
    pub(super) lines: Vec<String>,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    section: &'static str,
    pub(super) list: Vec<Finding>,
}

impl Findings {
    pub(super) fn section(&mut self, section: &'static str) {
        self.section = section;
    }

    pub(super) fn add(&mut self, about: &'static str, verdict: Verdict, says: impl Into<String>) {
        let (section, says) = (self.section, says.into());
        self.list.push(Finding { section, about, verdict, says, help: None, lines: Vec::new() });
    }

    pub(super) fn good(&mut self, about: &'static str, says: impl Into<String>) {
        self.add(about, Verdict::Good, says);
    }

    pub(super) fn note(&mut self, about: &'static str, says: impl Into<String>) {
        self.add(about, Verdict::Note, says);
    }

    pub(super) fn warn(
        &mut self,
        about: &'static str,
        says: impl Into<String>,
        help: &'static str,
    ) {
        self.add(about, Verdict::Warning, says);
        self.help(help);
    }

    pub(super) fn fail(
        &mut self,
        about: &'static str,
        says: impl Into<String>,
        help: &'static str,
    ) {
        self.add(about, Verdict::Failure, says);
        self.help(help);
    }

    /// A warning or a failure, as the verdict says.
    pub(super) fn trouble(
        &mut self,
        verdict: Verdict,
        about: &'static str,
        says: impl Into<String>,
        help: &'static str,
    ) {
        self.add(about, verdict, says);
        self.help(help);
    }

    pub(super) fn help(&mut self, help: &'static str) {
        if let Some(last) = self.list.last_mut() {
            last.help = Some(help);
        }
    }

    /// Adds what a program said to what was found last.
    pub(super) fn lines(&mut self, lines: Vec<String>) {
        if let Some(last) = self.list.last_mut() {
            last.lines = lines;
        }
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.list.iter().filter(|finding| finding.verdict == verdict).count()
    }
}
