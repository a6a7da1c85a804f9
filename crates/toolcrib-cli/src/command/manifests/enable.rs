//! `toolcrib enable NAME` and `toolcrib disable NAME`: manifests of the catalogue, loaded and no longer
//! loaded.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use toolcrib::manifest::LintContext;
use toolcrib::manifest::directory::{CATALOGUE, catalogue, lint_paths_with, load_dirs};
use toolcrib::settings::Config;
use toolcrib_search::near_names;

use crate::options::{JsonOutput, Options};
use crate::screen::columns::Columns;
use crate::screen::{self, STRONG, WARNING, count};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib enable                         list the catalogue
  toolcrib enable services                load `available/services.yaml`
  toolcrib enable prometheus --copy       a copy of your own, to edit
  toolcrib disable services

The catalogue is the folder `available` of a directory of manifests; nothing in it is loaded. Enabling a
manifest links it into the directory above, so that it follows updates of the catalogue. Where that directory
is in the workspace, it is copied: no program starts where it could replace a link. An update that changes a tool needs a new `toolcrib trust` or `toolcrib lock`, as any changed manifest does. Running servers
notice at once. Tools that need trust, a secret or a program are listed with what to do.")]
pub(crate) struct EnableOptions {
    /// The manifests of the catalogue, without their endings [default: list them]
    names: Vec<String>,
    /// Copy the manifest instead of linking it, to edit the copy
    #[arg(long, requires = "names")]
    copy: bool,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib disable services

Removes the link, or the copy if it is as it is in the catalogue. A copy that was edited is left for you
to remove. Running servers notice at once.")]
pub(crate) struct DisableOptions {
    /// The manifests, without their endings
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    output: JsonOutput,
}

/// A manifest of a catalogue.
struct Entry {
    name: String,
    /// The file in the catalogue.
    file: PathBuf,
    /// Where it is loaded from once it is enabled.
    place: PathBuf,
}

/// What is at the place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Disabled,
    Linked,
    /// A file with the same content.
    Copied,
    /// A file with another content.
    Edited,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Linked => "enabled",
            Self::Copied => "copied",
            Self::Edited => "edited",
        }
    }
}

impl Entry {
    fn state(&self) -> State {
        let Ok(found) = fs::symlink_metadata(&self.place) else { return State::Disabled };
        let leads_to = || self.place.canonicalize().ok();
        if found.is_symlink() && leads_to() == self.file.canonicalize().ok() {
            return State::Linked;
        }
        match (fs::read(&self.place), fs::read(&self.file)) {
            (Ok(own), Ok(other)) if own == other => State::Copied,
            _ => State::Edited,
        }
    }

    /// The names of the tools and MCP servers that the manifest declares.
    fn tools(&self) -> Vec<String> {
        let load = load_dirs(std::slice::from_ref(&self.file));
        let tools = load.declarations().map(|tool| tool.definition.name().to_owned());
        tools.chain(load.upstreams().map(|server| server.name.clone())).collect()
    }
}

/// The manifests of all catalogues of the config, in the order of the directories and names. Of two with
/// one name the first counts.
fn entries(config: &Config) -> anyhow::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for dir in &config.manifests.dirs {
        let Some(folder) = catalogue(dir) else { continue };
        let listed = fs::read_dir(&folder);
        let listed = listed.with_context(|| format!("reading {}", folder.display()))?;
        let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files.into_iter().filter(|file| file.is_file() && is_manifest(file)) {
            let (Some(stem), Some(name)) = (file.file_stem(), file.file_name()) else { continue };
            let stem = stem.to_string_lossy().into_owned();
            if entries.iter().all(|known| known.name != stem) {
                entries.push(Entry { name: stem, place: dir.join(name), file: file.clone() });
            }
        }
    }
    Ok(entries)
}

fn is_manifest(file: &Path) -> bool {
    let is_hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && file.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "toml")
}

/// The entry of a name, with or without its ending.
fn find<'e>(config: &Config, entries: &'e [Entry], name: &str) -> anyhow::Result<&'e Entry> {
    let is_named = |entry: &&Entry| {
        entry.name == name || entry.file.file_name().is_some_and(|file| file == name)
    };
    if let Some(entry) = entries.iter().find(is_named) {
        return Ok(entry);
    }
    if entries.is_empty() {
        bail!("{}", no_catalogue(config));
    }
    if let Some(entry) = entries.iter().find(|entry| entry.tools().iter().any(|tool| tool == name))
    {
        bail!("`{name}` is a tool of the manifest `{0}`: run `toolcrib enable {0}`", entry.name);
    }
    let known: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let near = match near_names(name, known.iter().copied()).first() {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    bail!("the catalogue has no manifest `{name}`: {near}it has {}", known.join(", "))
}

