//! From a command line to a crib: which config, which manifests, which context.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolcrib::config::{Config, SetupError};
use toolcrib::manifest::{self, Severity};
use toolcrib::manifests::Manifests;
use toolcrib::{Toolcrib, ToolcribBuilder};

use crate::command::Options;
use crate::{arguments, screen};

/// The config that is read if none is named and it is there.
const DEFAULT_CONFIG: &str = "config.yml";

/// A crib and what was found on the way to it.
pub(crate) struct Started {
    pub(crate) crib: Toolcrib,
    pub(crate) config: Config,
    pub(crate) manifests: Manifests,
}

/// Builds the crib for a server, and shows on standard error all that is wrong with manifests.
pub(crate) fn serve(options: &Options) -> anyhow::Result<Started> {
    let started = build(options, ToolcribBuilder::resources)?;
    screen::diagnostics(started.manifests.files(), |problem| problem.severity == Severity::Error);
    Ok(started)
}

/// Builds the crib for one call, and names on standard error the files that are left out.
pub(crate) fn call(options: &Options) -> anyhow::Result<Started> {
    let started = build(options, ToolcribBuilder::resources)?;
    screen::broken_files(started.manifests.files());
    Ok(started)
}

/// Builds the crib to look at: as for a call, but nothing is opened and nothing made.
pub(crate) fn look(options: &Options) -> anyhow::Result<Started> {
    let started = build(options, |builder, _| Ok(builder))?;
    screen::broken_files(started.manifests.files());
    Ok(started)
}

fn build(
    options: &Options,
    open: impl FnOnce(ToolcribBuilder, &Config) -> Result<ToolcribBuilder, SetupError>,
) -> anyhow::Result<Started> {
    let mut config = config(options)?;
    if !options.tools_dir.is_empty() {
        config.manifests.dirs.clone_from(&options.tools_dir);
    }
    for pair in &options.ctx {
        let (key, value) = arguments::context_pair(pair)?;
        config.context.insert(key, value);
    }
    let manifests = Manifests::load(&config.manifests.dirs, &config.workspace.root);
    let builder = Toolcrib::builder().settings(&config).native_tools().entries(manifests.entries());
    let crib = open(builder, &config)?.build()?;
    Ok(Started { crib, config, manifests })
}

/// Reads the config file: the named one, or `config.yml` here if there is one, or the defaults.
pub(crate) fn config(options: &Options) -> anyhow::Result<Config> {
    let path = match &options.config {
        Some(path) => path.clone(),
        None if Path::new(DEFAULT_CONFIG).is_file() => PathBuf::from(DEFAULT_CONFIG),
        None => {
            let mut config = Config::default();
            // Nobody asked for the default directory: where there is none, there are no manifests.
            config.manifests.dirs.retain(|dir| dir.exists());
            return Ok(config);
        }
    };
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("reading the config file {}", path.display()))?;
    match manifest::decode::<Config>(&path.display().to_string(), &text) {
        Ok(config) => Ok(config.relative_to(path.parent().unwrap_or(Path::new("")))),
        Err(diagnostics) => {
            let name = path.display().to_string();
            for diagnostic in &diagnostics {
                screen::note(diagnostic.render(&name, &text, screen::colour()));
            }
            bail!("the config file {} cannot be used", path.display())
        }
    }
}
