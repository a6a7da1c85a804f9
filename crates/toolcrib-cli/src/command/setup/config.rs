//! `toolcrib config show`: the settings in effect, and where each comes from.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use toolcrib::manifest::layers::Origin;
use toolcrib::settings::EffectiveValue;
use toolcrib::tool::canonical_json;
use toolcrib::tool::units::{ByteSize, HumanDuration};

use crate::options::{JsonOutput, Options, ServerFlags};
use crate::screen::{self, FAINT, STRONG};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show the settings in effect, and where each comes from
    Show(ShowOptions),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib config show
  toolcrib config show --origins
  toolcrib config show --json | jq '.origins[\"executor.tool_timeout\"]'
  TOOLCRIB__EXECUTOR__TOOL_TIMEOUT=5s toolcrib config show
  toolcrib --set executor.tool_timeout=5s config show
  toolcrib config show --listen 127.0.0.1:9000       the settings of `serve` with this flag

Precedence, lowest first: built-in defaults, the config file, variables TOOLCRIB__SECTION__KEY and
TOOLCRIB_TOKEN, --set, other flags. Lists and
mappings are written as YAML in brackets: --set 'manifests.dirs=[a, b]'. Tokens and the values of
`secrets` are hidden. The output is a config file.")]
struct ShowOptions {
    /// Show where every value comes from, including defaults
    #[arg(long)]
    origins: bool,
    #[command(flatten)]
    output: JsonOutput,
    #[command(flatten)]
    server: ServerFlags,
}

impl ConfigOptions {
    /// The server settings for the same flags as in `toolcrib serve`.
    pub(in crate::command) fn server_settings(&self) -> &ServerFlags {
        let ConfigCommand::Show(own) = &self.command;
        &own.server
    }
}

pub(in crate::command) fn run(options: &Options, own: &ConfigOptions) -> anyhow::Result<Exit> {
    let ConfigCommand::Show(own) = &own.command;
    let loaded = startup::config(options)?;
    let mask = loaded.config().mask()?;
    let values = loaded.effective(&mask);
    let file = loaded.file();
    if own.output.json {
        let origins: Map<String, Value> =
            values.iter().map(|value| (value.path.join("."), origin_json(value, file))).collect();
        let file = file.map(|path| path.display().to_string());
        screen::json(&json!({"file": file, "config": loaded.shown(&mask), "origins": origins}))?;
    } else {
        screen::out(page(&values, file, own.origins))?;
    }
    Ok(Exit::Success)
}

fn origin_json(value: &EffectiveValue, file: Option<&Path>) -> Value {
    match &value.origin {
        Origin::File { line, column } => {
            let file = file.map(|path| path.display().to_string());
            json!({"from": "file", "file": file, "line": line, "column": column})
        }
        Origin::Setting(name) if name.starts_with("--") => {
            json!({"from": "flag", "name": flag(name)})
        }
        Origin::Setting(name) => json!({"from": "variable", "name": name}),
        _ => json!({"from": "default"}),
    }
}

/// The name of a flag without the key that `--set` adds, which is printed next to it.
fn flag(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}

/// The values as YAML, with their origins as comments.
fn page(values: &[EffectiveValue], file: Option<&Path>, all: bool) -> String {
    let mut page = String::new();
    let mut above: &[String] = &[];
    for value in values {
        let Some((last, sections)) = value.path.split_last() else { continue };
        let shared = above.iter().zip(sections).take_while(|(one, other)| one == other).count();
        for (depth, section) in sections.iter().enumerate().skip(shared) {
            let _ = writeln!(page, "{}{STRONG}{}{STRONG:#}:", "  ".repeat(depth), scalar(section));
        }
        above = sections;
        let indent = "  ".repeat(sections.len());
        let mut items: &[Value] = &[];
        let mut line = format!("{indent}{}:", scalar(last));
        match &value.value {
            // A list of mappings is easier to read one item at a time.
            Value::Array(objects) if objects.iter().any(Value::is_object) => items = objects,
            Value::String(text) => line.extend([" ", &scalar(text)]),
            other => line.extend([" ", &canonical_json(other)]),
        }
        let from = match (&value.origin, file) {
            (Origin::File { line, column }, Some(file)) => {
                Some(format!("{}:{line}:{column}", file.display()))
            }
            (Origin::Setting(name), _) => Some(flag(name).to_owned()),
            _ => all.then(|| "default".to_owned()),
        };
        let _ = match from {
            Some(from) => writeln!(page, "{line:<40} {FAINT}# {from}{FAINT:#}"),
            None => writeln!(page, "{line}"),
        };
        for item in items {
            let _ = writeln!(page, "{indent}  - {}", canonical_json(item));
        }
    }
    page
}

/// A string as YAML: plain if that is unambiguous, else in JSON notation.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    let measure = text.parse::<HumanDuration>().is_ok() || text.parse::<ByteSize>().is_ok();
    let word = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '/')
        && text.chars().all(plain)
        && !text.ends_with(':')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text);
    if measure || word { text.to_owned() } else { Value::from(text).to_string() }
}
