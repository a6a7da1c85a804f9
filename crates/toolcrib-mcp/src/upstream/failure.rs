//! Why there is no connection: what a model may be told, and what only the operator is.

use std::fmt;

use toolcrib_tool::visible;

use super::confidential::Confidential;

/// More of what a server said is not kept.
const DETAIL_MAX: usize = 300;

/// Why a server cannot be used.
///
/// A server's own words are for the operator: to a model they would be a way to say something while
/// nobody called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// In our words, as a clause about the server: `it ended with exit code 1`.
    pub(crate) reason: String,
    /// In its own words, or the system's.
    pub(crate) detail: Option<String>,
}

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: None }
    }

    /// Adds what was said about it: its last line without what is `confidential`, made visible and
    /// cut.
    pub(crate) fn detail(mut self, said: &str, confidential: &Confidential) -> Self {
        let said = confidential.hide(said);
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        let shown = visible(last);
        let cut: String = shown.chars().take(DETAIL_MAX).collect();
        if !cut.is_empty() {
            let more = if cut.len() < shown.len() { " …" } else { "" };
            self.detail = Some(cut + more);
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_told_without_controls_and_cut() {
        let failure = Failure::new("it ended")
            .detail("first\nbad token \u{1b}[1m\n\n", &Confidential::default());
        assert_eq!(failure.to_string(), "it ended: bad token \\u{1b}[1m");
        let long = Failure::new("it ended").detail(&"x".repeat(500), &Confidential::default());
        assert_eq!(long.to_string().chars().count(), "it ended: ".len() + DETAIL_MAX + 2);
        assert_eq!(Failure::new("it ended").detail("\n \n", &Confidential::default()).detail, None);
    }
}
