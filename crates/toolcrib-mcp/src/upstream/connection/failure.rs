//! Why there is no connection: what a model may be told, and what only the operator is.

use std::fmt;

use toolcrib_tool::visible;

use crate::upstream::review::confidential::Confidential;

/// More of a line that a server said is not kept.
const DETAIL_MAX: usize = 300;
/// So many of its last lines are kept.
const LINES_MAX: usize = 20;

/// Words of lines that say what went wrong. What stands behind such a line is often advice, and the
/// names of files with more of the same.
const TELLING: [&str; 11] = [
    "error",
    "fatal",
    "failed",
    "cannot",
    "can't",
    "could not",
    "denied",
    "refused",
    "not found",
    "panicked",
    "unable to",
];

/// Why a server cannot be used.
///
/// A server's own words are for the operator: to a model they would be a way to say something while
/// nobody called it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// In our words, as a clause about the server: `it ended with exit code 1`.
    pub(crate) reason: String,
    /// In its own words, or the system's: the line that says what went wrong.
    pub(crate) detail: Option<String>,
    /// The last lines that it said, where they are several.
    pub(crate) said: Vec<String>,
}

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: None, said: Vec::new() }
    }

    /// Adds what was said about it: the line that says what went wrong, and the last lines, without
    /// what is `confidential`, made visible and cut.
    pub(crate) fn detail(mut self, said: &str, confidential: &Confidential) -> Self {
        let said = confidential.hide(said);
        let lines: Vec<&str> =
            said.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
        if let Some(line) = telling(&lines) {
            self.detail = Some(shown(line.trim()));
        }
        if lines.len() > 1 {
            let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
            self.said = last.iter().map(|line| shown(line)).collect();
        }
        self
    }
}

/// A line without controls, cut.
fn shown(line: &str) -> String {
    let line = visible(line);
    let cut: String = line.chars().take(DETAIL_MAX).collect();
    let more = if cut.len() < line.len() { " …" } else { "" };
    cut + more
}

/// The line that says what went wrong: the first that has a word for it, and else the last. Python
/// ends with it.
fn telling<'l>(lines: &[&'l str]) -> Option<&'l str> {
    let last = lines.last().copied();
    if lines.iter().any(|line| line.starts_with("Traceback (most recent call last)")) {
        return last;
    }
    let tells = |line: &&&str| {
        let line = line.to_lowercase();
        !line.contains("warn") && TELLING.iter().any(|word| line.contains(word))
    };
    lines.iter().find(tells).copied().or(last)
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
    fn the_line_that_says_what_went_wrong_is_told() {
        let npm = "npm warn deprecated x@1: error prone\nnpm error code EACCES\nnpm error syscall mkdir\n\
                   npm error You can rerun the command with --loglevel=verbose to see the logs\n";
        let failure = Failure::new("it ended").detail(npm, &Confidential::default());
        assert_eq!(failure.detail.as_deref(), Some("npm error code EACCES"));
        assert_eq!(failure.said.len(), 4);
        let python = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    \
                      raise ValueError(x)\nModuleNotFoundError: No module named 'mcp'\n";
        let failure = Failure::new("it ended").detail(python, &Confidential::default());
        assert_eq!(failure.detail.as_deref(), Some("ModuleNotFoundError: No module named 'mcp'"));
        let many: Vec<String> = (0..50).map(|number| format!("line {number}")).collect();
        let failure = Failure::new("it ended").detail(&many.join("\n"), &Confidential::default());
        assert_eq!(failure.detail.as_deref(), Some("line 49"));
        assert_eq!(failure.said.first().map(String::as_str), Some("line 30"));
    }

    #[test]
    fn a_line_is_told_without_controls_and_cut() {
        let failure = Failure::new("it ended")
            .detail("first\nbad token \u{1b}[1m\n\n", &Confidential::default());
        assert_eq!(failure.to_string(), "it ended: bad token \\u{1b}[1m");
        let long = Failure::new("it ended").detail(&"x".repeat(500), &Confidential::default());
        assert_eq!(long.to_string().chars().count(), "it ended: ".len() + DETAIL_MAX + 2);
        assert_eq!(Failure::new("it ended").detail("\n \n", &Confidential::default()).detail, None);
    }
}
