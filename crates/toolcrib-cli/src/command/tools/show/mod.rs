//! `toolcrib show NAME`: a tool's description, its limits, and what a call runs.

mod behavior;

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use toolcrib::tool::{ToolCall, ToolEntry, canonical_json, fully_visible, fully_visible_text};
use toolcrib::wire::parameters;
use toolcrib::{Annotations, ErrorKind};

use crate::options::{ConnectChoice, JsonOutput, Options};
use crate::screen::parameter::parameter_text;
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};
use crate::startup::Started;
use crate::{Exit, runtime, startup, upstream_wait};
use behavior::Behavior;
pub(in crate::command) use behavior::{DATA_ANALYSIS, because};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib show calculator
  toolcrib show calculator --json | jq .input_schema
  toolcrib show github_get_issue --connect   ask the MCP server that has the tool")]
pub(crate) struct ShowOptions {
    /// The tool's name
    name: String,
    #[command(flatten)]
    connect: ConnectChoice,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &ShowOptions) -> anyhow::Result<Exit> {
    let started = startup::look(options, own.connect.connect)?;
    let crib = &started.crib;
    runtime::block_on(async {
        if own.connect.connect {
            upstream_wait::connect_for(&started, &own.name).await?;
        }
        let outcome = shown(&started, own).await;
        crib.shutdown(Duration::ZERO).await;
        outcome
    })?
}

async fn shown(started: &Started, own: &ShowOptions) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let snapshot = crib.executor().registry().snapshot();
    let Some(tool) = snapshot.get(&own.name) else {
        let at_a_server = if own.connect.connect {
            upstream_wait::down_for(started, &own.name)
        } else {
            upstream_wait::not_asked_for(started, &own.name)
        };
        if let Some(message) = &at_a_server
            && let Some(pinned) = upstream_wait::pinned_tool(started, &own.name)
        {
            return show(&pinned, started, own, Some(message));
        }
        if let Some(message) = at_a_server {
            if own.output.json {
                let kind = ErrorKind::Unavailable.as_str();
                screen::json(&json!({"error": {"kind": kind, "message": message, "hints": []}}))?;
            } else {
                screen::note(screen::folded_note(&format!("{ERROR}error{ERROR:#}: {message}"), 4));
            }
            return Ok(Exit::Failure);
        }
        // A call of an unknown name already reports similar names.
        let answer = crib.turn().call(ToolCall::new("show", &*own.name, "{}")).await;
        debug_assert_eq!(answer.error_kind(), Some(ErrorKind::NotFound));
        let Some(error) = answer.error() else { return Ok(Exit::Failure) };
        if own.output.json {
            let message = format!("{} ({})", error.message(), own.name);
            let kind = error.kind().as_str();
            screen::json(&json!({
                "error": {"kind": kind, "message": message, "hints": error.hints()},
            }))?;
        } else {
            let near = error.hints().first().filter(|hint| hint.starts_with("Did you mean"));
            let near = near.map_or("`toolcrib list --all` names all tools", String::as_str);
            screen::note(format!(
                "{ERROR}error{ERROR:#}: {} ({}). {near}",
                error.message(),
                own.name
            ));
        }
        return Ok(Exit::Failure);
    };
    show(tool, started, own, None)
}

/// Shows a tool, or its `pinned` definition and why its server was not asked.
fn show(
    tool: &ToolEntry,
    started: &Started,
    own: &ShowOptions,
    pinned: Option<&str>,
) -> anyhow::Result<Exit> {
    let behavior = Behavior::of(tool, started);
    if own.output.json {
        let mut document = document(tool, &behavior);
        if let Some(message) = pinned {
            document["pinned"] = json!(true);
            document["unavailable"] = json!(message);
        }
        screen::json(&document)?;
        return Ok(Exit::Success);
    }
    screen::out(page(tool, &behavior))?;
    if let Some(message) = pinned {
        screen::note(screen::folded_note(&format!("{WARNING}pinned{WARNING:#}: {message}"), 4));
    }
    Ok(Exit::Success)
}

