//! Finds the config of a command line and reads its layers.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;
use toolcrib::servers::{NoSocketFolder, SocketFolder, running_servers};
use toolcrib::settings::{ConfigError, ConfigLayers, LoadedConfig};

use crate::could_not_run::ShownMistakes;
use crate::options::Options;
use crate::screen::WARNING;
use crate::{arguments, screen};

/// The names under which a config file is found by default.
pub(crate) const DEFAULT_CONFIGS: [&str; 3] = ["config.yml", "config.yaml", "config.toml"];

/// Reads all layers of the config; the file is the named one, or one of [`DEFAULT_CONFIGS`] in the
/// current folder.
pub(crate) fn config(options: &Options) -> anyhow::Result<LoadedConfig> {
    load(layers(options)?)
}

pub(crate) fn layers(options: &Options) -> anyhow::Result<ConfigLayers> {
    let here = match &options.config {
        Some(_) => None,
        None => default_config()?,
    };
    layers_over(options, options.config.as_deref().or(here))
}

/// The layers of the config with this config file.
fn layers_over(options: &Options, config: Option<&Path>) -> anyhow::Result<ConfigLayers> {
    let mut layers = ConfigLayers::new().variables(std::env::vars_os());
    if let Some(path) = config {
        layers = layers.file(path);
    }
    for (key, text) in &options.set {
        layers = layers.set(&format!("--set {key}"), key, text);
    }
    if !options.tools_dir.is_empty() {
        let dirs = options.tools_dir.iter().map(|dir| {
            let text = dir.to_str();
            text.with_context(|| {
                format!("--tools-dir {}: the name is not valid UTF-8", dir.display())
            })
        });
        let dirs = dirs.collect::<anyhow::Result<Value>>()?;
        layers = layers.value("--tools-dir", &["manifests", "dirs"], dirs);
    }
    for pair in &options.ctx {
        let (key, value) = arguments::context_pair(pair)?;
        layers = layers.value("--ctx", &["context", &key], value);
    }
    if let Some(flags) = &options.server {
        layers = flags.over(layers);
    }
    Ok(layers)
}

/// The kind of the file with this name, if it exists; symbolic links are followed.
fn kind_of(path: &'static Path) -> Option<(&'static Path, &'static str)> {
    path.symlink_metadata().ok()?;
    let kind = match path.metadata().map(|found| found.file_type()) {
        Ok(kind) if kind.is_file() => "file",
        Ok(kind) if kind.is_dir() => "directory",
        Ok(kind) if kind.is_fifo() => "FIFO",
        Ok(kind) if kind.is_socket() => "socket",
        Ok(_) => "device",
        Err(_) => "dangling symbolic link",
    };
    Some((path, kind))
}

/// The config file of the current folder. Two are an error, since it would be unclear which one
/// applies.
fn default_config() -> anyhow::Result<Option<&'static Path>> {
    let there: Vec<_> = DEFAULT_CONFIGS.map(Path::new).into_iter().filter_map(kind_of).collect();
    if let Some((path, kind)) = there.iter().find(|(_, kind)| *kind != "file") {
        let folder = std::env::current_dir().unwrap_or_default();
        bail!(
            "{} in {} is a {kind}, not a file with settings: replace or rename it, or name the config with \
             --config",
            path.display(),
            folder.display()
        );
    }
    let mut found = there.into_iter().map(|(path, _)| path);
    let first = found.next();
    match first.zip(found.next()) {
        None => Ok(first),
        Some((first, second)) => bail!(
            "there are two config files here, {} and {}: remove one, or name one with --config",
            first.display(),
            second.display()
        ),
    }
}

/// Reads the layers, and prints every error in them.
pub(super) fn load(layers: ConfigLayers) -> anyhow::Result<LoadedConfig> {
    layers.load().map_err(refused)
}

/// Prints every error and counts them.
fn refused(error: ConfigError) -> anyhow::Error {
    let problems = error.problems(screen::colour());
    if problems.is_empty() {
        return error.into();
    }
    for problem in &problems {
        screen::mistake(problem);
        screen::note("");
    }
    let mistakes = error.problems(false);
    ShownMistakes { what: "the settings cannot be used", mistakes }.into()
}

/// Where servers with this config can be found, even if the config is broken: its errors are
/// printed, and the servers keep their settings. If there are two config files, the one that
/// servers run with is used.
pub(crate) fn control(options: &Options) -> anyhow::Result<Result<SocketFolder, NoSocketFolder>> {
    let warn = |error: anyhow::Error| {
        screen::note(format!(
            "{WARNING}warning{WARNING:#}: {error:#}. Running servers keep the settings they have"
        ));
    };
    let (place, problem) = match layers(options) {
        Ok(layers) => SocketFolder::find(&layers),
        Err(error) if options.config.is_none() => {
            let configs = DEFAULT_CONFIGS.map(Path::new).into_iter().filter(|path| path.is_file());
            let places =
                configs.map(|path| Ok(SocketFolder::find(&layers_over(options, Some(path))?)));
            let places = places.collect::<anyhow::Result<Vec<_>>>()?;
            let has_servers = |place: &Result<SocketFolder, NoSocketFolder>| {
                let servers = place.as_ref().ok().and_then(|place| running_servers(place).ok());
                servers.is_some_and(|servers| !servers.is_empty())
            };
            let running = places.into_iter().find(|(place, _)| has_servers(place));
            let Some(found) = running else { return Err(error) };
            warn(error);
            found
        }
        Err(error) => return Err(error),
    };
    if let Some(error) = problem {
        warn(refused(error));
    }
    Ok(place)
}
