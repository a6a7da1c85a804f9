//! Exit code 2: reports why a command could not run on standard error, and as JSON on standard
//! output if the command line asks for JSON.

use std::ffi::OsString;
use std::fmt;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::json;
use toolcrib_search::near_names;
use tracing::Level;

use crate::logging::{self, LogFormat};
use crate::{Exit, screen};

/// The tip of `call` for JSON arguments in the place of an option's value.
pub(crate) const ARGUMENTS_ARE_INPUT: &str = "To give the arguments as JSON, use `--input FILE`, or `--input -` \
     for standard input; `--json` prints the result as JSON";

/// Errors that were already printed to standard error with their positions.
#[derive(Debug)]
pub(crate) struct ShownMistakes {
    /// What is invalid.
    pub(crate) what: &'static str,
    /// The errors as they were printed, without colors.
    pub(crate) mistakes: Vec<String>,
}

impl fmt::Display for ShownMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, screen::count(self.mistakes.len(), "mistake"))
    }
}

impl std::error::Error for ShownMistakes {}

/// Whether the command line asks for JSON output.
pub(crate) fn asks_for_json(arguments: &[OsString]) -> bool {
    let mut options = arguments.iter().take_while(|argument| *argument != "--").peekable();
    while let Some(option) = options.next() {
        let option = option.to_string_lossy();
        let is_json = match &*option {
            "--json" | "--format=json" => true,
            "--format" => options.peek().is_some_and(|value| *value == "json"),
            option => option.starts_with("--json="),
        };
        if is_json {
            return true;
        }
    }
    false
}

/// Reports why a command could not run.
pub(crate) fn report(error: &anyhow::Error, as_json: bool) -> Exit {
    screen::failure(error);
    if as_json {
        let shown = error.downcast_ref::<ShownMistakes>();
        let hints = shown.map(|shown| &*shown.mistakes).unwrap_or_default();
        print(&format!("{error:#}"), hints);
    }
    Exit::Usage
}

/// Prints the output of the argument parser: help and version with success, or an error.
pub(crate) fn report_parse(
    mut error: clap::Error,
    arguments: &[OsString],
    mut commands: clap::Command,
) -> Exit {
    if !error.use_stderr() {
        return error.print().map_or(Exit::Usage, |()| Exit::Success);
    }
    // Only built arguments have a display name.
    commands.build();
    add_tips(&mut error, arguments, &commands);
    if logging::asks_for_json(arguments) {
        logging::start(LogFormat::Json, 0, true);
        logging::line(Level::ERROR, error.render().to_string().trim_end());
    } else {
        let _ = error.print();
    }
    // Without arguments, clap prints the help.
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !is_help && asks_for_json(arguments) {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
        let words: Vec<&str> = message.split_whitespace().collect();
        let tips = rest.lines().filter_map(|line| line.trim_start().strip_prefix("tip: "));
        print(&words.join(" "), &tips.map(str::to_owned).collect::<Vec<_>>());
    }
    Exit::Usage
}

