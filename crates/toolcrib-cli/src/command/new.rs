//! `toolcrib new`: a first manifest, commented, checked and with tests of its own.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::json;
use toolcrib::config::Config;
use toolcrib::manifest::layers::Origin;
use toolcrib::tool::ToolName;

use super::{JsonOutput, Options};
use crate::screen::{self, STRONG};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib new count_lines                              a tool that runs a program
  toolcrib new ticket --template http                   a tool that sends a request
  toolcrib new pick_file --template client --file tools.d/editor.yaml

The file is made anew, and an existing one is never touched.")]
pub(crate) struct NewOptions {
    /// The tool's name; of an upstream, what its tools' names begin with
    name: String,
    /// What kind of tool
    #[arg(long, value_enum, default_value = "command")]
    template: Template,
    /// The file to make [default: NAME.yaml in the first of the config's directories]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Template {
    /// Runs a program
    Command,
    /// Sends a request over HTTP
    Http,
    /// Is run by the client
    Client,
    /// Takes the tools of another MCP server
    Upstream,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Command => include_str!("new/command.yaml"),
            Self::Http => include_str!("new/http.yaml"),
            Self::Client => include_str!("new/client.yaml"),
            Self::Upstream => include_str!("new/upstream.yaml"),
        }
    }
}

pub(super) fn run(options: &Options, own: &NewOptions) -> anyhow::Result<Exit> {
    if let Err(error) = ToolName::new(&own.name) {
        bail!("{error}");
    }
    let path = match &own.file {
        Some(file) => file.clone(),
        None => first_directory(options)?.join(format!("{}.yaml", own.name)),
    };
    if !path.extension().is_some_and(|found| found == "yaml" || found == "yml") {
        bail!("{} would not be read: end its name in .yaml", path.display());
    }
    make_directory(&path)?;
    let taken = taken(options, own)?;
    write_new(&path, &own.template.text().replace("{{name}}", &own.name))?;

    let shown = shell_word(&path);
    let check = format!("toolcrib check --strict {shown}");
    let next = match own.template {
        Template::Upstream => format!("toolcrib list --all --tools-dir {shown}"),
        _ => format!("toolcrib test {shown}"),
    };
    if own.output.json {
        screen::json(&json!({
            "file": path.to_string_lossy(),
            "name": own.name,
            "next": [check, next],
            "taken_by": taken,
        }))?;
    } else {
        screen::out(format!("{STRONG}{}{STRONG:#}", path.display()))?;
        screen::note(format!("Edit it, then:\n  {check}\n  {next}"));
        if let Some(owner) = taken {
            screen::note(format!(
                "The name `{}` belongs to {owner}: this tool is not called until one of them is renamed.",
                own.name
            ));
        }
    }
    Ok(Exit::Success)
}

/// The first directory of manifests of the config, which need not be there yet.
fn first_directory(options: &Options) -> anyhow::Result<PathBuf> {
    let loaded = startup::config(options)?;
    let is_default = loaded.origin(&["manifests", "dirs"]) == Origin::Default;
    match loaded.into_config().manifests.dirs.into_iter().next() {
        Some(dir) => Ok(dir),
        // What the default names is left out of the config while it is not there.
        None if is_default => {
            let named = Config::default().manifests.dirs.into_iter().next();
            named.context("there is no default directory of manifests: give --file")
        }
        None => bail!("the config names no directory of manifests: give --file"),
    }
}

/// Makes the directory of a file, if need be.
fn make_directory(path: &Path) -> anyhow::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(dir) => fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display())),
        None => Ok(()),
    }
}

/// Who has the name already, if anybody.
fn taken(options: &Options, own: &NewOptions) -> anyhow::Result<Option<String>> {
    if own.template == Template::Upstream {
        return Ok(None);
    }
    let started = startup::quietly(options)?;
    let snapshot = started.crib.executor().registry().snapshot();
    Ok(snapshot.get(&own.name).map(|entry| entry.source.to_string()))
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            bail!("{shown} is there already, and is left as it is: name another with --file")
        }
        Err(error) => return Err(error).with_context(|| format!("making {shown}")),
    };
    file.write_all(text.as_bytes()).with_context(|| format!("writing {shown}"))
}

/// A path as it is typed into a shell.
fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
