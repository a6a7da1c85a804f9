//! Builds the crib for a command line: its config, manifests and context.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use toolcrib::core::audit::AuditSink;
use toolcrib::core::suspension::MemorySuspensions;
use toolcrib::manifest::Severity;
use toolcrib::manifest::declaration::UpstreamDeclaration;
use toolcrib::manifest::lock::{Lock, LockMode};
use toolcrib::manifests::Manifests;
use toolcrib::runners::{RunnerHost, SecretSources, Secrets};
use toolcrib::servers::{NoSocketFolder, SocketFolder, running_servers};
use toolcrib::settings::{
    Config, ConfigError, ConfigLayers, LoadedConfig, SandboxRequire, SetupError,
};
use toolcrib::stores::StateDir;
use toolcrib::tool::fully_visible;
use toolcrib::{Toolcrib, ToolcribBuilder};
use toolcrib_sandbox::{
    STARTS_PROGRAMS, close_to_others, jail, scratch_folder, sweep_scratch, take_variables,
};

use crate::could_not_run::ShownMistakes;
use crate::options::Options;
use crate::screen::WARNING;
use crate::{arguments, screen};

/// The names under which a config file is found by default.
pub(crate) const DEFAULT_CONFIGS: [&str; 3] = ["config.yml", "config.yaml", "config.toml"];

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
    match close_to_others() {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            tracing::warn!(%error, "other programs of this user can read the server's memory");
        }
        closed => {
            closed.context("this process cannot be protected from other programs of its user")?;
        }
    }
    // Kept for reloads, including the variables that are removed from the environment below.
    let layers = layers(options)?;
    let loaded = load(layers.clone())?;
    if listens {
        refuse_second(&loaded)?;
    }
    // Before the first thread is started, since no other thread may be reading the environment.
    let taken = take_variables(loaded.secret_variables()).unwrap_or_else(|error| {
        tracing::warn!(%error, "variables that contain secrets could not be removed from the environment");
        BTreeMap::new()
    });
    let secrets = |sources: SecretSources| Secrets::read(sources.variables(taken));
    let mut loaded = loaded;
    for warning in create_state_folder(&mut loaded) {
        tracing::warn!("{warning}");
    }
    // Without a state folder, what clients are asked is kept in memory.
    let open = resources;
    prepare(&loaded)?;
    let started = build_of(&loaded, secrets, open)?;
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

/// The number of unavailable tools that are named at the start.
const NAMED_AT_START: usize = 5;

/// Logs which tools cannot be called, and why.
fn log_unavailable_tools(started: &Started) {
    let snapshot = started.crib.executor().registry().snapshot();
    let reasons = snapshot.entries().filter_map(|entry| {
        let reason = fully_visible(entry.unavailable_reason()?);
        Some(format!("`{}`: {reason}", entry.name()))
    });
    let reasons: Vec<_> = reasons.collect();
    if reasons.is_empty() {
        return;
    }
    let named = &reasons[..reasons.len().min(NAMED_AT_START)];
    let rest = match reasons.len() - named.len() {
        0 => String::new(),
        more => format!("; {more} more: see `toolcrib list --all`"),
    };
    tracing::warn!(
        "{} unavailable: {}{rest}",
        screen::count(reasons.len(), "tool"),
        named.join("; ")
    );
}

/// Logs once per start that nothing is pinned: a lock in mode `warn` is otherwise silent until it
/// is written.
fn log_missing_lock(started: &Started) {
    let registry = &started.config.registry;
    let files = started.manifests.files();
    let declares = files.declarations().next().is_some() || files.upstreams().next().is_some();
    let pins_nothing = || matches!(Lock::read(&registry.lock_file), Ok(None));
    if registry.lock == LockMode::Warn && declares && pins_nothing() {
        tracing::warn!(
            "nothing is pinned in {}. `toolcrib lock` accepts the tools as they are now; with \
             `registry.lock: enforce` what changes later is blocked until it is accepted",
            registry.lock_file.display()
        );
    }
}

/// Creates the default state folder, for its owner alone. If that fails, the program works without
/// one. Returns the messages about it. A folder that was named explicitly has to be usable.
fn create_state_folder(loaded: &mut LoadedConfig) -> Vec<String> {
    let state = &mut loaded.config_mut().state;
    let mut said = Vec::new();
    if !state.is_default {
        return said;
    }
    let why = match &state.dir {
        None => "there is no home folder for the state folder".to_owned(),
        Some(dir) => {
            if let Ok(Some(mode)) = StateDir::make_private(dir) {
                said.push(format!(
                    "the default state folder {} had mode {mode:03o}, so others could read it: it has \
                     mode 700 now",
                    dir.display()
                ));
            }
            let opened = StateDir::open(dir)
                .and_then(|state| StateDir::check_owner(dir).map(|()| state))
                .and_then(|state| state.database());
            let Err(error) = opened else { return said };
            format!(
                "the default state folder cannot be used ({error}), so `toolcrib status`, `approvals` and \
                 `reload` will not find the server"
            )
        }
    };
    state.dir = None;
    said.push(format!(
        "{why}: calls that wait, runs and long outputs are kept in memory until the program ends; name a \
         folder in `state.dir`, or say `none`"
    ));
    said
}

