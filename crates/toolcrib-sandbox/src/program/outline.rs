//! A command's outline, for display before it runs.

use std::ffi::OsStr;
use std::path::Path;

use super::Command;
use crate::Confinement;

/// What a [`Command`] would start, for display: without values of variables and without the text of standard input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outline<'c> {
    /// The program and its arguments.
    pub argv: Vec<&'c OsStr>,
    /// The names of the variables that were set for it.
    pub env: Vec<&'c OsStr>,
    /// Its working directory; `None` means its scratch directory.
    pub cwd: Option<&'c Path>,
    /// The number of bytes of its standard input.
    pub stdin_bytes: usize,
    /// The number of bytes of standard output that are kept.
    pub output_bytes: usize,
    /// Its confinement and limits.
    pub confinement: &'c Confinement,
}

impl Command {
    /// Returns the outline of this command.
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