/// What to do where no directory has a catalogue.
fn no_catalogue(config: &Config) -> String {
    let folder = config.manifests.dirs.first().map(|dir| dir.join(CATALOGUE));
    let folder = folder.unwrap_or_else(|| Path::new("tools.d").join(CATALOGUE));
    format!(
        "there is no catalogue: no directory of `manifests.dirs` has a folder `{CATALOGUE}` with manifests. \
         toolcrib's source has one, `tools.d/{CATALOGUE}`: copy it to {}, or put manifests of your own there",
        folder.display()
    )
}

pub(in crate::command) fn run(options: &Options, own: &EnableOptions) -> anyhow::Result<Exit> {
    let config = startup::config(options)?.into_config();
    let entries = entries(&config)?;
    if own.names.is_empty() {
        return list(&config, &entries, own.output.json);
    }
    // Nothing is enabled if a name is wrong.
    let wanted: anyhow::Result<Vec<&Entry>> =
        own.names.iter().map(|name| find(&config, &entries, name)).collect();
    let wanted = wanted?;
    for entry in &wanted {
        usable(entry)?;
    }
    let mut changed = false;
    for entry in &wanted {
        let copies = own.copy || is_in_workspace(&config, &entry.place);
        changed |= enable(entry, copies)?;
    }
    let records = tell_enabled(options, &wanted, own.output.json)?;
    if own.output.json {
        screen::json(&json!({ "enabled": records }))?;
    }
    if changed {
        say_reload(&config);
    }
    Ok(Exit::Success)
}

/// Whether programs work in a folder that contains the manifest. A program that could replace a link is
/// not started, so the manifest has to be copied there instead.
fn is_in_workspace(config: &Config, place: &Path) -> bool {
    let folder = place.parent().and_then(|folder| folder.canonicalize().ok());
    let mut works = std::iter::once(&config.workspace.root).chain(config.projects.values());
    works.any(|work| {
        let work = work.canonicalize();
        folder.as_ref().zip(work.ok()).is_some_and(|(folder, work)| folder.starts_with(work))
    })
}

/// Fails if a manifest of the catalogue has errors, or its place is another file's.
fn usable(entry: &Entry) -> anyhow::Result<()> {
    let load = load_dirs(std::slice::from_ref(&entry.file));
    if load.has_errors() {
        screen::diagnostics(&load, |found| found.severity == toolcrib::manifest::Severity::Error);
        bail!("{} has errors, and was not enabled", entry.file.display());
    }
    if entry.state() == State::Edited {
        bail!(
            "{} is there already, with another content: it is loaded as it is; remove it first if you want \
             that of the catalogue",
            entry.place.display()
        );
    }
    Ok(())
}

/// Makes a link or a copy, unless one is there. Returns whether anything was made.
fn enable(entry: &Entry, copies: bool) -> anyhow::Result<bool> {
    let place = entry.place.display();
    match entry.state() {
        State::Linked if copies => {
            bail!("`{0}` is enabled by a link: run `toolcrib disable {0}` first", entry.name)
        }
        State::Linked | State::Copied => return Ok(false),
        State::Disabled | State::Edited => {}
    }
    if copies {
        let text =
            fs::read(&entry.file).with_context(|| format!("reading {}", entry.file.display()))?;
        let made = OpenOptions::new().write(true).create_new(true).open(&entry.place);
        let written = made.and_then(|mut file| file.write_all(&text));
        written.with_context(|| format!("writing {place}"))?;
    } else {
        let name = entry.file.file_name().unwrap_or_default();
        // Relative, so that the directory can be moved.
        symlink(Path::new(CATALOGUE).join(name), &entry.place)
            .with_context(|| format!("making the link {place}"))?;
    }
    // Scripts stand beside the manifest, and a link stands in another folder.
    let load = lint_paths_with(
        std::slice::from_ref(&entry.place),
        &LintContext::default().files(true),
        &|_| Vec::new(),
    );
    let mut problems = load.problems();
    if let Some((_, missing)) = problems.find(|(_, found)| found.code == "missing-script") {
        let message = missing.message.clone();
        fs::remove_file(&entry.place).with_context(|| format!("removing {place}"))?;
        bail!(
            "{place} was not enabled: {message}. Copy the manifest and its scripts into {} yourself",
            entry.place.parent().unwrap_or(Path::new(".")).display()
        );
    }
    Ok(true)
}

