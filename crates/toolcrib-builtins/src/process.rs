//! Runs a program for a tool, with its time limit, and describes why it did not start or how it ended.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use toolcrib_sandbox::jail::has_helper;
use toolcrib_sandbox::{
    Command, Confinement, ControlPlane, Finished, LineBuffer, NO_PROGRAMS, OutputKind, SpawnError,
    Status, find_program, run,
};
use toolcrib_tool::{CallContext, CommandPlan, ErrorKind, Plan, ToolError, ToolOutput, visible};

use crate::Projects;

/// The grace period between the request to end and the kill.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// The time between two pieces of output that are shown, so that a program that prints much floods nobody.
const PAUSE: Duration = Duration::from_millis(50);

/// Checks that a program can be run and confined; fails with the reason.
pub(crate) fn available(program: &str, needs: &str) -> Result<(), String> {
    match find_program(program) {
        Ok(_) => {}
        Err(SpawnError::Unsupported { .. }) => return Err(NO_PROGRAMS.to_owned()),
        Err(_) => return Err(format!("needs {needs}, which is not on PATH")),
    }
    if !has_helper() {
        return Err("needs the helper `toolcrib-jail` beside the program that offers it".to_owned());
    }
    Ok(())
}

/// Why a program was ended before it ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The time limit of the tool or of the call was reached.
    TimeUp,
    /// The call was cancelled.
    Cancelled,
}

/// Runs a program for at most `limit`, and within the time of the call.
pub(crate) async fn run_within(
    command: Command,
    limit: Duration,
    cx: &CallContext,
) -> Result<(Finished, Option<StopReason>), ToolError> {
    let over = async {
        tokio::select! {
            () = sleep(limit) => {}
            () = cx.cancelled() => {}
        }
    };
    // Mask secrets before the output is cut.
    let command = command.grace(GRACE).filter_output(cx.byte_masks());
    let finished = run_and_show(command, over, cx).await.map_err(not_started)?;
    let stop = finished.stopped.then(|| {
        let late = cx.deadline().is_some_and(|deadline| Instant::now() >= deadline);
        if cx.is_cancelled() && !late { StopReason::Cancelled } else { StopReason::TimeUp }
    });
    Ok((finished, stop))
}

/// Runs a program, and meanwhile shows whoever watches the call what it prints. It never waits for them.
async fn run_and_show(
    command: Command,
    over: impl Future<Output = ()>,
    cx: &CallContext,
) -> Result<Finished, SpawnError> {
    if !cx.is_watched() {
        return run(command, over).await;
    }
    let (printed, changed) = (Arc::<Mutex<LineBuffer>>::default(), Arc::<Notify>::default());
    let lines = || printed.lock().unwrap_or_else(PoisonError::into_inner);
    let tap = {
        let (printed, changed) = (Arc::clone(&printed), Arc::clone(&changed));
        move |_: OutputKind, piece: &[u8]| {
            if printed.lock().unwrap_or_else(PoisonError::into_inner).push(piece) {
                changed.notify_one();
            }
        }
    };
    let mut left = cx.output_chars();
    let mut next = || {
        let text = lines().take(false).text(|line| visible(&line).into_owned())?;
        if let Some(rest) = left.checked_sub(text.len()) {
            left = rest;
            return Some(text);
        }
        let was_shown = std::mem::take(&mut left) > 0;
        was_shown.then(|| "[… more output is not shown live …]\n".to_owned())
    };
    let finished = {
        let show = async {
            loop {
                changed.notified().await;
                if let Some(text) = next() {
                    cx.stream(text).await;
                }
                sleep(PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            finished = run(command.tap_output(Arc::new(tap)), over) => finished,
            () = show => unreachable!("the loop never ends"),
        }
    };
    if let Some(text) = next() {
        // Sent at the first poll; later ones would wait for a slow reader.
        let _ = timeout(Duration::ZERO, cx.stream(text)).await;
    }
    finished
}

/// The absolute path of the folder of the call's project.
pub(crate) fn workspace(
    projects: Option<&Projects>,
    project_id: Option<&str>,
) -> Result<PathBuf, ToolError> {
    let none = || ToolError::unavailable("no folder is configured for it to work in");
    let root = projects.ok_or_else(none)?.root(project_id)?;
    Ok(std::path::absolute(root).unwrap_or_else(|_| root.to_owned()))
}

/// What a program in the call's folder may neither change nor read.
pub(crate) fn control_plane(projects: Option<&Projects>) -> Option<&ControlPlane> {
    projects.map(Projects::control_plane)
}

/// The plan of a call that runs this command for at most `limit`.
pub(crate) fn planned(command: &Command, limit: Duration) -> Plan {
    let text = |text: &OsStr| text.to_string_lossy().into_owned();
    let outline = command.outline();
    let Confinement { profile, limits, .. } = outline.confinement;
    let mut plan = CommandPlan {
        argv: outline.argv.into_iter().map(text).collect(),
        env: outline.env.into_iter().map(text).collect(),
        stdin_bytes: outline.stdin_bytes,
        cwd: outline.cwd.map(|cwd| text(cwd.as_os_str())).unwrap_or_default(),
        output_bytes: outline.output_bytes,
        sandbox: profile.as_str().to_owned(),
        ..CommandPlan::default()
    };
    plan.limits.time = (limit < Duration::MAX).then_some(limit);
    plan.limits.cpu = limits.cpu;
    plan.limits.memory = limits.memory;
    plan.limits.file_size = limits.file_size;
    plan.limits.open_files = limits.open_files;
    plan.limits.processes = limits.processes;
    Plan::Command(plan)
}

/// The id of the call's project, if the host set one.
pub(crate) fn project_id(cx: &CallContext) -> Option<&str> {
    cx.injected("project_id")?.as_str()
}

/// Translates a failed start into a tool error.
fn not_started(error: SpawnError) -> ToolError {
    let kind = match &error {
        SpawnError::TooLong { .. } | SpawnError::Nul { .. } => ErrorKind::InvalidArgs,
        SpawnError::Unfollowed { .. } => return ToolError::outcome_unknown(error.to_string()),
        _ => ErrorKind::Unavailable,
    };
    let retryable = matches!(error, SpawnError::Resources(_));
    ToolError::new(kind, error.to_string()).with_retryable(retryable).with_source(error)
}

/// The exit code as shells report it: 128 plus the signal number if a signal ended the program.
pub(crate) fn exit_code(status: Status) -> Option<i32> {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// How a program ended, as a clause: `exit code 3`, `ended by SIGKILL`.
pub(crate) fn ending(status: Status) -> String {
    match (status.code(), status.signal_name(), status.signal()) {
        (Some(code), ..) => format!("exit code {code}"),
        (_, Some(name), _) => format!("ended by {name}"),
        (_, _, Some(number)) => format!("ended by signal {number}"),
        _ => "its end could not be observed".to_owned(),
    }
}

/// Adds metadata for programs and operators: the enforced confinement (`sandbox`), how the processes were ended, and
/// how much output was cut.
pub(crate) fn with_facts(mut output: ToolOutput, finished: &Finished) -> ToolOutput {
    output = output
        .with_meta("sandbox", finished.enforced.to_string())
        .with_meta("kill_rung", finished.kill.rung.as_str());
    if !finished.kill.complete {
        output = output.with_meta("kill_complete", false);
    }
    let omitted = finished.stdout.omitted() + finished.stderr.omitted();
    if omitted > 0 {
        output = output.with_meta("truncated_bytes", omitted);
    }
    output
}
