//! Builds the crib for a command line: its config, manifests and context.

mod config;
mod secrets;
mod storage;
mod warnings;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use toolcrib::agents::sub_agent_tools;
use toolcrib::core::suspension::MemorySuspensions;
use toolcrib::manifest::Severity;
use toolcrib::manifest::declaration::UpstreamDeclaration;
use toolcrib::manifest::lock::LockMode;
use toolcrib::manifests::Manifests;
use toolcrib::runners::{RunnerHost, SecretSources, Secrets};
use toolcrib::servers::{NoSocketFolder, SocketFolder, running_servers};
use toolcrib::settings::{Config, LoadedConfig, SetupError};
use toolcrib::{Toolcrib, ToolcribBuilder};
use toolcrib_sandbox::{
    STARTS_PROGRAMS, close_to_others, scratch_folder, sweep_scratch, take_variables,
};

use self::config::load;
pub(crate) use self::config::{DEFAULT_CONFIGS, config, control, layers};
pub(crate) use self::storage::before_programs;
use self::storage::{create_state_folder, pins, prepare, resources, stored_runs};
use self::warnings::{log_missing_lock, log_unavailable_tools, log_unenforced_profiles};
use crate::options::Options;
use crate::screen;

/// A crib and what was loaded for it.
pub(crate) struct Started {
    pub(crate) crib: Toolcrib,
    pub(crate) config: Config,
    pub(crate) manifests: Manifests,
    /// Where servers with this config can be found.
    pub(crate) control: Result<SocketFolder, NoSocketFolder>,
}

/// Builds the crib for a server, protects its process, and prints all problems of manifests to
/// standard error. A server that `listens` is refused at once if another server with this config
/// already listens.
pub(crate) fn serve(options: &Options, listens: bool) -> anyhow::Result<Started> {
    protect_memory()?;
    // Kept for reloads, including the variables that are removed from the environment below.
    let layers = layers(options)?;
    let loaded = load(layers.clone())?;
    if listens {
        refuse_second(&loaded)?;
    }
    let read = secrets_of(&loaded);
    let mut loaded = loaded;
    for warning in create_state_folder(&mut loaded) {
        tracing::warn!("{warning}");
    }
    prepare(&loaded)?;
    let tools = sub_agent_tools()?;
    // Without a state folder, what clients are asked is kept in memory. The tools are for runs of agents only.
    let open = |builder, config: &_| Ok(resources(builder, config)?.entries(tools));
    let started = build_of(&loaded, read, open)?;
    started.crib.follow_config(loaded.config(), move || {
        let loaded = layers.clone().load().map_err(|error| error.to_string())?;
        Ok(loaded.into_config())
    });
    log_missing_lock(&started);
    log_unavailable_tools(&started);
    let mut findings = started.crib.unmatched_names(&started.config);
    findings.extend(started.crib.missing_secrets());
    for text in loaded.reports(&findings) {
        tracing::warn!("{text}");
    }
    screen::diagnostics(started.manifests.files(), |problem| problem.severity == Severity::Error);
    log_unenforced_profiles(started.config.sandbox.require);
    if STARTS_PROGRAMS && let Err(error) = scratch_folder() {
        tracing::warn!("no program can be started: {error}");
    }
    // Clean up after servers of this user that were killed; this may take a while.
    std::thread::spawn(sweep_scratch);
    Ok(started)
}

/// Closes this process to other programs of its user.
fn protect_memory() -> anyhow::Result<()> {
    match close_to_others() {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            tracing::warn!(%error, "other programs of this user can read this process's memory");
            Ok(())
        }
        closed => {
            closed.context("this process cannot be protected from other programs of its user")
        }
    }
}

/// Removes secrets from the environment of this process, and returns what reads all secrets. To be called before the
/// first thread is started, since no other thread may be reading the environment.
fn secrets_of(loaded: &LoadedConfig) -> impl FnOnce(SecretSources) -> Secrets + use<> {
    let taken = take_variables(loaded.secret_variables()).unwrap_or_else(|error| {
        tracing::warn!(%error, "variables that contain secrets could not be removed from the environment");
        BTreeMap::new()
    });
    |sources| secrets::read(sources.variables(taken))
}

