//! Commands: a program, its arguments and its environment.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{Capture, OutputFilters, OutputTap};
use crate::{Confinement, SealedFile};

/// A program to start with [`run`](crate::run).
///
/// Its environment is empty except for `PATH` (the server's, without relative entries), `LANG` and
/// `TZ` (the server's), a scratch directory for `HOME` and `TMPDIR`, and `TOOLCRIB_CALL` (a random
/// mark by which its processes are recognized). [`env`](Self::env) and [`pass_env`](Self::pass_env)
/// add variables and override these, except the mark.
#[derive(Clone)]
#[must_use = "a command does nothing until it is run"]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// A sealed file that is started in place of the program.
    pub(crate) sealed: Option<SealedFile>,
    /// Arguments that are replaced by names of sealed files, by index.
    pub(crate) sealed_args: Vec<(usize, SealedFile)>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) in_scratch: bool,
    pub(crate) stdin: Vec<u8>,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) joined: bool,
    pub(crate) filters: Option<OutputFilters>,
    pub(crate) tap: Option<OutputTap>,
    pub(crate) grace: Duration,
    pub(crate) confinement: Confinement,
}

impl Command {
    /// Creates a command without arguments, in the server's working directory.
    ///
    /// A bare name is looked up in the program's `PATH`; a name with a `/` is a path, relative to
    /// the command's working directory.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            sealed: None,
            sealed_args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            in_scratch: false,
            stdin: Vec::new(),
            stdout: Capture::default(),
            stderr: Capture::default(),
            joined: false,
            filters: None,
            tap: None,
            grace: Duration::from_millis(500),
            confinement: Confinement::default(),
        }
    }

    /// Adds one argument. The program gets it as exactly one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Starts this file in place of the program, which keeps its name in messages. The file is a program, or a script
    /// whose first line names an interpreter, which gets the file's name, `/proc/self/fd/N`.
    pub fn sealed(mut self, file: SealedFile) -> Self {
        self.sealed = Some(file);
        self
    }

    /// Adds an argument that names this file in the program.
    pub fn sealed_arg(mut self, file: SealedFile) -> Self {
        self.sealed_args.push((self.args.len(), file));
        self.arg("")
    }

    /// Sets a variable; the last value of a name applies.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Passes on the server's value of each of these variables that is set.
    pub fn pass_env<N: Into<OsString>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        for name in names {
            let name = name.into();
            if let Some(value) = std::env::var_os(&name) {
                self.env.push((name, value));
            }
        }
        self
    }

    /// Sets the working directory. Default: the server's own.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Makes its scratch directory the working directory, regardless of [`cwd`](Self::cwd).
    pub fn cwd_in_scratch(mut self) -> Self {
        self.in_scratch = true;
        self
    }

    /// Sets the text of the program's standard input. Default: empty, from `/dev/null`.
    pub fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Self {
        self.stdin = stdin.into();
        self
    }

    /// Sets how much of standard output is kept. Default: 768 KiB + 256 KiB.
    pub fn capture_stdout(mut self, capture: Capture) -> Self {
        self.stdout = capture;
        self
    }

    /// Sets how much of standard error is kept. Default: 768 KiB + 256 KiB.
    pub fn capture_stderr(mut self, capture: Capture) -> Self {
        self.stderr = capture;
        self
    }

    /// Redirects standard error to standard output: both are captured there, in the order in which
    /// they were written.
    pub fn stderr_to_stdout(mut self) -> Self {
        self.joined = true;
        self
    }

    /// Sets the filter that every output stream passes before any of it is cut or kept. Default: none. The standard
    /// output of a [spawned](crate::spawn) program does not pass it, because the caller reads the pipe.
    pub fn filter_output(mut self, filters: impl Into<Option<OutputFilters>>) -> Self {
        self.filters = filters.into();
        self
    }

    /// Sets a tap that gets the [filtered](Self::filter_output) output while the program runs, including the parts that
    /// are not kept. Default: none. It is not used for [spawned](crate::spawn) programs.
    pub fn tap_output(mut self, tap: OutputTap) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Sets the grace period between SIGTERM and SIGKILL. Default: 500 ms.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the program's confinement. Default: [trusted](crate::Profile::Trusted).
    pub fn confine(mut self, confinement: Confinement) -> Self {
        self.confinement = confinement;
        self
    }
}

/// Shows only the names of variables and the length of standard input, because both may hold
/// secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("cwd", &self.cwd)
            .field("stdin_bytes", &self.stdin.len())
            .field("profile", &self.confinement.profile)
            .finish_non_exhaustive()
    }
}
