//! `toolcrib completions SHELL`: generated from the same definitions as the help.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{Exit, screen};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib completions bash > ~/.local/share/bash-completion/completions/toolcrib
  toolcrib completions zsh > \"${fpath[1]}/_toolcrib\"
  toolcrib completions fish > ~/.config/fish/completions/toolcrib.fish")]
pub(crate) struct CompletionOptions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(in crate::command) fn run(
    own: &CompletionOptions,
    mut command: Command,
) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(own.shell, &mut command, "toolcrib", &mut script);
    screen::out(String::from_utf8(script)?)?;
    Ok(Exit::Success)
}
