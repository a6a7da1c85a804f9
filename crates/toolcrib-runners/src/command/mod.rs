//! A declared command as a tool.

pub(crate) mod explain;
pub(crate) mod script;
pub(crate) mod started;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::Regex;
use toolcrib_manifest::declaration::{CommandSpec, Declaration, DeclaredBody, Keep, StandardInput};
use toolcrib_sandbox::{Command, Confinement, SpawnError, run};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, CommandPlan, ErrorKind, Plan, Tool, ToolError, ToolOutcome,
};

use crate::command::explain::ConfinedRun;
use crate::confinement::{grants, planned_limits};
use crate::expansion::context::ContextChecks;
use crate::expansion::{Invocation, expand};
use crate::host::PlanningHost;
use crate::output::live::LiveOutput;
use crate::output::redact_patterns::{Redaction, patterns};
use crate::output::{outcome, streams};
use crate::trust::TrustRenewal;
use crate::trust::{deciding_files, pinned_files};
use crate::{DecidingFiles, RunnerHost};

/// The grace period between the request to end and the kill.
const GRACE: Duration = Duration::from_millis(500);
/// The time for ending its descendants and collecting their output.
const COLLECT: Duration = Duration::from_millis(500);

/// Runs the program of a declaration once for each attempt of a call.
///
/// A failure after which the same call may succeed later is [`retryable`](ToolError::retryable): the program exited
/// with one of the declaration's `retry_exit` codes, or could not start because the system lacked processes or memory.
#[derive(Debug)]
pub struct CommandRunner {
    declaration: Declaration,
    host: RunnerHost,
    /// The compiled declaration, or why it cannot be compiled.
    compiled: Result<CompiledCommand, String>,
}

#[derive(Debug)]
struct CompiledCommand {
    spec: CommandSpec,
    checks: ContextChecks,
    redaction: Redaction,
    progress: Vec<Regex>,
}

impl CommandRunner {
    /// A runner for the declaration's command. If the tool runs no command, every call fails.
    pub fn new(declaration: &Declaration, host: &RunnerHost) -> Self {
        let compile = || {
            let spec = match &declaration.body {
                DeclaredBody::Command(spec) => spec,
                DeclaredBody::Client | DeclaredBody::Worker(_) => {
                    return Err("this tool starts no program for a call".to_owned());
                }
                DeclaredBody::Http(_) => {
                    return Err(
                        "sends requests, but this build lacks the feature `http-tools`".to_owned()
                    );
                }
            };
            Ok(CompiledCommand {
                spec: spec.clone(),
                checks: ContextChecks::new(&declaration.context)?,
                redaction: Redaction::new(&declaration.output.redact)?,
                progress: patterns("progress", &declaration.output.progress)?,
            })
        };
        Self { declaration: declaration.clone(), host: host.clone(), compiled: compile() }
    }