/// Fails if a server with this config already uses the address.
fn refuse_second(loaded: &LoadedConfig) -> anyhow::Result<()> {
    let listen = &loaded.config().server.listen;
    let is_taken = listen.try_out().is_err_and(|error| error.is_taken());
    let servers = SocketFolder::of(loaded).ok().filter(|_| is_taken);
    let servers = servers.and_then(|place| running_servers(&place).ok()).unwrap_or_default();
    match servers.first() {
        Some(server) => bail!(
            "{listen} is in use: the server {} already runs with this config (`toolcrib status` shows it). \
             Stop it first, or give this one another address with `--listen`",
            server.pid
        ),
        // Another program may hold it; binding the address reports that.
        None => Ok(()),
    }
}

/// Builds the crib for one call, and reports invalid files on standard error.
pub(crate) fn call(options: &Options) -> anyhow::Result<Started> {
    protect_memory()?;
    let mut loaded = config(options)?;
    let read = secrets_of(&loaded);
    for warning in create_state_folder(&mut loaded) {
        screen::note(warning);
    }
    prepare(&loaded)?;
    // Questions are answered here, or never: this process ends with its call.
    let started = build_of(&loaded, read, |builder, config| {
        Ok(resources(builder, config)?.suspensions(Arc::new(MemorySuspensions::new())))
    })?;
    screen::broken_files(started.manifests.files());
    Ok(started)
}

/// Builds the crib for a run of an agent, and reports invalid files on standard error. Its calls can wait, since the
/// run can be continued by another process.
pub(crate) fn run(options: &Options) -> anyhow::Result<Started> {
    protect_memory()?;
    let mut loaded = config(options)?;
    let read = secrets_of(&loaded);
    for warning in create_state_folder(&mut loaded) {
        screen::note(warning);
    }
    prepare(&loaded)?;
    let tools = sub_agent_tools()?;
    let started =
        build_of(&loaded, read, |builder, config| Ok(resources(builder, config)?.entries(tools)))?;
    screen::broken_files(started.manifests.files());
    Ok(started)
}

/// Builds the crib to look at the runs of agents that are stored. Nothing is created.
pub(crate) fn runs(options: &Options) -> anyhow::Result<Started> {
    build(options, Secrets::look, stored_runs)
}

/// Builds the crib for a dry run: nothing is opened, and no command is run to get a secret, unless
/// the tool may belong to another MCP server, which gets the secrets it needs.
pub(crate) fn plan(options: &Options, tool: &str) -> anyhow::Result<Started> {
    let mut started = quietly(options)?;
    let is_known = started.crib.executor().registry().snapshot().get(tool).is_some();
    let needs_them = {
        let declared = started.manifests.files().upstreams();
        let mut both = started.manifests.upstreams().zip(declared);
        both.any(|(upstream, says)| upstream.may_offer(tool) && needs_secrets(says))
    };
    if !is_known && needs_them {
        started = build(options, secrets::read, |builder, config| Ok(pins(builder, config)))?;
    }
    screen::broken_files(started.manifests.files());
    Ok(started)
}

/// Builds the crib for the tests in manifests, those of `paths` if there are any, else those of the
/// config. Nothing is opened: tests leave no audit records and no outputs behind. With `mock`, no
/// command is run to get a secret either.
pub(crate) fn test(options: &Options, paths: &[PathBuf], mock: bool) -> anyhow::Result<Started> {
    let mut loaded = config(options)?;
    // Without manifests nothing is started. The caller creates paths given on the command line.
    if !mock && loaded.config().manifests.absent().is_empty() {
        prepare(&loaded)?;
    }
    if !paths.is_empty() {
        let manifests = &mut loaded.config_mut().manifests;
        manifests.dirs = paths.to_vec();
        manifests.may_be_missing = false;
    }
    if mock {
        // Checking argument vectors needs neither the programs, nor the secrets, nor the trust.
        return build_over(&loaded, Secrets::look, RunnerHost::for_plans, |builder, _| Ok(builder));
    }
    build_of(&loaded, secrets::read, |builder, _| Ok(builder))
}

