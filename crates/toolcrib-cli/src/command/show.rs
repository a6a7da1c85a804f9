//! `toolcrib show NAME`: everything a tool says about itself.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use toolcrib::tool::{ToolCall, ToolEntry, canonical_json, fully_visible, visible};
use toolcrib::{Annotations, ErrorKind, Toolcrib};

use crate::options::{ConnectChoice, JsonOutput, Options};
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};
use crate::{Exit, runtime, startup, upstreams};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib show calculator
  toolcrib show calculator --json | jq .input_schema
  toolcrib show github_get_issue --connect   ask the MCP server that has it")]
pub(crate) struct ShowOptions {
    /// The tool's name
    name: String,
    #[command(flatten)]
    connect: ConnectChoice,
    #[command(flatten)]
    output: JsonOutput,
}

pub(super) fn run(options: &Options, own: &ShowOptions) -> anyhow::Result<Exit> {
    let started = startup::look(options, own.connect.connect)?;
    let crib = &started.crib;
    runtime::block_on(async {
        if own.connect.connect {
            upstreams::connect_for(&started, &own.name).await;
        }
        let outcome = shown(crib, own).await;
        if !own.connect.connect {
            upstreams::say_what_is_pinned_of(&started, &own.name);
        }
        crib.shutdown(Duration::ZERO).await;
        outcome
    })?
}

async fn shown(crib: &Toolcrib, own: &ShowOptions) -> anyhow::Result<Exit> {
    let snapshot = crib.executor().registry().snapshot();
    let Some(tool) = snapshot.get(&own.name) else {
        // A call knows how to answer an unknown name: near names included.
        let answer = crib.turn().call(ToolCall::new("show", &*own.name, "{}")).await;
        debug_assert_eq!(answer.error_kind(), Some(ErrorKind::NotFound));
        if own.output.json {
            screen::json(&answer.to_value())?;
        } else if let Some(error) = answer.error() {
            let near = error.hints().first().map(String::as_str).unwrap_or_default();
            screen::note(format!(
                "{ERROR}error{ERROR:#}: {} ({}). {near}",
                error.message(),
                own.name
            ));
        }
        return Ok(Exit::Failure);
    };
    if own.output.json {
        let mut document = tool.definition.to_value();
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
        screen::json(&document)?;
    } else {
        screen::out(page(tool))?;
    }
    Ok(Exit::Success)
}

fn page(tool: &ToolEntry) -> String {
    let definition = &tool.definition;
    let mut page = format!("{STRONG}{}{STRONG:#}", definition.name());
    if let Some(title) = definition.title() {
        let _ = write!(page, "  {}", fully_visible(title));
    }
    let _ = writeln!(page, "\n{}\n", visible(definition.description().trim()));
    if let Some(reason) = tool.unavailable_reason() {
        let word = if tool.is_blocked() { "blocked" } else { "unavailable" };
        let _ = writeln!(page, "{WARNING}{word}{WARNING:#}: {}\n", visible(reason));
    } else if let Some(remark) = &tool.remark {
        let _ = writeln!(page, "{WARNING}remark{WARNING:#}: {}\n", visible(remark));
    }
    let schema = definition.input_schema();
    let properties = schema.get("properties").and_then(Value::as_object);
    match properties.filter(|properties| !properties.is_empty()) {
        None => page.push_str("It takes no arguments.\n"),
        Some(properties) => {
            let _ = writeln!(page, "{STRONG}Arguments{STRONG:#}");
            let required = schema.get("required").and_then(Value::as_array);
            for (name, property) in properties {
                let is_required = required.is_some_and(|names| names.iter().any(|own| own == name));
                argument(name, property, is_required, &mut page);
            }
        }
    }
    if !definition.input_examples().is_empty() {
        let _ = writeln!(page, "\n{STRONG}Examples{STRONG:#}");
        for example in definition.input_examples() {
            let _ = writeln!(
                page,
                "  toolcrib call {} --json '{}'",
                definition.name(),
                fully_visible(&canonical_json(example))
            );
        }
    }
    let effects = effects(definition.annotations());
    let source = tool.source.to_string();
    let _ = writeln!(page, "\n{FAINT}{effects}; from {}{FAINT:#}", fully_visible(&source));
    if let Some(digest) = &tool.digest {
        let _ = writeln!(page, "{FAINT}digest {digest}{FAINT:#}");
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
        if annotations.open_world { "reaches beyond this host" } else { "stays on this host" };
    format!("{effect}; {reach}")
}

fn argument(name: &str, property: &Value, required: bool, page: &mut String) {
    let kind = match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => match property.get("enum") {
            Some(options) => format!("one of {}", canonical_json(options)),
            None => "any".to_owned(),
        },
    };
    let (name, kind) = (fully_visible(name), fully_visible(&kind));
    let need = if required { "required" } else { "optional" };
    let _ = write!(page, "  {STRONG}{name}{STRONG:#} ({kind}, {need}");
    if let Some(default) = property.get("default") {
        let _ = write!(page, ", default {}", fully_visible(&canonical_json(default)));
    }
    page.push(')');
    if let Some(description) = property.get("description").and_then(Value::as_str) {
        let _ = write!(page, "  {}", visible(description.trim()));
    }
    page.push('\n');
}
