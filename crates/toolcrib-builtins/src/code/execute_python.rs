//! `execute_python`: checks Python code of a model and runs it in its own process.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_macros::tool;
use toolcrib_sandbox::{Command, Confinement, ControlPlane, Limits, Profile};
use toolcrib_tool::{CallContext, ErrorKind, Plan, ToolError};

use super::interpreter::{GUARD, Interpreter, START, available, forget, found, interpreter};
use super::outcome::{RunOutput, outcome};
use super::{PythonSettings, Strictness};
use crate::Projects;
use crate::process::{control_plane, planned, project_id, run_within, workspace};

#[derive(Deserialize, JsonSchema)]
struct ExecutePythonArgs {
    /// The program. Its printed output is the result.
    #[schemars(length(min = 1, max = 1_000_000))]
    code: String,
    /// How much the code may do. Default: the operator's choice. `strict` and `standard` compute, parse and format with
    /// modules of the standard library, without files, processes and network; `lenient` may do everything in the
    /// workspace, if the operator allows it.
    strictness: Option<Strictness>,
}

/// Run Python and get its output: for calculations, parsing, text, statistics and checking ideas. Each call is a new
/// process, so nothing is remembered; `print()` what you want to see. The default level is `standard`: no files,
/// processes or network, 10 s, 1 GiB, and modules such as json, csv, re, math, statistics, datetime, collections,
/// itertools, decimal and `xml.etree.ElementTree`; the error for an unavailable import lists them all.
#[tool(
    category = "code",
    tags("python", "code", "compute"),
    timeout = "10m",
    wind_down = "1500ms",
    available = available,
    plan = plan,
    examples(
        r#"{"code": "import statistics\nprint(statistics.mean([1, 2, 3]))"}"#,
        r#"{"code": "print(sum(n * n for n in range(10)))", "strictness": "strict"}"#
    )
)]
async fn execute_python(
    args: ExecutePythonArgs,
    #[service] settings: Option<Arc<PythonSettings>>,
    #[service] projects: Option<Arc<Projects>>,
    #[context("project_id")] project_id: Option<String>,
    cx: &CallContext,
) -> Result<RunOutput, ToolError> {
    let settings = settings.unwrap_or_default();
    let (level, confinement) =
        allowed(&args, &settings, projects.as_deref(), project_id.as_deref())?;
    let interpreter = interpreter().await?;
    let plane = control_plane(projects.as_deref());
    let command = command(&interpreter, &args.code, level, &settings, (confinement, plane));
    let ran = match run_within(command, settings.timeout(level), cx).await {
        Ok((finished, stop)) => outcome(&finished, stop),
        Err(error) => Err(error),
    };
    if ran.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
        forget(&interpreter).await;
    }
    ran
}

/// The same without starting anything, even if no interpreter was found yet: in that case the guard counts with the
/// length of its source instead of its compiled form.
fn plan(args: &ExecutePythonArgs, cx: &CallContext) -> Result<Plan, ToolError> {
    let settings = cx.service::<PythonSettings>().unwrap_or_default();
    let projects = cx.service::<Projects>();
    let (level, confinement) = allowed(args, &settings, projects.as_deref(), project_id(cx))?;
    let interpreter = found().unwrap_or_else(|| {
        let guard = GUARD.into();
        Arc::new(Interpreter { program: "python3".into(), guard, ..Interpreter::default() })
    });
    let plane = control_plane(projects.as_deref());
    let command = command(&interpreter, &args.code, level, &settings, (confinement, plane));
    Ok(planned(&command, settings.timeout(level)))
}

/// The level of a call, and its limits.
fn allowed(
    args: &ExecutePythonArgs,
    settings: &PythonSettings,
    projects: Option<&Projects>,
    project_id: Option<&str>,
) -> Result<(Strictness, Confinement), ToolError> {
    let level = args.strictness.unwrap_or(settings.default_strictness());
    if !settings.allows(level) {
        return Err(ToolError::denied("the operator does not allow code to be `lenient`")
            .with_hint(
                "Leave `strictness` out. The operator's key is code_execution.allow_lenient.",
            ));
    }
    // With named projects every call belongs to one of them, even if its code sees no folder.
    if let Some(projects) = projects.filter(|projects| projects.needs_project_id()) {
        projects.root(project_id)?;
    }
    let confinement = confinement(level, settings);
    Ok(match level {
        Strictness::Lenient => (level, confinement.workspace(workspace(projects, project_id)?)),
        Strictness::Standard | Strictness::Strict => (level, confinement),
    })
}

/// The interpreter and its loader; standard input holds the guard, then the code.
fn command(
    interpreter: &Interpreter,
    code: &str,
    level: Strictness,
    settings: &PythonSettings,
    (mut confinement, plane): (Confinement, Option<&ControlPlane>),
) -> Command {
    let extra: Vec<&str> = settings.extra_modules(level).collect();
    let installed = level == Strictness::Lenient || !extra.is_empty();
    let mut command = Command::new(&interpreter.program).args(["-I", "-B", "-X", "utf8"]);
    if !installed {
        command = command.arg("-S");
    }
    let site = interpreter.site.iter().filter(|_| installed);
    for path in interpreter.reads.iter().chain(site) {
        confinement = confinement.read(path);
    }
    if let Some(plane) = plane {
        confinement = confinement.control_plane(plane);
    }
    if let Some(workspace) = &confinement.workspace {
        command = command.env("TOOLCRIB_WORKSPACE", workspace);
    }
    let mut given = interpreter.guard.clone();
    given.extend(format!("{level}\n{}\n{code}", extra.join(" ")).into_bytes());
    command
        .args(["-c", START])
        .stdin(given)
        // Nothing of the server's environment, not even its `PATH`.
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC")
        .cwd_in_scratch()
        .confine(confinement)
}

/// The confinement of the code.
fn confinement(level: Strictness, settings: &PythonSettings) -> Confinement {
    let profile = match level {
        Strictness::Lenient => Profile::WorkspaceNet,
        Strictness::Standard | Strictness::Strict => Profile::Pure,
    };
    let mut limits = Limits::of(profile);
    // One second more than the time limit, so that the time limit ends the code and its output is kept.
    limits.cpu = settings.timeout(level).checked_add(Duration::from_secs(1));
    if level == Strictness::Lenient {
        limits.file_size = Some(1 << 30);
        limits.open_files = Some(256);
    }
    Confinement::new(profile).limits(limits).defaults(settings.confinement())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_for_a_named_project_only_where_projects_are_named() {
        let dir = tempfile::tempdir().expect("there is room");
        let named = Projects::named([("docs", dir.path())]);
        let one = Projects::in_folder(dir.path());
        let args = ExecutePythonArgs { code: "1".to_owned(), strictness: None };
        let settings = PythonSettings::default();
        let allowed = |projects, id| allowed(&args, &settings, projects, id).map(|_| ());
        assert!(allowed(None, None).is_ok());
        assert!(allowed(Some(&one), None).is_ok());
        assert!(allowed(Some(&named), Some("docs")).is_ok());
        let unknown = allowed(Some(&named), Some("nope")).expect_err("there is no such project");
        assert_eq!(unknown.kind(), ErrorKind::Execution);
        let missing = allowed(Some(&named), None).expect_err("there is no project");
        assert_eq!(missing.kind(), ErrorKind::MissingContext);
    }
}
