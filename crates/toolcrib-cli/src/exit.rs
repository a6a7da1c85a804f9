//! Exit codes.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: success.
    Success,
    /// 1: the command ran, but with a bad result: a failed call, a manifest with errors.
    Failure,
    /// 2: the command could not run: invalid arguments, an unreadable config, an occupied port.
    Usage,
    /// 3: a run waits for somebody.
    Waiting,
    /// 130: interrupted (Ctrl-C), as shells report it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::Waiting => 3,
            Exit::Interrupted => 130,
        })
    }
}
