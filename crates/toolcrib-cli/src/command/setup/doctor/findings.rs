//! The findings of `toolcrib doctor`.

/// The verdict of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingLevel {
    /// It is as it should be.
    Good,
    /// Worth knowing.
    Note,
    /// It works, but with restrictions or less safely.
    Warning,
    /// It does not work, or a promise does not hold.
    Failure,
}

impl FindingLevel {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// The result of one check.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) section: &'static str,
    pub(super) about: &'static str,
    pub(super) verdict: FindingLevel,
    pub(super) says: String,
    /// What to do about it.
    pub(super) help: Option<&'static str>,
    /// The output of a program about it, line by line.
    pub(super) lines: Vec<String>,
}

/// All findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    section: &'static str,
    pub(super) list: Vec<Finding>,
}

impl Findings {
    pub(super) fn section(&mut self, section: &'static str) {
        self.section = section;
    }

    pub(super) fn add(
        &mut self,
        about: &'static str,
        verdict: FindingLevel,
        says: impl Into<String>,
    ) {
        let (section, says) = (self.section, says.into());
        self.list.push(Finding { section, about, verdict, says, help: None, lines: Vec::new() });
    }

    pub(super) fn good(&mut self, about: &'static str, says: impl Into<String>) {
        self.add(about, FindingLevel::Good, says);
    }

    pub(super) fn note(&mut self, about: &'static str, says: impl Into<String>) {
        self.add(about, FindingLevel::Note, says);
    }

    pub(super) fn warn(
        &mut self,
        about: &'static str,
        says: impl Into<String>,
        help: &'static str,
    ) {
        self.add(about, FindingLevel::Warning, says);
        self.help(help);
    }

    pub(super) fn fail(
        &mut self,
        about: &'static str,
        says: impl Into<String>,
        help: &'static str,
    ) {
        self.add(about, FindingLevel::Failure, says);
        self.help(help);
    }

    /// Adds a warning or a failure, depending on the verdict.
    pub(super) fn trouble(
        &mut self,
        verdict: FindingLevel,
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

    /// Adds a program's output to the last finding.
    pub(super) fn lines(&mut self, lines: Vec<String>) {
        if let Some(last) = self.list.last_mut() {
            last.lines = lines;
        }
    }

    pub(super) fn count(&self, verdict: FindingLevel) -> usize {
        self.list.iter().filter(|finding| finding.verdict == verdict).count()
    }
}
