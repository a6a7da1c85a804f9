//! Turns a program's exit and output into a result, or a failure that contains all of it.

use toolcrib_manifest::declaration::{CommandSpec, OutputFormat, OutputSpec};
use toolcrib_sandbox::{Finished, Status};
use toolcrib_tool::{Content, ErrorKind, ToolError, ToolOutput, visible};

use crate::command::explain::{ConfinedRun, explain, explain_kill, shows_unreachable_service};
use crate::confinement::facts;
use crate::output::masked_json::from_masked_slice;
use crate::output::redact_patterns::Redaction;
use crate::output::streams::{joined, lines, shown};

/// How many characters of an unreadable output a failure shows.
const EXCERPT: usize = 2_000;

/// The number of the signal that ends a program at once.
const SIGKILL: i32 = 9;

/// Advice for output that does not have the declared format.
const UNREADABLE: &str = "The tool's program or its declaration is at fault: other arguments may work; \
                          otherwise tell the user.";

/// Turns the end of a program into the call's outcome.
pub(crate) fn outcome(
    program: &str,
    finished: &Finished,
    spec: &CommandSpec,
    output: &OutputSpec,
    confined: ConfinedRun<'_>,
    redaction: &Redaction,
) -> Result<ToolOutput, ToolError> {
    let end = match finished.status {
        Status::Exited(code) if spec.ok_exit.contains(&code) => {
            return success(program, finished, output, redaction);
        }
        Status::Exited(code) => format!("{program} exited with code {code}"),
        Status::Signaled(number) => match finished.status.signal_name() {
            Some(name) => format!("{program} was killed by {name} (signal {number})"),
            None => format!("{program} was killed by signal {number}"),
        },
        _ => format!("{program} ended in a way that could not be observed"),
    };
    let retryable = finished.status.code().is_some_and(|code| spec.retry_exit.contains(&code));
    let printed = [&finished.stderr, &finished.stdout].map(|stream| shown(stream, redaction));
    let printed = printed.join("\n");
    let hint = if retryable {
        "The same call may succeed a little later."
    } else if shows_unreachable_service(&printed) {
        "A service that the program needs did not answer: other arguments help only if they name the service. \
         Otherwise tell the user."
    } else if finished.status.code().is_some() {
        "If what the program printed is about an argument, correct it; otherwise tell the user. The same call is \
         likely to fail again."
    } else {
        "The program did not end by itself: ask for less, or tell the user."
    };
    // If the program lacked a permission, other arguments do not help.
    let killed = finished.status.signal() == Some(SIGKILL);
    let hint = explain(confined, &printed)
        .or_else(|| explain_kill(confined).filter(|_| killed))
        .unwrap_or_else(|| hint.to_owned());
    Err(ToolError::execution(end)
        .with_retryable(retryable)
        .with_hint(hint)
        .with_partial(partial(finished, redaction)))
}

/// The failure of a call whose program was stopped, with its output so far. `kind` is `timeout` or `cancelled`.
pub(crate) fn stopped(
    program: &str,
    kind: ErrorKind,
    finished: &Finished,
    redaction: &Redaction,
) -> ToolError {
    let seconds = finished.duration.as_secs_f64();
    ToolError::new(kind, format!("{program} was stopped after {seconds:.1} s"))
        .with_partial(partial(finished, redaction))
}

/// Both streams with the metadata.
fn partial(finished: &Finished, redaction: &Redaction) -> ToolOutput {
    let text = joined(&shown(&finished.stdout, redaction), &shown(&finished.stderr, redaction));
    let output = if text.is_empty() { ToolOutput::new() } else { ToolOutput::from(text) };
    with_facts(output, finished)
}

fn success(
    program: &str,
    finished: &Finished,
    output: &OutputSpec,
    redaction: &Redaction,
) -> Result<ToolOutput, ToolError> {
    let stderr = shown(&finished.stderr, redaction);
    let result = match output.format {
        OutputFormat::Text | OutputFormat::Auto => {
            ToolOutput::from(joined(&shown(&finished.stdout, redaction), &stderr))
        }
        OutputFormat::Lines => {
            ToolOutput::from(joined(&shown(&finished.stdout, redaction), &stderr))
                .with_data(lines(&finished.stdout, redaction))
        }
        OutputFormat::Json => json(program, finished, redaction, &stderr)?,
    };
    Ok(with_facts(result, finished))
}

/// One JSON document. Its text is added only where it differs from the data.
fn json(
    program: &str,
    finished: &Finished,
    redaction: &Redaction,
    stderr: &str,
) -> Result<ToolOutput, ToolError> {
    let stdout = &finished.stdout;
    let unreadable = |problem: String| {
        let excerpt: String = shown(stdout, redaction).chars().take(EXCERPT).collect();
        ToolError::execution(problem)
            .with_partial(with_facts(ToolOutput::from(joined(&excerpt, stderr)), finished))
    };
    if stdout.is_truncated() {
        return Err(unreadable(format!(
            "{program} printed {} bytes of JSON, more than the limit of {}",
            stdout.total,
            stdout.head.len() + stdout.tail.len()
        ))
        .with_hint("Ask for less."));
    }
    if stdout.total == 0 {
        return Err(unreadable(format!("{program} printed nothing where JSON was expected"))
            .with_hint(UNREADABLE));
    }
    let data = from_masked_slice(&stdout.bytes())
        .map_err(|error| unreadable(format!("{program} printed invalid JSON: {error}")))
        .map_err(|error| error.with_hint(UNREADABLE))?;
    let data = redaction.data(data);
    let text = data.to_json();
    let visible = visible(&text);
    let mut output = ToolOutput::new();
    if visible != text || !stderr.is_empty() {
        output = output.with_content(visible.into_owned());
    }
    if !stderr.is_empty() {
        output = output.with_content(Content::text(joined("", stderr)));
    }
    Ok(output.with_exact_data(data))
}

/// Adds metadata for programs and operators: `exit_code` or `signal`, `stderr_bytes`, `truncated_bytes` if something
/// was cut, the confinement, and how the process tree was ended.
fn with_facts(mut output: ToolOutput, finished: &Finished) -> ToolOutput {
    if let Some(code) = finished.status.code() {
        output = output.with_meta("exit_code", code);
    }
    if let Some(signal) = finished.status.signal() {
        output = output.with_meta("signal", signal);
    }
    output = output
        .with_meta("stdout_bytes", finished.stdout.total)
        .with_meta("stderr_bytes", finished.stderr.total);
    let truncated = finished.stdout.omitted() + finished.stderr.omitted();
    if truncated > 0 {
        output = output.with_meta("truncated_bytes", truncated);
    }
    let kill = finished.kill;
    output = output
        .with_meta("kill_rung", kill.rung.as_str())
        .with_meta("sandbox", facts(&finished.enforced));
    if kill.survivors_killed > 0 {
        output = output.with_meta("survivors_killed", kill.survivors_killed);
    }
    if !kill.complete {
        output = output.with_meta("kill_complete", false);
    }
    output
}
