//! Why there is no connection: the part that a model may see, and the part for the operator only.

use std::fmt;

use toolcrib_tool::visible;

use crate::upstream::review::confidential::Confidential;

/// The number of characters of one server line that are kept.
const DETAIL_MAX: usize = 300;
/// The number of last lines that are kept.
const LINES_MAX: usize = 20;

/// Words that mark a line as the error itself. Lines after it are often advice and names of log
/// files.
const ERROR_WORDS: [&str; 11] = [
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
/// A server's own words are for the operator: shown to a model, they would be an instruction
/// channel that needs no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The reason in our words, as a clause about the server: `it ended with exit code 1`.
    pub(crate) reason: String,
    /// The reason in the server's or the system's words: the line that states the error.
    pub(crate) detail: Option<String>,
    /// The last lines that the server wrote, if there are several.
    pub(crate) said: Vec<String>,
}

impl Failure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: None, said: Vec::new() }
    }

    /// Adds the server's output: the line that states the error and the last lines, with
    /// confidential values hidden, control characters escaped, and long lines cut.
    pub(crate) fn detail(mut self, said: &str, confidential: &Confidential) -> Self {
        let said = confidential.hide(said);
        let lines: Vec<&str> =
            said.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
        if let Some(line) = error_line(&lines) {
            self.detail = Some(escaped_and_cut(line.trim()));
        }
        if lines.len() > 1 {
            let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
            self.said = last.iter().map(|line| escaped_and_cut(line)).collect();
        }
        self
    }
}

/// A line with control characters escaped, cut.
fn escaped_and_cut(line: &str) -> String {
    let line = visible(line);
    let cut: String = line.chars().take(DETAIL_MAX).collect();
    let more = if cut.len() < line.len() { " …" } else { "" };
    cut + more
}

/// The line that states the error: the first that contains one of the words, else the last. A
/// Python traceback ends with it.
fn error_line<'l>(lines: &[&'l str]) -> Option<&'l str> {
    let last = lines.last().copied();
    if lines.iter().any(|line| line.starts_with("Traceback (most recent call last)")) {
        return last;
    }
    let tells = |line: &&&str| {
        let line = line.to_lowercase();
        !line.contains("warn") && ERROR_WORDS.iter().any(|word| line.contains(word))
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
    fn the_error_line_is_reported() {
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
    fn a_reported_line_is_escaped_and_cut() {
        let failure = Failure::new("it ended")
            .detail("first\nbad token \u{1b}[1m\n\n", &Confidential::default());
        assert_eq!(failure.to_string(), "it ended: bad token \\u{1b}[1m");
        let long = Failure::new("it ended").detail(&"x".repeat(500), &Confidential::default());
        assert_eq!(long.to_string().chars().count(), "it ended: ".len() + DETAIL_MAX + 2);
        assert_eq!(Failure::new("it ended").detail("\n \n", &Confidential::default()).detail, None);
    }
}