    /// Why no call can succeed: an invalid pattern or schema in the declaration. A loader finds these earlier.
    pub(crate) fn defect(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// What a call with these arguments would start, after checking the host's values; starts nothing. See [`expand`].
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

    fn compiled(&self) -> Result<&CompiledCommand, ToolError> {
        self.compiled.as_ref().map_err(|defect| ToolError::unavailable(defect.as_str()))
    }

    /// The command for the sandbox.
    fn command(&self, spec: &CommandSpec, invocation: Invocation) -> Result<Command, ToolError> {
        // Checked lazily: only needed if a program could have created one of these files.
        let files = || DecidingFiles::of_tool(&self.declaration, &self.host).all();
        deciding_files::check(&self.host.control_plane, std::iter::once_with(files).flatten())?;
        let refused = |problem| ToolError::unavailable(format!("the tool {problem}"));
        let advice = || TrustRenewal::of_tool(&self.declaration, &self.host).advice(&self.host);
        let start = match &spec.script {
            Some(script) => {
                script::start(script, self.host.pinned_scripts, advice).map_err(refused)?
            }
            None => script::ScriptStart::of(invocation.program),
        };
        let cwd = self.start_directory(invocation.cwd.as_deref());
        // A sealed process group does no harm: this is a program without a terminal.
        let mut confinement = grants(&self.declaration.sandbox, &self.host).job_control(false);
        if invocation.cwd.is_some() {
            confinement = confinement.read(&cwd);
        }
        if let Some(folder) = spec.script.as_ref().and_then(|script| script.path.parent()) {
            confinement = confinement.read(folder);
        }
        let mut programs = started::by_vector(&spec.argv);
        if spec.script.is_some() {
            let words = std::iter::once(start.program.to_string_lossy().into_owned());
            let words: Vec<_> = words.chain(start.before.iter().cloned()).collect();
            programs = started::by_texts(words.iter().map(String::as_str));
        }
        confinement = programs.into_iter().fold(confinement, Confinement::starts);
        let mut command = Command::new(start.program)
            .confine(confinement.control_plane(&self.host.control_plane))
            .args(start.before)
            .pass_env(invocation.pass_env)
            .cwd(cwd)
            .stdin(invocation.stdin.unwrap_or_default())
            .capture_stdout(streams::capture(spec.capture_bytes, self.declaration.output.keep))
            // The cause of a failure may be at either end of the output.
            .capture_stderr(streams::capture(spec.capture_bytes, Keep::Both))
            .grace(GRACE);
        if let Some(sealed) = start.sealed {
            command = command.sealed(sealed);
        }
        // As late as possible, because most of these files are opened by path.
        let now = DecidingFiles::of_tool(&self.declaration, &self.host);
        if let Some(problem) = now.problem(&self.host) {
            return Err(refused(problem));
        }
        let python_safe_path = now.python_safe_path();
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
        if let Some((name, value)) = python_safe_path {
            command = command.env(name, value);
        }
        for (name, value) in invocation.env {
            command = command.env(name, value);
        }
        Ok(command)
    }

    /// Why there is no result. A program that could not be followed may have done its work.
    fn not_run(&self, error: SpawnError) -> ToolError {
        let annotations = self.declaration.definition.annotations();
        match error {
            SpawnError::Unfollowed { .. } if !annotations.read_only && !annotations.idempotent => {
                ToolError::outcome_unknown(error.to_string())
            }
            error => not_started(error),
        }
    }

    async fn run(&self, arguments: Arguments, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        let invocation = self.invocation(&arguments, cx)?;
        let CompiledCommand { spec, redaction, progress, .. } = self.compiled()?;
        let program = invocation.program.clone();
        let command = self.command(spec, invocation)?;
        // Mask secrets before the output is cut.
        let command = command.filter_output(cx.byte_masks());
        let output = &self.declaration.output;
        let finished = match LiveOutput::of(cx, output, redaction, progress) {
            Some(live) => {
                let command = command.tap_output(live.tap());
                live.run_and_show(cx, run(command, cx.cancelled())).await
            }
            None => run(command, cx.cancelled()).await,
        };
        let finished = finished.map_err(|error| self.not_run(error))?;
        if finished.stopped {
            let late = cx.deadline().is_some_and(|deadline| Instant::now() >= deadline);
            let kind = if late { ErrorKind::Timeout } else { ErrorKind::Cancelled };
            return Err(outcome::stopped(&program, kind, &finished, redaction));
        }
        let confined = ConfinedRun {
            sandbox: &self.declaration.sandbox,
            host: &self.host,
            program: &program,
            exit: finished.status.code(),
            own_home: spec.env.contains_key("HOME")
                || spec.pass_env.iter().any(|name| name == "HOME"),
        };
        outcome::outcome(&program, &finished, spec, output, confined, redaction)
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
        Some(deciding_files::contents(&DecidingFiles::of_tool(&self.declaration, &self.host).all()))
    }

    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        self.compiled()?.checks.check(cx)?;
        let invocation = expand(&self.declaration, arguments, cx, &PlanningHost(&self.host))?;
        let cwd = self.start_directory(invocation.cwd.as_deref());
        // The plan may be read in another directory.
        let cwd = std::path::absolute(&cwd).unwrap_or(cwd);
        Ok(Some(Plan::Command(CommandPlan {
            argv: invocation.argv().map(str::to_owned).collect(),
            env: invocation.env.into_iter().map(|(name, _)| name).collect(),
            pass_env: invocation.pass_env,
            stdin_arguments: self.compiled()?.spec.stdin == Some(StandardInput::Arguments),
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

/// Translates a failed start into a tool error.
pub(crate) fn not_started(error: SpawnError) -> ToolError {
    // A program that was ended at once can be started again where that repeats nothing.
    let retryable = error.is_shortage() || matches!(error, SpawnError::Unfollowed { .. });
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

    use super::{CommandRunner, ErrorKind, RunnerHost, SpawnError, not_started};

    #[test]
    fn a_program_that_could_not_be_followed_may_have_done_its_work() {
        let lost = || SpawnError::Unfollowed {
            program: "true".into(),
            source: io::Error::from_raw_os_error(24),
        };
        for (annotations, kind) in [
            ("{}", ErrorKind::OutcomeUnknown),
            ("{idempotent: true}", ErrorKind::Unavailable),
            ("{read_only: true}", ErrorKind::Unavailable),
        ] {
            let text = format!(
                "toolcrib: 1\ntools: [{{name: x, description: X., annotations: {annotations}, run: {{argv: [\"true\"]}}}}]\n"
            );
            let loaded = toolcrib_manifest::load_str("x.yaml", &text);
            let runner = CommandRunner::new(&loaded.declarations[0], &RunnerHost::new("."));
            let error = runner.not_run(lost());
            assert_eq!((error.kind(), error.retryable()), (kind, kind == ErrorKind::Unavailable));
        }
    }

    #[test]
    fn a_start_without_descriptors_or_memory_is_unavailable_and_retryable() {
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
