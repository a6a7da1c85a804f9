//! The questions of `init`, each asked where its option was not given.

use clap::ValueEnum;
use toolcrib::tool::ToolName;

use super::clients::Client;
use crate::command::manifests::new::Template;
use crate::screen::{self, ERROR, STRONG};
use crate::serving::stop;
use crate::terminal_line;

/// What the first tool is called if nobody says otherwise.
pub(super) const TOOL: &str = "line_count";

/// The name of the first tool.
pub(super) async fn tool() -> anyhow::Result<String> {
    let question = format!("What is the first tool called? [{TOOL}] ");
    asked(&question, |line| match line {
        "" => Ok(TOOL.to_owned()),
        name => name_of_a_tool(name),
    })
    .await
}

/// What the first tool does.
pub(super) async fn template() -> anyhow::Result<Template> {
    chosen("What does it do?", Template::Command).await
}

/// The client that will use the tools.
pub(super) async fn client() -> anyhow::Result<Client> {
    chosen("Which client will use the tools?", Client::ClaudeCode).await
}

/// A name that a manifest can give its tool.
pub(super) fn name_of_a_tool(name: &str) -> Result<String, String> {
    ToolName::new(name).map_err(|error| error.to_string())?;
    let own = toolcrib::tool::native_tools();
    if own.iter().any(|tool| tool.name == name) {
        return Err(format!("`{name}` is the name of a built-in tool: choose another"));
    }
    Ok(name.to_owned())
}

/// One of several, by its name or its number; an empty line is the default.
async fn chosen<T: ValueEnum + Copy + PartialEq>(heading: &str, default: T) -> anyhow::Result<T> {
    let choices: Vec<(T, String, String)> = T::value_variants()
        .iter()
        .filter_map(|&choice| {
            let value = choice.to_possible_value()?;
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            Some((choice, value.get_name().to_owned(), help))
        })
        .collect();
    screen::note(heading);
    for (number, (_, name, help)) in choices.iter().enumerate() {
        screen::note(format!("  {} {STRONG}{name}{STRONG:#}: {help}", number + 1));
    }
    let default = choices.iter().position(|(choice, ..)| *choice == default).unwrap_or_default();
    asked(&format!("[{}] ", default + 1), |line| {
        let by_number = |number: usize| choices.get(number.checked_sub(1)?);
        let found = match line {
            "" => choices.get(default),
            line => match line.parse() {
                Ok(number) => by_number(number),
                Err(_) => choices.iter().find(|(_, name, _)| name == line),
            },
        };
        let found = found.map(|(choice, ..)| *choice);
        found.ok_or_else(|| format!("{line:?} is neither a number nor a name of the list"))
    })
    .await
}

/// Asks until an answer can be used.
async fn asked<T>(question: &str, read: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<T> {
    loop {
        screen::ask(question);
        let line =
            stop::unless_requested(terminal_line::read()).await.ok_or(stop::Interrupted)??;
        let Some(line) = line else { return Err(stop::Interrupted.into()) };
        match read(line.trim()) {
            Ok(answer) => return Ok(answer),
            Err(problem) => screen::note(format!("{ERROR}not accepted{ERROR:#}: {problem}")),
        }
    }
}
