//! `toolcrib new`: creates a manifest with comments and tests.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use serde_json::json;
use toolcrib::manifest::layers::Origin;
use toolcrib::settings::Config;
use toolcrib::tool::{Layer, ToolName};

use crate::options::{JsonOutput, Options};
use crate::screen::{self, STRONG, WARNING};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib new count_lines                              a tool that runs a program
  toolcrib new ticket --template http                   a tool that sends a request
  toolcrib new pick_file --template client --file tools.d/editor.yaml
  toolcrib new word_count --template worker             a tool with a long-running program

Existing files are never overwritten.")]
pub(crate) struct NewOptions {
    /// The tool's name; for an upstream, the prefix of its tools' names
    name: String,
    /// The kind of tool
    #[arg(long, value_enum, default_value = "command")]
    template: Template,
    /// The file to create [default: NAME.yaml in the first of the config's directories]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: JsonOutput,
}

/// The kind of a new tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::command) enum Template {
    /// Runs a program
    Command,
    /// Runs a script; a sample is created beside the manifest
    Script,
    /// A long-running worker program; a sample is created beside the manifest
    Worker,
    /// Sends a request over HTTP
    Http,
    /// Is run by the client
    Client,
    /// Imports the tools of another MCP server
    Upstream,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Command => include_str!("new/command.yaml"),
            Self::Script => include_str!("new/script.yaml"),
            Self::Worker => include_str!("new/worker.yaml"),
            Self::Http => include_str!("new/http.yaml"),
            Self::Client => include_str!("new/client.yaml"),
            Self::Upstream => include_str!("new/upstream.yaml"),
        }
    }

    /// The file name suffix and text of the program that belongs to the template.
    fn program(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Script => Some(("sh", include_str!("new/script.sh"))),
            Self::Worker => Some(("py", include_str!("new/worker.py"))),
            Self::Command | Self::Http | Self::Client | Self::Upstream => None,
        }
    }
}

pub(in crate::command) fn run(options: &Options, own: &NewOptions) -> anyhow::Result<Exit> {
    if let Err(error) = ToolName::new(&own.name) {
        bail!("{error}");
    }
    let path = match &own.file {
        Some(file) => file.clone(),
        None => first_directory(options)?.join(format!("{}.yaml", own.name)),
    };
    if !path.extension().is_some_and(|found| found == "yaml" || found == "yml") {
        bail!("{} would be ignored: its name must end in .yaml", path.display());
    }
    if own.template != Template::Upstream && is_built_in(options, &own.name)? {
        bail!("`{}` is the name of a built-in tool: choose another", own.name);
    }
    make_directory(&path, Elsewhere::File)?;
    let taken = taken(options, own)?;
    let is_read = is_read(options, &path)?;
    let draft = Draft::of(own.template, &own.name, path);
    draft.write(Elsewhere::File)?;
    let Draft { path, program, .. } = draft;
    let program = program.map(|program| program.path);

    let shown = shell_word(&path);
    let check = format!("toolcrib check --strict {shown}");
    let next = match own.template {
        Template::Upstream => format!("toolcrib list --all --connect --tools-dir {shown}"),
        _ => format!("toolcrib test {shown}"),
    };
    if own.output.json {
        screen::json(&json!({
            "file": path.to_string_lossy(),
            "program": program.as_ref().map(|path| path.to_string_lossy()),
            "name": own.name,
            "next": [check, next],
            "taken_by": taken,
            "is_read": is_read,
        }))?;
    } else {
        screen::out(format!("{STRONG}{}{STRONG:#}", path.display()))?;
        if let Some(program) = &program {
            screen::out(format!("{STRONG}{}{STRONG:#}", program.display()))?;
        }
        let made = if program.is_some() { "both" } else { "it" };
        screen::note(format!("Edit {made}, then:\n  {check}\n  {next}"));
        if !is_read {
            screen::note(format!(
                "{WARNING}warning{WARNING:#}: no server reads {shown}: it is in none of the folders of \
                 `manifests.dirs`"
            ));
        }
        if let Some(owner) = taken {
            screen::note(format!(
                "The name `{}` belongs to {owner}: this tool is not called until one of them is renamed.",
                own.name
            ));
        }
    }
    Ok(Exit::Success)
}

/// Whether the file is in one of the config's manifest directories, so that a server reads it.
fn is_read(options: &Options, path: &Path) -> anyhow::Result<bool> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute(path).parent().map(Path::to_owned);
    let dirs = startup::config(options)?.into_config().manifests.dirs;
    // The default directory is not part of the config until it exists.
    let first = first_directory(options).ok();
    let mut dirs = dirs.iter().chain(&first).map(|dir| absolute(dir));
    Ok(dirs.any(|dir| Some(&dir) == folder.as_ref() || dir == absolute(path)))
}

