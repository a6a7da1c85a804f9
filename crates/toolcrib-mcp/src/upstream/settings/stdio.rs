//! An upstream that is a program: how it is started.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_sandbox::{Capture, Command, Confinement, ControlPlane, Places};

use crate::upstream::restart::ProgramFiles;

/// How many bytes of a program's standard error are kept: its last lines, for the operator.
const STDERR_KEPT: usize = 16 * 1024;
/// The time between SIGTERM and SIGKILL. Everything has to be gone within a second.
const GRACE: Duration = Duration::from_millis(400);

/// A program that speaks MCP on its standard input and output.
///
/// It starts as commands do: in a session of its own, with an environment that contains only a
/// short default list and what is set here. Its whole process tree ends with it.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioServer {
    program: String,
    args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pass_env: Vec<String>,
    home: Option<PathBuf>,
    cwd: Option<PathBuf>,
    confinement: Confinement,
    pub(super) plane: Option<ControlPlane>,
    deciding: Vec<PathBuf>,
    check: Option<StartCheck>,
}

/// A check before each start. Two are equal if they check the same thing.
#[derive(Clone)]
struct StartCheck {
    what: String,
    check: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl PartialEq for StartCheck {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what
    }
}

impl Eq for StartCheck {}

impl StdioServer {
    /// Creates a program without arguments that runs in the server's working directory.
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            home: None,
            cwd: None,
            confinement: Confinement::default(),
            plane: None,
            deciding: Vec::new(),
            check: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Passes on the server's own value of an environment variable.
    #[must_use]
    pub fn pass_env(mut self, name: impl Into<String>) -> Self {
        self.pass_env.push(name.into());
        self
    }

    /// Sets a folder that is its `HOME` and that it may change. Created with mode 0700 before the program is
    /// started, and kept afterwards.
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets its confinement. Default: trusted, since code that is linked in is trusted; servers
    /// that a manifest declares run under `workspace+net` unless it says otherwise.
    #[must_use]
    pub fn confine(mut self, confinement: Confinement) -> Self {
        self.confinement = confinement;
        self
    }

    /// Sets which paths it may not change, as they are whenever the server is started, and which
    /// files decide what it runs. When a path is added that its grants contain, the program is
    /// restarted. Default: none.
    #[must_use]
    pub fn control_plane(mut self, plane: &ControlPlane, deciding: Vec<PathBuf>) -> Self {
        self.plane = Some(plane.clone());
        self.deciding = deciding;
        self
    }

    /// Sets a check that runs right before each start and fails with a clause: `it <clause>`.
    /// `what` identifies the check: a server with another check is another server, and replaces
    /// this one. Default: no check.
    #[must_use]
    pub fn check_start(
        mut self,
        what: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(StartCheck { what: what.into(), check: Arc::new(check) });
        self
    }

    /// Why it must not be started now, if there is a reason.
    pub(crate) fn refusal(&self) -> Option<String> {
        let check = self.check.as_ref();
        self.exposed()
            .or_else(|| self.make_home().err())
            .or_else(|| Some(format!("it {}", (check?.check)().err()?)))
    }

    /// Creates the folder that is its HOME, for its owner alone.
    fn make_home(&self) -> Result<(), String> {
        let Some(home) = &self.home else { return Ok(()) };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(home).map_err(|error| {
            format!("its home folder `{}` cannot be created: {error}", home.display())
        })
    }

    fn exposed(&self) -> Option<String> {
        let file = self.plane.as_ref()?.exposed(&self.deciding)?;
        Some(format!("it runs {file}: {}", file.remedy()))
    }

    /// Completes when the program has to be restarted, given the paths protected at its start.
    pub(crate) async fn needs_restart(&self, before: &Places) {
        match &self.plane {
            Some(plane) => plane.outgrown(before, &self.confinement).await,
            None => std::future::pending().await,
        }
    }

    /// The paths that it may not change now.
    pub(crate) fn places(&self) -> Arc<Places> {
        self.plane.as_ref().map(ControlPlane::places).unwrap_or_default()
    }

    /// The files that decide what it runs, as they are now.
    pub(crate) fn files(&self) -> ProgramFiles {
        ProgramFiles::now(&self.deciding)
    }

    pub(crate) fn command(&self) -> Command {
        let mut confinement = self.confinement.clone();
        if let Some(home) = &self.home {
            confinement = confinement.own_folder(home);
        }
        if let Some(plane) = &self.plane {
            confinement = confinement.control_plane(plane);
        }
        let mut command = Command::new(self.program.as_str())
            .confine(confinement)
            .args(self.args.iter().map(String::as_str))
            .pass_env(self.pass_env.iter().map(String::as_str))
            .capture_stderr(Capture { head: 0, tail: STDERR_KEPT })
            .grace(GRACE);
        for (name, value) in &self.env {
            command = command.env(name, value);
        }
        if let Some(home) = &self.home {
            command = command.env("HOME", home);
        }
        match &self.cwd {
            Some(cwd) => command.cwd(cwd),
            None => command,
        }
    }
}

impl fmt::Debug for StdioServer {
    /// Omits the values of variables, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioServer")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("pass_env", &self.pass_env)
            .field("cwd", &self.cwd)
            .field("profile", &self.confinement.profile)
            .finish_non_exhaustive()
    }
}