/// Says which tools were enabled, and what each still needs.
fn tell_enabled(options: &Options, wanted: &[&Entry], is_json: bool) -> anyhow::Result<Vec<Value>> {
    let started = startup::quietly(options)?;
    let snapshot = started.crib.executor().registry().snapshot();
    let mut records = Vec::new();
    for entry in wanted {
        let (mut told, mut lines) = (Vec::new(), Vec::new());
        for tool in entry.tools() {
            let found = snapshot.get(&tool);
            let is_own = found.is_none_or(|found| is_of(found.source.unit.as_str(), &entry.place));
            let reason = match found {
                Some(found) if !is_own => Some(format!("the name belongs to {}", found.source)),
                Some(found) => found.unavailable_reason().map(ToString::to_string),
                None => None,
            };
            if let Some(reason) = &reason {
                lines.push(format!("  {WARNING}unavailable{WARNING:#} {tool}: {reason}"));
            }
            told.push(json!({"name": tool, "unavailable": reason}));
        }
        if !is_json {
            let (name, place) = (&entry.name, entry.place.display());
            let tools = count(told.len(), "tool");
            screen::out(format!("{STRONG}{name}{STRONG:#} is enabled: {tools} in {place}"))?;
            for line in lines {
                screen::out(line)?;
            }
        }
        records.push(json!({
            "name": entry.name,
            "file": entry.place.to_string_lossy(),
            "state": entry.state().as_str(),
            "tools": told,
        }));
    }
    Ok(records)
}

/// Whether a unit of the registry is the manifest at a place.
fn is_of(unit: &str, place: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute(Path::new(unit)) == absolute(place)
}

/// Servers that follow no files have to be told.
fn say_reload(config: &Config) {
    if !config.manifests.watch {
        screen::note(
            "`manifests.watch` is false: running servers take it over with `toolcrib reload`",
        );
    }
}

fn list(config: &Config, entries: &[Entry], is_json: bool) -> anyhow::Result<Exit> {
    if is_json {
        let records = entries.iter().map(|entry| {
            json!({
                "name": entry.name,
                "file": entry.file.to_string_lossy(),
                "state": entry.state().as_str(),
                "tools": entry.tools(),
            })
        });
        screen::json(&json!({"catalogue": records.collect::<Vec<Value>>()}))?;
        return Ok(Exit::Success);
    }
    if entries.is_empty() {
        screen::note(no_catalogue(config));
        return Ok(Exit::Success);
    }
    let rows = entries.iter().map(|entry| {
        [entry.name.clone(), entry.state().as_str().to_owned(), entry.tools().join(", ")]
    });
    screen::out(Columns::new(["NAME", "STATE", "TOOLS"]).shorten(2, false).rows(rows))?;
    Ok(Exit::Success)
}

pub(in crate::command) fn disable(options: &Options, own: &DisableOptions) -> anyhow::Result<Exit> {
    let config = startup::config(options)?.into_config();
    let entries = entries(&config)?;
    let mut removed = Vec::new();
    for name in &own.names {
        // The catalogue may have lost the manifest since.
        let place = if let Some(place) = dangling(&config, name) {
            place
        } else {
            let entry = find(&config, &entries, name)?;
            match entry.state() {
                State::Disabled => {
                    screen::note(format!("`{}` is not enabled", entry.name));
                    continue;
                }
                State::Edited => bail!(
                    "{} differs from the manifest of the catalogue, so it is left for you to remove",
                    entry.place.display()
                ),
                State::Linked | State::Copied => entry.place.clone(),
            }
        };
        match fs::remove_file(&place) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {}", place.display()));
            }
            _ => {}
        }
        if !own.output.json {
            screen::out(format!("{STRONG}{name}{STRONG:#} is disabled"))?;
        }
        removed.push(place.to_string_lossy().into_owned());
    }
    if own.output.json {
        screen::json(&json!({ "removed": removed }))?;
    }
    if !removed.is_empty() {
        say_reload(&config);
    }
    Ok(Exit::Success)
}

/// A link of this name to a manifest that is in the catalogue no longer.
fn dangling(config: &Config, name: &str) -> Option<PathBuf> {
    let files = |dir: &PathBuf| {
        ["", ".yaml", ".yml", ".toml"].map(|ending| dir.join(format!("{name}{ending}")))
    };
    let mut places = config.manifests.dirs.iter().flat_map(files);
    places.find(|place| {
        let target = fs::read_link(place);
        target.is_ok_and(|target| target.starts_with(CATALOGUE)) && !place.exists()
    })
}
