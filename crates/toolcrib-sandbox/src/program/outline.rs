//! A command's outline, for display before it runs.

use std::ffi::OsStr;
use std::path::Path;

use super::Command;
use crate::Confinement;

/// What a [`Command`] would start, to be shown: no value of a variable, and nothing of what it reads.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outline<'c> {
    /// The program and its arguments.
    pub argv: Vec<&'c OsStr>,
    /// Names of the variables that were set for it.
    pub env: Vec<&'c OsStr>,
    /// The directory it starts in; `None`: its scratch directory.
    pub cwd: Option<&'c Path>,
    /// How many bytes it reads on standard input.
    pub stdin_bytes: usize,
    /// How many bytes of standard output are kept.
    pub output_bytes: usize,
    /// What it may do and use up.
    pub confinement: &'c Confinement,
}

impl Command {
    /// What it would start.
    pub fn outline(&self) -> Outline<'_> {
        let here = || self.cwd.as_deref().unwrap_or(Path::new("."));
        Outline {
            argv: std::iter::once(&self.program).chain(&self.args).map(AsRef::as_ref).collect(),
            env: self.env.iter().map(|(name, _)| name.as_os_str()).collect(),
            cwd: (!self.in_scratch).then(here),
            stdin_bytes: self.stdin.len(),
            output_bytes: self.stdout.head.saturating_add(self.stdout.tail),
            confinement: &self.confinement,
        }
    }
}
