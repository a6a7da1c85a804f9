//! `toolcrib call --dry-run`: shows what a call would do, without running it or asking anybody.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use toolcrib::core::DryRun;
use toolcrib::core::policy::Verdict;
use toolcrib::tool::{
    CommandLimits, CommandPlan, Plan, RequestPlan, UpstreamPlan, canonical_json, fully_visible_text,
};

use crate::command::tools::show::DATA_ANALYSIS;
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};

/// Prints what a call would do, within the time that the tool's own settings give its work. Returns whether it would
/// run.
pub(super) fn print(dry: &DryRun, own_limit: Option<Duration>, json: bool) -> anyhow::Result<bool> {
    let denied = matches!(dry.verdict, Verdict::Deny { .. });
    if json {
        screen::json(&dry.to_value())?;
    } else {
        screen::out(text(dry, own_limit))?;
        screen::note(format!("{FAINT}dry run: nothing was run and nobody was asked{FAINT:#}"));
    }
    Ok(!denied)
}

fn text(dry: &DryRun, own_limit: Option<Duration>) -> String {
    let definition = dry.context.definition();
    let mut text = format!("{STRONG}{}{STRONG:#}\n", definition.name());
    let arguments = serde_json::to_string(dry.shown_arguments()).unwrap_or_default();
    row(&mut text, "arguments", &fully_visible_text(&arguments));
    for mended in &dry.mended {
        row(&mut text, "mended", &fully_visible_text(mended));
    }
    match dry.shown_plan() {
        Some(Plan::Command(plan)) => command(plan, &mut text),
        Some(Plan::Request(plan)) => request(plan, &mut text),
        Some(Plan::Upstream(plan)) => upstream(plan, &mut text),
        _ if definition.client() => {
            row(&mut text, "runs", "at the client, which receives the call");
        }
        _ if definition.name() == DATA_ANALYSIS => {
            row(&mut text, "runs", "a query in a confined process of its own");
        }
        _ => row(&mut text, "runs", "in this process; the tool does not say what it would do"),
    }
    let own = own_limit.filter(|_| dry.shown_plan().is_none());
    let timeout = own.into_iter().chain(dry.timeout).min();
    let timeout = timeout.map_or_else(|| "none".to_owned(), |limit| format!("{limit:?}"));
    let chars = dry.context.output_chars();
    row(&mut text, "limits", &format!("{timeout}; {chars} characters for the model"));
    match &dry.answer {
        None => row(&mut text, "answer", "from a run: the tool keeps no answers"),
        Some(answer) => {
            let key = answer.key.to_string();
            let key = key.get(..16).unwrap_or(&key);
            let from = if answer.is_there { "from an earlier call" } else { "from a run" };
            row(&mut text, "answer", &format!("{from}; kept under {key}"));
        }
    }
    let by = dry.verdict.by();
    let decision = match &dry.verdict {
        Verdict::Allow { .. } => format!("allowed by {by}"),
        Verdict::Ask { reason, .. } => {
            format!("{WARNING}asks for approval{WARNING:#}: {} ({by})", fully_visible_text(reason))
        }
        Verdict::Deny { message, .. } => {
            format!("{ERROR}denied{ERROR:#}: {} ({by})", fully_visible_text(message))
        }
    };
    row(&mut text, "decision", &decision);
    text
}

fn command(plan: &CommandPlan, text: &mut String) {
    let argv: Vec<String> = plan.argv.iter().map(|argument| screen::quoted(argument)).collect();
    row(text, "runs", &argv.join(" "));
    match plan.cwd.as_str() {
        "" => row(text, "in", "a temporary directory, which is removed afterwards"),
        cwd => row(text, "in", &fully_visible_text(cwd)),
    }
    if !plan.sandbox.is_empty() {
        row(text, "under", &plan.sandbox);
    }
    let list = |names: &[String]| names.join(", ");
    if !plan.env.is_empty() {
        row(text, "sets", &list(&plan.env));
    }
    if !plan.pass_env.is_empty() {
        row(text, "passes on", &list(&plan.pass_env));
    }
    let sent = match plan.stdin_bytes {
        0 => "empty".to_owned(),
        bytes => screen::count(bytes, "byte"),
    };
    if plan.worker {
        row(text, "as", "a worker that keeps running; it is started unless it already runs");
        row(text, "is sent", &format!("the call, a line of {sent}"));
    } else if plan.stdin_arguments {
        row(text, "stdin", &format!("all arguments as one JSON object, {sent}"));
    } else {
        row(text, "stdin", &sent);
    }
    if let Some(limits) = held_to(&plan.limits) {
        row(text, "within", &limits);
    }
    let kept = screen::count(plan.output_bytes, "byte");
    if plan.worker {
        row(text, "keeps", &format!("answers of up to {kept}"));
    } else {
        row(text, "keeps", &format!("{kept} of each output"));
    }
}

/// The resource limits of a program, if there are any.
fn held_to(limits: &CommandLimits) -> Option<String> {
    let bytes = |bytes: u64| match bytes {
        bytes if bytes > 0 && bytes % (1 << 30) == 0 => format!("{} GiB", bytes >> 30),
        bytes if bytes > 0 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{bytes} bytes"),
    };
    let held = [
        limits.time.map(|time| format!("{time:?}")),
        limits.cpu.map(|cpu| format!("{cpu:?} on a processor")),
        limits.memory.map(|memory| format!("{} of memory", bytes(memory))),
        limits.file_size.map(|size| format!("files of {}", bytes(size))),
        limits.open_files.map(|files| format!("{files} open files")),
        limits.processes.map(|processes| format!("{processes} processes")),
    ];
    let held: Vec<String> = held.into_iter().flatten().collect();
    (!held.is_empty()).then(|| held.join(", "))
}

fn request(plan: &RequestPlan, text: &mut String) {
    row(text, "requests", &format!("{} {}", plan.method, fully_visible_text(&plan.url)));
    if !plan.headers.is_empty() {
        row(text, "headers", &plan.headers.join(", "));
    }
    if let Some(body) = &plan.body {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        row(text, "body", &fully_visible_text(&body));
    }
}

fn upstream(plan: &UpstreamPlan, text: &mut String) {
    let UpstreamPlan { server, tool, arguments } = plan;
    let there = format!(
        "`{}` of the MCP server `{}`",
        fully_visible_text(tool),
        fully_visible_text(server)
    );
    row(text, "calls", &there);
    row(text, "sends", &fully_visible_text(&canonical_json(arguments)));
    row(text, "", "and nothing else: no value of the context");
}

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<10} {value}");
}

/// A refusal, as JSON in the same form as the error of a failed call.
pub(super) fn refusal(error: &toolcrib::ToolError, json: bool) -> anyhow::Result<()> {
    if json {
        return screen::json(&serde_json::json!({"error": {
            "kind": error.kind().as_str(),
            "message": error.message(),
            "hints": error.hints(),
        }, "plan": Value::Null}));
    }
    screen::note(format!(
        "{ERROR}refused ({}){ERROR:#}: {}",
        error.kind(),
        fully_visible_text(error.message())
    ));
    for hint in error.hints() {
        screen::note(fully_visible_text(hint));
    }
    Ok(())
}
