//! A declared command as a tool.

pub(crate) mod explain;
pub(crate) mod script;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_manifest::declaration::{CommandSpec, Declaration, DeclaredBody, Keep};
use toolcrib_sandbox::{Command, SpawnError, run};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, CommandPlan, ErrorKind, Plan, Tool, ToolError, ToolOutcome,
};

use crate::command::explain::Confined;
use crate::confinement::{grants, planned_limits};
use crate::expansion::context::ContextChecks;
use crate::expansion::{Invocation, expand};
use crate::host::LookedAt;
use crate::output::redact::Redaction;
use crate::output::{outcome, streams};
use crate::trust::Renewal;
use crate::trust::{deciding_files, pinned_files};
use crate::{Deciding, RunnerHost};

/// Between asking a program to end and ending it.
const GRACE: Duration = Duration::from_millis(500);
/// For ending its descendants and collecting what was printed.
const COLLECT: Duration = Duration::from_millis(500);

/// Runs the program of a declaration, once per try of a call.
///
/// Failures after which the same call may succeed later say so
/// ([`retryable`](ToolError::retryable)): the program ended with one of the declaration's
/// `retry_exit`, or could not be started because the system was short of processes or memory.
#[derive(Debug)]
pub struct CommandRunner {
    declaration: Declaration,
    host: RunnerHost,
    /// What is compiled from the declaration, or what is wrong with it.
    compiled: Result<Compiled, String>,
}

#[derive(Debug)]
struct Compiled {
    spec: CommandSpec,
    checks: ContextChecks,
    redaction: Redaction,
}

impl CommandRunner {
    /// A runner of the declaration's command. Of a tool that runs none, every call fails.
    pub fn new(declaration: &Declaration, host: &RunnerHost) -> Self {
        let compile = || {
            let spec = match &declaration.body {
                DeclaredBody::Command(spec) => spec,
                DeclaredBody::Client | DeclaredBody::Worker(_) => {
                    return Err("this tool starts no program for a call".to_owned());
                }
                DeclaredBody::Http(_) => {
                    return Err(
                        "sends requests, which this build cannot: it was built without the \
                                feature `http-tools`"
                            .to_owned(),
                    );
                }
            };
            Ok(Compiled {
                spec: spec.clone(),
                checks: ContextChecks::new(&declaration.context)?,
                redaction: Redaction::new(&declaration.output.redact)?,
            })
        };
        Self { declaration: declaration.clone(), host: host.clone(), compiled: compile() }
    }

    /// Why no call can succeed: a pattern or a schema of the declaration that is none. A loader
    /// finds these earlier.
    pub(crate) fn defect(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// What a call with these arguments would start, the host's values checked; starts nothing.
    /// See [`expand`].
    pub fn invocation(
        &self,
        arguments: &Arguments,
        cx: &CallContext,
    ) -> Result<Invocation, ToolError> {
        self.compiled()?.checks.check(cx)?;
        expand(&self.declaration, arguments, cx, &self.host)
    }

    fn start_directory(&self, declared: Option<&Path>) -> PathBuf {
        let Declaration { sandbox, origin, .. } = &self.declaration;
        self.host.start_directory(declared, sandbox, &origin.file)
    }

    fn compiled(&self) -> Result<&Compiled, ToolError> {
        self.compiled.as_ref().map_err(|defect| ToolError::unavailable(defect.as_str()))
    }

    /// The command as the sandbox takes it.
    fn command(&self, spec: &CommandSpec, invocation: Invocation) -> Result<Command, ToolError> {
        // Rarely asked for: only where a program could have created one of them.
        let files = || Deciding::of_tool(&self.declaration, &self.host).all();
        deciding_files::check(&self.host.control_plane, std::iter::once_with(files).flatten())?;
        let refused = |problem| ToolError::unavailable(format!("the tool {problem}"));
        let advice = || Renewal::of_tool(&self.declaration, &self.host).advice(&self.host);
        let start = match &spec.script {
            Some(script) => {
                script::start(script, self.host.pinned_scripts, advice).map_err(refused)?
            }
            None => script::Start::of(invocation.program),
        };
        let cwd = self.start_directory(invocation.cwd.as_deref());
        // A sealed group is no harm: what is started here is a program and no terminal.
        let mut confinement = grants(&self.declaration.sandbox, &self.host).job_control(false);
        if invocation.cwd.is_some() {
            confinement = confinement.read(&cwd);
        }
        if let Some(folder) = spec.script.as_ref().and_then(|script| script.path.parent()) {
            confinement = confinement.read(folder);
        }
        let mut command = Command::new(start.program)
            .confine(confinement.control_plane(&self.host.control_plane))
            .args(start.before)
            .pass_env(invocation.pass_env)
            .cwd(cwd)
            .stdin(invocation.stdin.unwrap_or_default())
            .capture_stdout(streams::capture(spec.capture_bytes, self.declaration.output.keep))
            // The cause of a failure may stand at either end.
            .capture_stderr(streams::capture(spec.capture_bytes, Keep::Both))
            .grace(GRACE);
        if let Some(sealed) = start.sealed {
            command = command.sealed(sealed);
        }
        // As late as possible: most of these files are used where they are.
        let now = Deciding::of_tool(&self.declaration, &self.host);
        if let Some(problem) = deciding_files::linked(&now.linked) {
            return Err(refused(problem));
        }
        let copy = if self.host.pinned_scripts {
            pinned_files::compare(&spec.files, now.named, advice).map_err(refused)?
        } else {
            None
        };
        for (at, argument) in invocation.args.into_iter().enumerate() {
            command = match copy.as_ref().filter(|copy| copy.at == at) {
                Some(copy) => command
                    .sealed_arg(copy.sealed.clone())
                    .env(script::OWN_PATH, copy.named.path.as_os_str()),
                None => command.arg(argument),
            };
        }
        for (name, value) in invocation.env {
            command = command.env(name, value);
        }
        Ok(command)
    }

    async fn run(&self, arguments: Arguments, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        let invocation = self.invocation(&arguments, cx)?;
        let Compiled { spec, redaction, .. } = self.compiled()?;
        let program = invocation.program.clone();
        let command = self.command(spec, invocation)?;
        // Secrets are hidden before the output is cut.
        let command = command.filter_output(cx.byte_masks());
        let finished = run(command, cx.cancelled()).await.map_err(not_started)?;
        if finished.stopped {
            let late = cx.deadline().is_some_and(|deadline| Instant::now() >= deadline);
            let kind = if late { ErrorKind::Timeout } else { ErrorKind::Cancelled };
            return Err(outcome::stopped(&program, kind, &finished, redaction));
        }
        let confined = Confined {
            sandbox: &self.declaration.sandbox,
            workspace: &self.host.workspace_root,
            program: &program,
            exit: finished.status.code(),
            own_home: spec.env.contains_key("HOME")
                || spec.pass_env.iter().any(|name| name == "HOME"),
        };
        outcome::outcome(&program, &finished, spec, &self.declaration.output, confined, redaction)
            .map(ToolOutcome::Done)
    }
}

impl Tool for CommandRunner {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(self.run(arguments, cx))
    }

