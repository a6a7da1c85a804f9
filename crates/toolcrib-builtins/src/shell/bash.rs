//! `bash`: runs commands in the workspace.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolcrib_macros::tool;
use toolcrib_sandbox::{Command, Confinement, ControlPlane, Finished, Profile};
use toolcrib_tool::{
    CallContext, ErrorKind, IntoOutcome, Plan, ToolError, ToolOutcome, ToolOutput, schema_for,
    visible,
};

use super::BashSettings;
use crate::Projects;
use crate::process::{
    self, StopReason, control_plane, ending, exit_code, planned, project_id, run_within,
    with_facts, workspace,
};

#[derive(Deserialize, JsonSchema)]
struct BashArgs {
    /// The command for `bash -c`: one command or several, with pipes, redirections and everything else.
    #[schemars(length(min = 1, max = 100_000))]
    command: String,
    /// Time limit in seconds. It can only shorten the operator's limit (30 by default).
    #[schemars(extend("exclusiveMinimum" = 0))]
    timeout: Option<f64>,
}

/// How a command ended.
#[derive(Debug, Serialize, JsonSchema)]
struct CommandEnd {
    /// The exit code; 128 plus the signal number if a signal ended it; absent after a timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Whether the time limit ended it.
    timed_out: bool,
}

/// The result of a command that ran.
struct RunOutput {
    output: ToolOutput,
}

impl IntoOutcome for RunOutput {
    fn into_outcome(self) -> Result<ToolOutcome, ToolError> {
        Ok(self.output.into())
    }

    fn output_schema() -> Option<serde_json::Value> {
        Some(schema_for::<CommandEnd>())
    }
}

fn available() -> Result<(), String> {
    process::available("bash", "`bash`")
}

/// Run a shell command with `bash -c` in the workspace and get its output, including standard error, and its exit code.
/// For builds, tests, git and anything without its own tool. No terminal, no standard input, no network; background
/// processes are ended with it. Commands that take longer than 30 s are ended, and the output so far is returned.
#[tool(
    category = "code",
    tags("shell", "command", "terminal"),
    approval = "always",
    timeout = "10m",
    wind_down = "1500ms",
    available = available,
    plan = plan,
    examples(
        r#"{"command": "grep -rn TODO --include='*.rs' . | head -20"}"#,
        r#"{"command": "make test 2>&1 | tail -50", "timeout": 20}"#
    )
)]
async fn bash(
    args: BashArgs,
    #[service] settings: Option<Arc<BashSettings>>,
    #[service] projects: Option<Arc<Projects>>,
    #[context("project_id")] project_id: Option<String>,
    cx: &CallContext,
) -> Result<RunOutput, ToolError> {
    let settings = settings.unwrap_or_default();
    let workspace = workspace(projects.as_deref(), project_id.as_deref())?;
    let (command, limit) = command(&args, &settings, workspace, control_plane(projects.as_deref()));
    let (finished, stop) = run_within(command, limit, cx).await?;
    match stop {
        None => ended(&finished, &settings, cx),
        Some(StopReason::TimeUp) => Ok(RunOutput { output: time_up(&finished) }),
        Some(StopReason::Cancelled) => {
            Err(ToolError::new(ErrorKind::Cancelled, "the command was ended with the call")
                .with_partial(output(&finished, printed(&finished), false)))
        }
    }
}

/// The command and its time limit.
fn command(
    args: &BashArgs,
    settings: &BashSettings,
    workspace: PathBuf,
    plane: Option<&ControlPlane>,
) -> (Command, Duration) {
    let asked = args.timeout.map(Duration::try_from_secs_f64).transpose();
    // A value too long for a duration exceeds any limit.
    let limit = asked.ok().flatten().map_or(settings.timeout, |own| own.min(settings.timeout));
    let confinement =
        Confinement::new(Profile::Workspace).defaults(settings.confinement).workspace(&workspace);
    let confinement = settings.read.iter().fold(confinement, Confinement::read);
    let confinement = match plane {
        Some(plane) => confinement.control_plane(plane),
        None => confinement,
    };
    // `--`: a command may begin with a dash.
    let command = Command::new("bash")
        .args(["-c", "--"])
        .arg(&args.command)
        .cwd(workspace)
        .stderr_to_stdout()
        .confine(confinement);
    (command, limit)
}

/// Why no command can run: a folder contains files that decide what the server runs and that cannot be withheld.
pub(crate) fn objection(projects: &Projects) -> Option<String> {
    projects.roots().find_map(|root| {
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        let confinement = Confinement::new(Profile::Workspace).workspace(root);
        confinement.control_plane(projects.control_plane()).check().err()
    })
}

fn plan(args: &BashArgs, cx: &CallContext) -> Result<Plan, ToolError> {
    let settings = cx.service::<BashSettings>().unwrap_or_default();
    let projects = cx.service::<Projects>();
    let workspace = workspace(projects.as_deref(), project_id(cx))?;
    let (command, limit) = command(args, &settings, workspace, control_plane(projects.as_deref()));
    Ok(planned(&command, limit))
}

/// The command ended by itself.
fn ended(
    finished: &Finished,
    settings: &BashSettings,
    cx: &CallContext,
) -> Result<RunOutput, ToolError> {
    let text = printed(finished);
    if finished.status.code() == Some(0) {
        let text = if text.is_empty() { "[no output]".to_owned() } else { text };
        return Ok(RunOutput { output: output(finished, text, false) });
    }
    let end = ending(finished.status);
    tracing::warn!(call = %cx.call_id(), end, "a command of `bash` did not end with 0");
    let output = output(finished, with_line(text, &format!("[{end}]")), false);
    if settings.nonzero_is_error {
        return Err(ToolError::execution(format!("the command failed: {end}"))
            .with_hint("Read what it printed, correct the command, and run it again.")
            .with_partial(output));
    }
    Ok(RunOutput { output })
}

/// The time limit was reached: the output so far is still useful.
fn time_up(finished: &Finished) -> ToolOutput {
    let seconds = finished.duration.as_secs_f64();
    let warning = format!(
        "[warning: ended after {seconds:.1} s, at its time limit. This is the output so far; \
         whether the command took effect is unknown.]"
    );
    output(finished, with_line(printed(finished), &warning), true).with_timed_out()
}

fn output(finished: &Finished, text: String, timed_out: bool) -> ToolOutput {
    let exit_code = if timed_out { None } else { exit_code(finished.status) };
    let end = json!(CommandEnd { exit_code, timed_out });
    with_facts(ToolOutput::from(text).with_data(end), finished)
}

/// The output for models and people.
fn printed(finished: &Finished) -> String {
    visible(&finished.stdout.text()).into_owned()
}

/// The text, followed by a line of our own.
fn with_line(mut text: String, line: &str) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text
}
