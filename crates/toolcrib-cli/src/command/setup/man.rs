//! `toolcrib man`: manual pages, generated from the same definitions as the help.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};

use crate::{Exit, screen};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib man | man -l -
  toolcrib man ~/.local/share/man/man1     toolcrib.1, toolcrib-list.1, …")]
pub(crate) struct ManOptions {
    /// Write one page for each command to this directory, which must exist
    directory: Option<PathBuf>,
}

pub(in crate::command) fn run(own: &ManOptions, command: Command) -> anyhow::Result<Exit> {
    if let Some(directory) = &own.directory {
        clap_mangen::generate_to(command, directory)
            .with_context(|| format!("writing manual pages to {}", directory.display()))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        screen::out(String::from_utf8(page)?)?;
    }
    Ok(Exit::Success)
}
