//! The Python that runs code: found once, behind any shim, and started with the guard that it has compiled.
//!
//! The compiled guard is stored only in this process's memory, where code that is run cannot change it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use toolcrib_sandbox::{Command, run, server_path};
use toolcrib_tool::ToolError;

use crate::process;

/// The program that every candidate runs.
const PROBE: &str = include_str!("probe.py");
/// The program that checks the code and runs it.
pub(super) const GUARD: &str = include_str!("guard.py");
/// The program that loads the guard.
pub(super) const START: &str = include_str!("start.py");
/// How long a candidate may take: shims take a fifth of a second, a cold disk more.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// The oldest supported Python.
const OLDEST: (u32, u32) = (3, 9);

/// A Python that can be started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// The absolute path of the binary itself.
    pub(super) program: PathBuf,
    /// The paths that it reads to start and to import its own modules.
    pub(super) reads: Vec<PathBuf>,
    /// Additional paths with installed modules.
    pub(super) site: Vec<PathBuf>,
    /// What [`START`] reads before the guard's input: the guard as this Python compiled it, and the identity of this
    /// Python.
    pub(super) guard: Vec<u8>,
    pub(super) version: (u32, u32),
}

static FOUND: Mutex<Option<Arc<Interpreter>>> = Mutex::const_new(None);

/// Checks that there are candidates; starts nothing.
pub(super) fn available() -> Result<(), String> {
    process::available("python3", "`python3` (3.9 or newer)")
}

/// The first `python3` on the server's `PATH` that answers and is new enough. The result is cached; a failure is not.
pub(super) async fn interpreter() -> Result<Arc<Interpreter>, ToolError> {
    let mut found = FOUND.lock().await;
    if let Some(found) = &*found {
        return Ok(Arc::clone(found));
    }
    Ok(Arc::clone(found.insert(Arc::new(find().await?))))
}

/// The cached interpreter, if it was found; starts nothing.
pub(super) fn found() -> Option<Arc<Interpreter>> {
    FOUND.try_lock().ok()?.clone()
}

/// Removes the interpreter from the cache: it did not start and may have been replaced.
pub(super) async fn forget(interpreter: &Arc<Interpreter>) {
    let mut found = FOUND.lock().await;
    if found.as_ref().is_some_and(|found| Arc::ptr_eq(found, interpreter)) {
        *found = None;
    }
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

/// Asks a candidate for its real paths. Shims use these variables to choose a version.
async fn ask(candidate: &std::path::Path) -> Result<Interpreter, String> {
    let command = Command::new(candidate)
        .args(["-I", "-S", "-B", "-c", PROBE])
        .stdin(GUARD)
        .pass_env(["HOME", "PYENV_ROOT", "PYENV_VERSION", "ASDF_DATA_DIR", "MISE_DATA_DIR"])
        .cwd("/");
    let finished = run(command, tokio::time::sleep(PROBE_TIMEOUT));
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
            "guard" => {
                let (magic, code) = value.split_once(' ')?;
                let code = bytes(code)?;
                found.guard = format!("{magic} {}\n", code.len()).into_bytes();
                found.guard.extend(code);
            }
            "version" => {
                let (major, minor) = value.split_once('.')?;
                found.version = (major.parse().ok()?, minor.parse().ok()?);
            }
            _ => return None,
        }
    }
    (found.program.is_absolute() && !found.guard.is_empty()).then_some(found)
}

/// Parses hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_answer_is_read_and_anything_else_is_rejected() {
        let answer = "guard a70d e300ff\nversion 3.12\nprogram /usr/bin/python3.12\n\
                      read /usr/lib/a b\nsite /opt/x\n";
        let found = read(answer).unwrap();
        assert_eq!((found.version, found.reads), ((3, 12), vec![PathBuf::from("/usr/lib/a b")]));
        assert_eq!(found.guard, b"a70d 3\n\xe3\0\xff");
        for wrong in [
            "",
            "hello",
            "hello world",
            "version 3",
            "program python3",
            "version a.b",
            "program /usr/bin/python3",
            "guard a70d",
            "guard a70d e300f",
            "guard a70d x",
            "guard a70d e3\nprogram python3",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn a_guard_compiled_by_another_python_is_not_run() {
        let interpreter = interpreter().await.unwrap();
        let answer = async |given: Vec<u8>| {
            let command = Command::new(&interpreter.program).args(["-I", "-S", "-B", "-c", START]);
            run(command.stdin(given), std::future::pending()).await.unwrap()
        };
        let code = b"strict\n\nprint(6 * 7)";
        let right = answer([&interpreter.guard, code.as_slice()].concat()).await;
        assert_eq!((right.stdout.text(), right.stderr.text()), ("42\n".into(), "checked\n".into()));
        let other = [b"00000000", &interpreter.guard[8..], code].concat();
        let other = answer(other).await;
        assert_eq!(other.status.code(), Some(1));
        assert_eq!(other.stdout.text(), "");
        assert_eq!(other.stderr.text(), "this is another Python than before\n");
    }

    #[tokio::test]
    async fn a_python_that_did_not_start_is_searched_again() {
        let first = interpreter().await.unwrap();
        forget(&Arc::new(Interpreter::default())).await;
        forget(&first).await;
        let second = interpreter().await.unwrap();
        assert!(!Arc::ptr_eq(&first, &second) && first == second);
    }
}
