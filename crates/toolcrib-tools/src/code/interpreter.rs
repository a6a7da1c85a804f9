//! Finding the Python that code runs in: once, and past every shim.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::OnceCell;
use toolcrib_sandbox::{Command, run, server_path};
use toolcrib_tool::ToolError;

use crate::process;

/// What every candidate is asked.
const PROBE: &str = include_str!("probe.py");
/// How long an answer may take: shims take a fifth of a second, a cold disk more.
const PATIENCE: Duration = Duration::from_secs(20);
/// The oldest Python that is right.
const OLDEST: (u32, u32) = (3, 9);

/// A Python that can be started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The binary itself, absolute.
    pub(super) program: PathBuf,
    /// What it reads to start and to import its own modules.
    pub(super) reads: Vec<PathBuf>,
    /// What it reads beside that where further modules are installed.
    pub(super) site: Vec<PathBuf>,
    version: (u32, u32),
}

/// Whether there is anything to ask; nothing is started.
pub(super) fn available() -> Result<(), String> {
    process::available("python3", "`python3` (3.9 or newer)")
}

/// The first `python3` on the server's `PATH` that answers and is new enough. Found once; not finding
/// one is not kept.
pub(super) async fn interpreter() -> Result<&'static Interpreter, ToolError> {
    static FOUND: OnceCell<Interpreter> = OnceCell::const_new();
    FOUND.get_or_try_init(find).await
}

async fn find() -> Result<Interpreter, ToolError> {
    let mut problems = Vec::new();
    for directory in std::env::split_paths(&server_path()) {
        let candidate = directory.join("python3");
        if !candidate.is_file() {
            continue;
        }
        match ask(&candidate).await {
            Ok(found) if found.version >= OLDEST => return Ok(found),
            Ok(found) => {
                let (major, minor) = found.version;
                problems.push(format!("`{}` is Python {major}.{minor}", candidate.display()));
            }
            Err(problem) => problems.push(format!("`{}` {problem}", candidate.display())),
        }
    }
    let found = if problems.is_empty() { "there is none".to_owned() } else { problems.join("; ") };
    Err(ToolError::unavailable(format!("needs a `python3` of 3.9 or newer on PATH: {found}")))
}

/// Asks a candidate where it really is. Shims find their versions by these variables.
async fn ask(candidate: &std::path::Path) -> Result<Interpreter, String> {
    let command = Command::new(candidate)
        .args(["-I", "-S", "-B", "-c", PROBE])
        .pass_env(["HOME", "PYENV_ROOT", "PYENV_VERSION", "ASDF_DATA_DIR", "MISE_DATA_DIR"])
        .cwd("/");
    let finished = run(command, tokio::time::sleep(PATIENCE));
    let finished = finished.await.map_err(|error| format!("does not start: {error}"))?;
    if finished.status.code() != Some(0) {
        let last = finished.stderr.text();
        let last = last.trim_end().lines().last().unwrap_or("without a word").to_owned();
        return Err(format!("does not answer: {last}"));
    }
    read(&finished.stdout.text()).ok_or_else(|| "answers what is no answer".to_owned())
}

fn read(answer: &str) -> Option<Interpreter> {
    let mut found = Interpreter::default();
    for line in answer.lines() {
        let (word, value) = line.split_once(' ')?;
        match word {
            "program" => found.program = value.into(),
            "read" => found.reads.push(value.into()),
            "site" => found.site.push(value.into()),
            "version" => {
                let (major, minor) = value.split_once('.')?;
                found.version = (major.parse().ok()?, minor.parse().ok()?);
            }
            _ => return None,
        }
    }
    found.program.is_absolute().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_anything_else_is_none() {
        let answer = "version 3.12\nprogram /usr/bin/python3.12\nread /usr/lib/a b\nsite /opt/x\n";
        let found = read(answer).unwrap();
        assert_eq!((found.version, found.reads), ((3, 12), vec![PathBuf::from("/usr/lib/a b")]));
        for wrong in ["", "hello", "hello world", "version 3", "program python3", "version a.b"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