/// Adds tips that clap does not give: the choices of a missing argument, the option or command that was
/// probably meant, and how `call` takes the arguments of a tool.
fn add_tips(error: &mut clap::Error, arguments: &[OsString], commands: &clap::Command) {
    if let Some(ContextValue::String(written)) = error.get(ContextKind::InvalidSubcommand) {
        // clap compares names only where a command is run, not after `help`.
        let near = near_command(written, commands).filter(|_| is_unsuggested(error));
        if let Some(near) = near {
            let tip = format!("a similar subcommand exists: '{near}'");
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        return;
    }
    let is_named = |command: &clap::Command| arguments.iter().any(|own| own == command.get_name());
    let Some(command) = commands.get_subcommands().find(|command| is_named(command)) else {
        return;
    };
    let wrong = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) => vec![wrong.clone()],
        Some(ContextValue::Strings(wrong)) => wrong.clone(),
        _ => return,
    };
    let is_json = |wrong: &str| wrong == "--json";
    let takes_json = command.get_arguments().any(|own| own.get_long() == Some("json"));
    let tips: Vec<String> = match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let missing = command.get_arguments().filter(|own| wrong.contains(&own.to_string()));
            missing.filter_map(choices).collect()
        }
        ErrorKind::TooManyValues if wrong.iter().any(|own| is_json(own)) => {
            match command.get_name() {
                "call" => vec![ARGUMENTS_ARE_INPUT.to_owned()],
                _ => vec!["`--json` takes no value".to_owned()],
            }
        }
        ErrorKind::UnknownArgument if takes_json && wrong.iter().any(|own| own == "--format") => {
            let meant = ContextValue::String("--json".to_owned());
            error.insert(ContextKind::SuggestedArg, meant);
            let usage = ContextValue::StyledStr(command.clone().render_usage());
            error.insert(ContextKind::Usage, usage);
            return;
        }
        ErrorKind::UnknownArgument if command.get_name() == "call" && !is_slip(error) => {
            let pairs: Vec<String> =
                wrong.iter().filter_map(|option| as_pair(option, arguments)).collect();
            if !pairs.is_empty() {
                // clap also suggests options that have little in common with the one written.
                error.remove(ContextKind::SuggestedArg);
                let usage = ContextValue::StyledStr(command.clone().render_usage());
                error.insert(ContextKind::Usage, usage);
            }
            pairs
        }
        _ => return,
    };
    if !tips.is_empty() {
        let tips = tips.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

fn is_unsuggested(error: &clap::Error) -> bool {
    error.get(ContextKind::SuggestedSubcommand).is_none()
}

/// The command with the most similar name.
fn near_command(written: &str, commands: &clap::Command) -> Option<String> {
    let names = commands.get_subcommands().map(clap::Command::get_name);
    near_names(written, names).first().map(|name| (*name).to_owned())
}

/// Whether clap suggests an option of which the one written is a misspelling.
fn is_slip(error: &clap::Error) -> bool {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let suggested = text(ContextKind::SuggestedArg);
    let wrong = text(ContextKind::InvalidArg);
    wrong.zip(suggested).is_some_and(|(wrong, meant)| {
        wrong.len().abs_diff(meant.len()) <= 2 && !near_names(wrong, [meant]).is_empty()
    })
}

/// An option as an argument of a tool: `query=up` for `--query up` and `--query=up`.
fn as_pair(option: &str, arguments: &[OsString]) -> Option<String> {
    let key = option.strip_prefix("--")?.split('=').next()?;
    let at = arguments.iter().position(|own| {
        let own = own.to_string_lossy();
        own.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    let written = arguments[at].to_string_lossy();
    let value = if let Some((_, value)) = written.split_once('=') {
        value.to_owned()
    } else {
        let next = arguments.get(at + 1).map(|next| next.to_string_lossy().into_owned());
        next.filter(|next| !next.starts_with('-')).unwrap_or_else(|| "true".to_owned())
    };
    let key = key.replace('-', "_");
    Some(format!("the arguments of a tool have the form KEY=VALUE: write `{key}={value}`"))
}

/// The possible values of an argument, if they are limited.
fn choices(argument: &clap::Arg) -> Option<String> {
    let values = argument.get_possible_values();
    let names: Vec<&str> = values
        .iter()
        .filter(|own| !own.is_hide_set())
        .map(clap::builder::PossibleValue::get_name)
        .collect();
    (!names.is_empty()).then(|| format!("{argument} is one of: {}", names.join(", ")))
}

/// Prints the JSON form to standard output.
fn print(message: &str, hints: &[String]) {
    // Standard error contains the same, so ignore a closed standard output.
    let _ = screen::json(&json!({"error": {"message": message, "hints": hints}}));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_by_json_or_by_the_format() {
        let asks = |line: &str| {
            asks_for_json(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        for line in ["list --json", "check --format json", "check --format=json", "call x --json=-"]
        {
            assert!(asks(line), "{line}");
        }
        for line in ["list", "check --format sarif", "call x -- --json", "export --format openai"] {
            assert!(!asks(line), "{line}");
        }
    }
}