/// How long a start waits for the check of what this machine can enforce, which usually takes
/// milliseconds.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// Logs which parts of confinement profiles this machine cannot enforce. It does not wait for an
/// unresponsive helper: clients are served in the meantime.
fn log_unenforced_profiles(require: SandboxRequire) {
    let then = match require {
        SandboxRequire::Required => "programs that need it are refused",
        SandboxRequire::BestEffort => "programs run without it, because of `sandbox.require`",
    };
    let (done, probed) = mpsc::channel();
    std::thread::spawn(move || {
        for shortfall in jail::probe() {
            tracing::warn!("{shortfall}: {then}");
        }
        // The start may have gone on.
        let _ = done.send(());
    });
    let _ = probed.recv_timeout(PROBE_WAIT);
}

/// Builds the crib for one call, and reports invalid files on standard error.
pub(crate) fn call(options: &Options) -> anyhow::Result<Started> {
    let mut loaded = config(options)?;
    for warning in create_state_folder(&mut loaded) {
        screen::note(warning);
    }
    prepare(&loaded)?;
    // Questions are answered here, or never: this process ends with its call.
    let started = build_of(&loaded, Secrets::read, |builder, config| {
        Ok(resources(builder, config)?.suspensions(Arc::new(MemorySuspensions::new())))
    })?;
    screen::broken_files(started.manifests.files());
    Ok(started)
}

/// Opens the state folder and the places of the audit log.
fn resources(mut builder: ToolcribBuilder, config: &Config) -> Result<ToolcribBuilder, SetupError> {
    if config.audit.otlp {
        let collector = audit_collector().map_err(|problem| SetupError::Open {
            key: "audit.otlp",
            source: std::io::Error::other(problem),
        })?;
        builder = builder.audit_collector(collector);
    }
    builder.resources(config)
}

#[cfg(feature = "otlp")]
fn audit_collector() -> Result<Arc<dyn AuditSink>, String> {
    match toolcrib_otlp::OtlpAudit::from_environment() {
        Ok(Some(collector)) => Ok(Arc::new(collector)),
        Ok(None) => Err(
            "the environment names no collector: set OTEL_EXPORTER_OTLP_ENDPOINT, and do not set \
             OTEL_SDK_DISABLED to true"
                .to_owned(),
        ),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "otlp"))]
fn audit_collector() -> Result<Arc<dyn AuditSink>, String> {
    Err("this toolcrib cannot send to collectors: build it with `--features otlp`".to_owned())
}

/// Creates paths that a tool could otherwise create to decide what runs.
fn prepare(loaded: &LoadedConfig) -> anyhow::Result<()> {
    let mut config = loaded.config().clone();
    config.own_files.extend(DEFAULT_CONFIGS.map(PathBuf::from));
    before_programs(&config)
}

/// The same for a config that was already used to build, before other MCP servers are started.
///
/// Fails if this is root's process and the state folder belongs to another user, who could then
/// decide what root runs.
pub(crate) fn before_programs(config: &Config) -> anyhow::Result<()> {
    // Work without the default folder then: nothing recorded there is trusted.
    let named = config.state.dir.as_ref().filter(|dir| !config.state.is_default && dir.is_dir());
    if let Some(dir) = named {
        StateDir::check_owner(dir).context("state.dir")?;
    }
    // If it cannot be created, the program that needs it reports the error.
    let _ = config.make_workspace();
    config.make_placeholders();
    Ok(())
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
        started = build(options, Secrets::read, |builder, config| Ok(pins(builder, config)))?;
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
    build_of(&loaded, Secrets::read, |builder, _| Ok(builder))
}

/// Builds the crib for inspection: nothing is opened or created, and no command is run to get a
/// secret, unless other MCP servers are started (`connect`), which get the secrets they need. Pins
/// are read if there is a state folder.
pub(crate) fn look(options: &Options, connect: bool) -> anyhow::Result<Started> {
    let mut started = quietly(options)?;
    if connect && started.manifests.files().upstreams().any(needs_secrets) {
        started = build(options, Secrets::read, |builder, config| Ok(pins(builder, config)))?;
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

/// Reads pins of other MCP servers' tools, if there is a state folder. An unusable one does not
/// prevent an inspection of the manifests.
fn pins(builder: ToolcribBuilder, config: &Config) -> ToolcribBuilder {
    let Some(dir) = config.state.dir.as_ref().filter(|dir| dir.is_dir()) else {
        return builder;
    };
    let opened = StateDir::open(dir).and_then(|state| StateDir::check_owner(dir).map(|()| state));
    match opened.and_then(|state| state.pins()) {
        Ok(pins) => builder.pins(Arc::new(pins)),
        Err(error) => {
            screen::note(format!(
                "{WARNING}warning{WARNING:#}: the state folder cannot be used ({error}), so what is pinned \
                 of other MCP servers is not known here; see `toolcrib doctor`"
            ));
            builder
        }
    }
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
        return build(Secrets::read);
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
fn load(layers: ConfigLayers) -> anyhow::Result<LoadedConfig> {
    layers.load().map_err(refused)
}

/// Prints every error and counts them.
fn refused(error: ConfigError) -> anyhow::Error {
    let problems = error.problems(screen::colour());
    if problems.is_empty() {
        return error.into();
    }
    problems.iter().for_each(screen::mistake);
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