/// Builds the crib for inspection: nothing is opened or created, and no command is run to get a
/// secret, unless other MCP servers are started (`connect`), which get the secrets they need. Pins
/// are read if there is a state folder.
pub(crate) fn look(options: &Options, connect: bool) -> anyhow::Result<Started> {
    let mut started = quietly(options)?;
    if connect && started.manifests.files().upstreams().any(needs_secrets) {
        started = build(options, secrets::read, |builder, config| Ok(pins(builder, config)))?;
    }
    screen::broken_files(started.manifests.files());
    Ok(started)
}

fn needs_secrets(upstream: &UpstreamDeclaration) -> bool {
    !upstream.needs.secrets.is_empty()
}

/// Like [`look`], without messages about invalid files.
pub(crate) fn quietly(options: &Options) -> anyhow::Result<Started> {
    build(options, Secrets::look, |builder, config| Ok(pins(builder, config)))
}

/// Like [`quietly`], for a command that shows errors of the config itself: fails without a message.
pub(crate) fn silently(options: &Options) -> anyhow::Result<Started> {
    let loaded = layers(options)?.load()?;
    build_of(&loaded, Secrets::look, |builder, config| Ok(pins(builder, config)))
}

/// Like [`quietly`], without reading the state folder.
pub(crate) fn without_state(options: &Options) -> anyhow::Result<Started> {
    build_of(&config(options)?, Secrets::look, |builder, _| Ok(builder))
}

/// Builds the crib as it is declared, without applying the lock and pins. If other MCP servers will
/// be asked, they get the secrets they need.
pub(crate) fn declared(options: &Options, asks_servers: bool) -> anyhow::Result<Started> {
    let build = |secrets: fn(SecretSources) -> Secrets| {
        let mut loaded = config(options)?;
        loaded.config_mut().registry.lock = LockMode::Off;
        build_of(&loaded, secrets, |builder, _| Ok(builder))
    };
    let started = build(Secrets::look)?;
    if asks_servers && started.manifests.files().upstreams().any(needs_secrets) {
        return build(secrets::read);
    }
    Ok(started)
}

fn build(
    options: &Options,
    secrets: impl FnOnce(SecretSources) -> Secrets,
    open: impl FnOnce(ToolcribBuilder, &Config) -> Result<ToolcribBuilder, SetupError>,
) -> anyhow::Result<Started> {
    build_of(&config(options)?, secrets, open)
}

fn build_of(
    loaded: &LoadedConfig,
    secrets: impl FnOnce(SecretSources) -> Secrets,
    open: impl FnOnce(ToolcribBuilder, &Config) -> Result<ToolcribBuilder, SetupError>,
) -> anyhow::Result<Started> {
    build_over(loaded, secrets, |host| host, open)
}

/// Like [`build_of`], with another host for the tools of manifests.
fn build_over(
    loaded: &LoadedConfig,
    secrets: impl FnOnce(SecretSources) -> Secrets,
    host: impl FnOnce(RunnerHost) -> RunnerHost,
    open: impl FnOnce(ToolcribBuilder, &Config) -> Result<ToolcribBuilder, SetupError>,
) -> anyhow::Result<Started> {
    let control = SocketFolder::of(loaded);
    let mut config = loaded.config().clone();
    // At the next start they are loaded from here, whoever wrote them.
    config.own_files.extend(DEFAULT_CONFIGS.map(PathBuf::from));
    let secrets = secrets(config.secret_sources());
    let host = host(config.runner_host(secrets.clone()));
    let mut manifests = Manifests::load(&config.manifests.dirs, host);
    if config.manifests.may_be_missing {
        manifests = manifests.without_missing();
    }
    let manifests = manifests.located(loaded);
    let builder = Toolcrib::builder().settings(&config).native_tools().manifests(&manifests);
    let crib = open(builder.secrets(&secrets)?, &config)?.build()?;
    Ok(Started { crib, config, manifests, control })
}
