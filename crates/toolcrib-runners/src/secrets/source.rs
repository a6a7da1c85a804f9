//! The sources of secrets.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use secrecy::SecretString;
use toolcrib_sandbox::{Capture, Command, Status, run_blocking};

use super::SECRET_MAX;
use super::variables::ServerVariables;

/// How long a command may take to print a secret.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// The maximum to read: the longest value, a line end, and one more byte to detect a value that is too long.
const READ_MAX: usize = SECRET_MAX + 3;
/// At most this many files of a folder are read.
const FILES_MAX: usize = 1000;

/// The source of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretSource {
    /// A variable of the server's environment.
    Env(String),
    /// A file. The final line end is not part of the value.
    File(PathBuf),
    /// The output of a program. The final line end is not part of the value.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Variables of the server's environment that it gets in addition to `PATH`, `LANG`, `TZ` and `HOME`.
        pass_env: Vec<String>,
        /// Its working directory.
        cwd: PathBuf,
    },
}

impl SecretSource {
    /// Reads the value; fails with one clause.
    pub(super) fn read(&self, variables: &ServerVariables) -> Result<SecretString, String> {
        match self {
            Self::Env(name) => match variables.get(name).map(OsString::into_string) {
                Some(Ok(value)) if value.is_empty() => {
                    Err(format!("the server's variable `{name}` is empty"))
                }
                Some(Ok(value)) => Ok(value.into()),
                Some(Err(_)) => Err(format!("the server's variable `{name}` is not valid UTF-8")),
                None => Err(format!(
                    "the variable `{name}` is not set in this environment; start the server with it"
                )),
            },
            Self::File(path) => file(path),
            Self::Command { argv, pass_env, cwd } => command(argv, pass_env, cwd, variables),
        }
    }
}

fn file(path: &Path) -> Result<SecretString, String> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| format!("the file `{shown}` cannot be read: {error}");
    // Do not block on a pipe, even if one replaces the file just before it is opened.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(format!("`{shown}` is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(READ_MAX as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    value(bytes, &format!("the file `{shown}`"))
}

/// The secrets of a folder: regular files, or symbolic links to them, whose names a reference can have. Subfolders and
/// dot files, where Kubernetes keeps versions, are ignored.
pub(super) fn folder(folder: &Path) -> Vec<(String, Result<SecretString, String>)> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!(folder = %folder.display(), %error, "the folder of secrets cannot be read");
            }
            return Vec::new();
        }
    };
    let plain = |name: &str| {
        !name.starts_with('.') && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let files = names.filter(|name| plain(name) && folder.join(name).is_file());
    let read = |name: String| {
        let value = file(&folder.join(&name));
        (name, value)
    };
    files.take(FILES_MAX).map(read).collect()
}

fn command(
    argv: &[String],
    pass_env: &[String],
    cwd: &Path,
    variables: &ServerVariables,
) -> Result<SecretString, String> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err("its `command` is empty".to_owned());
    };
    let passed = pass_env.iter().filter_map(|name| Some((name, variables.get(name)?)));
    let command = passed
        .fold(Command::new(program), |command, (name, value)| command.env(name, value))
        .args(arguments)
        .pass_env(["HOME"])
        .cwd(cwd)
        .capture_stdout(Capture { head: READ_MAX, tail: 0 })
        .capture_stderr(Capture { head: 0, tail: 0 });
    let finished = run_blocking(command, COMMAND_LIMIT).map_err(|error| error.to_string())?;
    // The error never contains its output, because that may contain the secret.
    let by_hand = "run it by hand to see why";
    match finished.status {
        _ if finished.stopped => {
            let seconds = COMMAND_LIMIT.as_secs();
            Err(format!("`{program}` printed no secret within {seconds} s; {by_hand}"))
        }
        Status::Exited(0) => value(finished.stdout.head, &format!("what `{program}` printed")),
        Status::Exited(code) => Err(format!("`{program}` exited with code {code}; {by_hand}")),
        _ => Err(format!("`{program}` was ended by a signal; {by_hand}")),
    }
}

/// The bytes as a value: text without its final line end.
fn value(bytes: Vec<u8>, what: &str) -> Result<SecretString, String> {
    let mut text = String::from_utf8(bytes).map_err(|_| format!("{what} is not valid UTF-8"))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.len() > SECRET_MAX {
        return Err(format!("{what} is longer than 64 KiB"));
    }
    if text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.contains('\0') {
        return Err(format!("{what} contains a NUL character"));
    }
    Ok(text.into())
}