fn document(tool: &ToolEntry, behavior: &Behavior<'_>) -> Value {
    let mut document = tool.definition.to_value();
    behavior.add_to(&mut document);
    document["source"] = json!(tool.source.to_string());
    if let Some(reason) = tool.unavailable_reason() {
        document["unavailable"] = json!(reason);
    }
    if let Some(digest) = &tool.digest {
        document["digest"] = json!(digest);
    }
    if let Some(remark) = &tool.remark {
        document["remark"] = json!(remark);
    }
    if let Some(reason) = &tool.unsafe_argv {
        document["unsafe_argv"] = json!(reason);
    }
    document
}

fn page(tool: &ToolEntry, behavior: &Behavior<'_>) -> String {
    let definition = &tool.definition;
    let mut page = format!("{STRONG}{}{STRONG:#}", definition.name());
    if let Some(title) = definition.title() {
        let _ = write!(page, "  {}", fully_visible(title));
    }
    let _ =
        writeln!(page, "\n{}\n", lines(&fully_visible_text(definition.description().trim()), 0));
    if let Some(reason) = tool.unavailable_reason() {
        let word = if tool.is_blocked() { "blocked" } else { "unavailable" };
        let reason = screen::folded(&fully_visible_text(reason), word.len() + 2, 0);
        let _ = writeln!(page, "{WARNING}{word}{WARNING:#}: {reason}\n");
    } else if let Some(remark) = &tool.remark {
        let remark = screen::folded(&fully_visible_text(remark), "remark: ".len(), 0);
        let _ = writeln!(page, "{WARNING}remark{WARNING:#}: {remark}\n");
    }
    if let Some(reason) = &tool.unsafe_argv {
        let _ = writeln!(
            page,
            "{WARNING}unsafe_argv{WARNING:#}: a value may choose a program or be run: {}\n",
            fully_visible_text(reason)
        );
    }
    let parameters = parameters(definition);
    if parameters.is_empty() {
        page.push_str("It takes no arguments.\n");
    } else {
        let _ = writeln!(page, "{STRONG}Arguments{STRONG:#}");
        for parameter in &parameters {
            page.push_str(&parameter_text(parameter));
        }
    }
    if !definition.input_examples().is_empty() {
        let _ = writeln!(page, "\n{STRONG}Examples{STRONG:#}");
        for example in definition.input_examples() {
            let _ = writeln!(
                page,
                "  {} | toolcrib call {} --input -",
                printed(&fully_visible(&canonical_json(example))),
                definition.name()
            );
        }
    }
    page.push_str(&behavior.section());
    let effects = effects(definition.annotations());
    let source = tool.source.to_string();
    let _ = writeln!(page, "\n{FAINT}{effects}; from {}{FAINT:#}", fully_visible(&source));
    if let Some(digest) = &tool.digest {
        let _ = writeln!(page, "{FAINT}declaration digest {digest}{FAINT:#}");
    }
    if let Some(claims) = definition.claims() {
        let claims = self::effects(claims);
        let _ = writeln!(page, "{FAINT}it claims: {claims} (not trusted){FAINT:#}");
    }
    page
}

fn effects(annotations: Annotations) -> String {
    let effect = if annotations.read_only {
        "changes nothing"
    } else if annotations.may_destroy() {
        "may destroy"
    } else {
        "changes things"
    };
    let reach =
        if annotations.open_world { "may reach beyond this host" } else { "stays on this host" };
    format!("{effect}; {reach}")
}

/// A shell command that prints the text unchanged.
fn printed(text: &str) -> String {
    // Some shells' `echo` interprets backslash escapes.
    let program = if text.contains('\\') { "printf %s" } else { "echo" };
    format!("{program} '{}'", text.replace('\'', "'\\''"))
}

/// Each line of a text, folded to the width of the terminal.
fn lines(text: &str, indent: usize) -> String {
    let folded = text.lines().map(|line| screen::folded(line, indent, indent));
    folded.collect::<Vec<_>>().join("\n")
}
