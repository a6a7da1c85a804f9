//! Exit codes, which tell the truth.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: it worked.
    Success,
    /// 1: it ran, and the answer is bad: a failed call, a manifest with errors.
    Failure,
    /// 2: it could not run: a wrong command line, an unreadable config, an occupied port.
    Usage,
    /// 130: interrupted (Ctrl-C), as shells report it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Interrupted => 130,
        })
    }
}