/// The first manifest directory of the config, which need not exist yet.
fn first_directory(options: &Options) -> anyhow::Result<PathBuf> {
    let loaded = startup::config(options)?;
    let is_default = loaded.origin(&["manifests", "dirs"]) == Origin::Default;
    match loaded.into_config().manifests.dirs.into_iter().next() {
        Some(dir) => Ok(dir),
        // The default directory is not part of the config until it exists.
        None if is_default => {
            let named = Config::default().manifests.dirs.into_iter().next();
            named.context("there is no default manifest directory: use --file")
        }
        None => bail!("the config names no manifest directory: use --file"),
    }
}

/// Creates the directory of a file if necessary.
pub(in crate::command) fn make_directory(path: &Path, elsewhere: Elsewhere) -> anyhow::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(dir) => {
            fs::create_dir_all(dir).map_err(|error| unwritable("making", dir, &error, elsewhere))
        }
        None => Ok(()),
    }
}

/// The owner of the name, if it is taken.
fn taken(options: &Options, own: &NewOptions) -> anyhow::Result<Option<String>> {
    if own.template == Template::Upstream {
        return Ok(None);
    }
    let started = startup::quietly(options)?;
    let snapshot = started.crib.executor().registry().snapshot();
    Ok(snapshot.get(&own.name).map(|entry| entry.source.to_string()))
}

/// Whether a tool of the program has the name, be it available or not.
fn is_built_in(options: &Options, name: &str) -> anyhow::Result<bool> {
    if toolcrib::tool::native_tools().iter().any(|tool| tool.name == name) {
        return Ok(true);
    }
    let started = startup::quietly(options)?;
    let snapshot = started.crib.executor().registry().snapshot();
    Ok(snapshot.get(name).is_some_and(|entry| entry.source.layer == Layer::Native))
}

/// A program that belongs to a manifest, next to it.
struct Program {
    path: PathBuf,
    text: String,
}

/// A manifest of a template that is not written yet, and its program.
pub(in crate::command) struct Draft {
    path: PathBuf,
    text: String,
    program: Option<Program>,
}

impl Draft {
    pub(in crate::command) fn of(template: Template, name: &str, path: PathBuf) -> Self {
        let mut text = template.text().replace("{{name}}", name);
        let mut program = None;
        if let Some((ending, program_text)) = template.program() {
            let file = format!("{name}.{ending}");
            text = text.replace("{{file}}", &file);
            let program_text = program_text.replace("{{name}}", name);
            program = Some(Program { path: path.with_file_name(file), text: program_text });
        }
        Self { path, text, program }
    }

    /// The files that it will be.
    pub(in crate::command) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.path).chain(self.program.as_ref().map(|program| &program.path))
    }

    /// Writes the manifest and its program. If one of the files exists, nothing is written.
    pub(in crate::command) fn write(&self, elsewhere: Elsewhere) -> anyhow::Result<()> {
        // Write the program first, so that a server that watches the directory finds the manifest
        // complete.
        if let Some(program) = &self.program {
            write_file(&program.path, &program.text, true, elsewhere)?;
        }
        let written = write_file(&self.path, &self.text, false, elsewhere);
        if let (Err(_), Some(Program { path, .. })) = (&written, &self.program) {
            fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        }
        written
    }
}

/// Writes a file that must not exist yet.
pub(in crate::command) fn write_file(
    path: &Path,
    text: &str,
    executable: bool,
    elsewhere: Elsewhere,
) -> anyhow::Result<()> {
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if executable {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o777);
    }
    #[cfg(not(unix))]
    let _ = executable;
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let way = match elsewhere {
                Elsewhere::File if executable => "choose another name",
                Elsewhere::File => "name another with --file",
                Elsewhere::Folder => "name another folder",
            };
            bail!("{shown} already exists and was not changed: {way}")
        }
        Err(error) => return Err(unwritable("making", path, &error, elsewhere)),
    };
    file.write_all(text.as_bytes()).map_err(|error| unwritable("writing", path, &error, elsewhere))
}

/// What names another place in a command: its option for the file, or its argument for the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::command) enum Elsewhere {
    /// `toolcrib new --file PATH`
    File,
    /// `toolcrib init FOLDER`
    Folder,
}

/// Why a file or folder could not be created, and what to do about it.
fn unwritable(doing: &str, path: &Path, error: &io::Error, elsewhere: Elsewhere) -> anyhow::Error {
    let (mine, other) = match elsewhere {
        Elsewhere::File => {
            ("a file that you may write with `--file PATH`", "place with `--file PATH`")
        }
        Elsewhere::Folder => ("a folder that you may write in", "folder"),
    };
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!(": name {mine}, or run this as the user who owns the folder")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!(": the disk is full; make room, or name another {other}")
        }
        _ => String::new(),
    };
    anyhow!("{doing} {}: {error}{advice}", path.display())
}

/// A path quoted for a shell.
pub(in crate::command) fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
