//! Probable mistakes in a valid config, each with its position.

use std::path::PathBuf;

#[cfg(feature = "http")]
use toolcrib_http::HttpError;
use toolcrib_manifest::directory::{DirectoryLoad, FileLoad};
use toolcrib_manifest::{Diagnostic, Severity};
use toolcrib_runners::Secrets;

use super::{Config, LoadedConfig};
use crate::Toolcrib;

/// A probable mistake in a config that is valid otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigFinding {
    /// The path of the value: keys, and positions in lists.
    pub path: Vec<String>,
    /// The kind of problem, one of [`CODES`](toolcrib_manifest::CODES).
    pub code: &'static str,
    /// The message, as one sentence.
    pub message: String,
    /// How to fix it.
    pub help: String,
    /// How bad it is: an error if something is refused, a hint if it matters only on the machine where the server runs.
    pub severity: Severity,
}

impl ConfigFinding {
    /// A name that matches nothing.
    pub(super) fn unmatched(path: &[&str], message: String, help: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|&key| key.to_owned()).collect(),
            code: "unmatched-name",
            message,
            help: help.into(),
            severity: Severity::Warning,
        }
    }

    /// A setting that is refused wherever it is used.
    pub(super) fn refused(path: &[&str], message: String, help: impl Into<String>) -> Self {
        let found = Self::unmatched(path, message, help);
        Self { code: "refused-setting", severity: Severity::Error, ..found }
    }
}

impl Config {
    /// Settings that are valid one by one and with which no server starts, or runs no program.
    pub fn refused_settings(&self) -> Vec<ConfigFinding> {
        let mut found = Vec::new();
        #[cfg(feature = "http")]
        if let Err(error) = self.server.check() {
            let path: Vec<&str> = match &error {
                HttpError::ReservedName { name } | HttpError::SameToken { one: name, .. } => {
                    vec!["server", "tokens", name]
                }
                _ => vec!["server", "no_auth"],
            };
            let message = format!("`toolcrib serve` does not start: {error}");
            found.push(ConfigFinding::refused(&path, message, "correct one of these settings"));
        }
        if std::path::absolute(&self.workspace.root).is_ok_and(|root| root.parent().is_none()) {
            let message = "`workspace.root` is `/`: no program runs, because programs could change what decides what this \
                           server runs";
            let help = "set it to a folder that is only for the tools' work";
            found.push(ConfigFinding::refused(&["workspace", "root"], message.to_owned(), help));
        }
        found
    }

    /// Secrets that the config names and that are missing on this machine, as far as this is known
    /// without running commands. Other machines may have them.
    pub fn missing_secrets(&self) -> Vec<ConfigFinding> {
        missing_of(&Secrets::look(self.secret_sources()))
    }
}

impl Toolcrib {
    /// Secrets that the config names and that this crib does not have. Secrets in variables count as
    /// they were when the crib was built.
    pub fn missing_secrets(&self) -> Vec<ConfigFinding> {
        missing_of(&self.secrets)
    }
}

fn missing_of(secrets: &Secrets) -> Vec<ConfigFinding> {
    let findings = secrets.missing().into_iter().map(|missing| ConfigFinding {
        path: vec!["secrets".to_owned(), missing.name.clone()],
        code: "missing-secret",
        message: format!("the secret `{}` is missing: {}", missing.name, missing.reason),
        help: "supply it where the server runs; until then, tools that need it are unavailable"
            .to_owned(),
        severity: Severity::Hint,
    });
    findings.collect()
}

impl LoadedConfig {
    /// Converts findings to problems of the file, variable or flag that each value comes from.
    pub fn located(&self, findings: &[ConfigFinding]) -> Vec<FileLoad> {
        let mut files: Vec<FileLoad> = Vec::new();
        for finding in findings {
            let problem = Diagnostic::about(finding.code, 0..0, finding.message.clone());
            let problem = problem.help(finding.help.clone());
            let problem = match finding.severity {
                Severity::Error => problem.as_error(),
                Severity::Hint => problem.as_hint(),
                Severity::Warning => problem,
            };
            let (file, problem) = self.place(&finding.path, problem);
            match files.iter_mut().find(|known| known.path == file.path) {
                Some(known) => known.add(problem),
                None => {
                    files.push(FileLoad::of_other(file.path, file.text, vec![problem]));
                }
            }
        }
        files
    }

    /// Findings with their positions, one line each, for a log.
    pub fn reports(&self, findings: &[ConfigFinding]) -> Vec<String> {
        let report = |finding: &ConfigFinding| {
            let problem = Diagnostic::about(finding.code, 0..0, finding.message.clone());
            let (file, problem) = self.place(&finding.path, problem);
            let path = file.path.display();
            if file.text.is_empty() {
                format!("{path}: {}", problem.message)
            } else {
                let (line, column) = problem.position(&file.text);
                format!("{path}:{line}:{column}: {}", problem.message)
            }
        };
        findings.iter().map(report).collect()
    }

    /// Sets the position in the config for each of its manifest directories that cannot be read.
    pub fn locate_directories(&self, files: &mut DirectoryLoad) {
        for unread in &mut files.unreadable {
            let mut dirs = self.config().manifests.dirs.iter();
            let Some(at) = dirs.position(|dir| *dir == unread.path) else { continue };
            let Some(problem) = unread.loaded.diagnostics.first() else { continue };
            let mut problem = problem.clone();
            problem.message = format!(
                "`manifests.dirs` names `{}`, which cannot be read: {}",
                unread.path.display(),
                problem.message
            );
            let at = at.to_string();
            let path = ["manifests", "dirs", at.as_str()].map(str::to_owned);
            let (file, problem) = self.place(&path, problem);
            *unread = FileLoad::of_other(file.path, file.text, vec![problem]);
        }
    }

    /// A problem with its position, and the file, variable or flag that contains it.
    fn place(&self, path: &[String], problem: Diagnostic) -> (ConfigSource, Diagnostic) {
        let found = self.problem_at(path, problem);
        let path = match (found.origin, self.file()) {
            (Some(origin), _) => {
                return (
                    ConfigSource { path: origin.into(), text: String::new() },
                    found.diagnostic,
                );
            }
            (None, Some(file)) => file.to_owned(),
            (None, None) => PathBuf::from("config"),
        };
        (ConfigSource { path, text: self.text().to_owned() }, found.diagnostic)
    }
}

/// The file, variable or flag that a value of a config comes from.
struct ConfigSource {
    path: PathBuf,
    /// The text of a file; empty for a variable or a flag.
    text: String,
}