    fn validates(&self) -> bool {
        false
    }

    fn code(&self) -> Option<String> {
        Some(deciding_files::contents(&Deciding::of_tool(&self.declaration, &self.host).all()))
    }

    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        self.compiled()?.checks.check(cx)?;
        let invocation = expand(&self.declaration, arguments, cx, &LookedAt(&self.host))?;
        let cwd = self.start_directory(invocation.cwd.as_deref());
        // Whoever looks at it may be somewhere else.
        let cwd = std::path::absolute(&cwd).unwrap_or(cwd);
        Ok(Some(Plan::Command(CommandPlan {
            argv: invocation.argv().map(str::to_owned).collect(),
            env: invocation.env.into_iter().map(|(name, _)| name).collect(),
            pass_env: invocation.pass_env,
            stdin_bytes: invocation.stdin.map_or(0, |text| text.len()),
            cwd: cwd.to_string_lossy().into_owned(),
            output_bytes: self.compiled()?.spec.capture_bytes,
            sandbox: self.declaration.sandbox.profile.as_str().to_owned(),
            limits: planned_limits(&self.declaration.sandbox, &self.host),
            worker: false,
        })))
    }

    fn wind_down(&self) -> Duration {
        GRACE + COLLECT
    }
}

/// Why nothing ran, in the pipeline's words.
pub(crate) fn not_started(error: SpawnError) -> ToolError {
    let retryable = error.is_shortage();
    let kind = match &error {
        _ if retryable => ErrorKind::Unavailable,
        SpawnError::NotFound { .. }
        | SpawnError::NotExecutable { .. }
        | SpawnError::WorkingDirectory { .. }
        | SpawnError::NoHelper { .. }
        | SpawnError::NotEnforced { .. }
        | SpawnError::Grants { .. }
        | SpawnError::Late { .. }
        | SpawnError::Unsupported { .. }
        | SpawnError::Confine { .. } => ErrorKind::Unavailable,
        SpawnError::TooLong { .. } | SpawnError::Nul { .. } => ErrorKind::InvalidArgs,
        _ => ErrorKind::Internal,
    };
    ToolError::new(kind, error.to_string()).with_retryable(retryable).with_source(error)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{ErrorKind, SpawnError, not_started};

    #[test]
    fn a_start_that_lacked_descriptors_or_room_is_unavailable_and_may_be_tried_again() {
        let scratch = |number| SpawnError::Scratch {
            path: "/tmp/x".into(),
            source: io::Error::from_raw_os_error(number),
        };
        // Too many open files; no space left on the device.
        for number in [24, 28] {
            let error = not_started(scratch(number));
            assert_eq!((error.kind(), error.retryable()), (ErrorKind::Unavailable, true));
        }
        // Permission denied.
        let error = not_started(scratch(13));
        assert_eq!((error.kind(), error.retryable()), (ErrorKind::Internal, false));
    }
}
