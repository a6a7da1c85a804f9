//! From a command line to a crib: which config, which manifests, which context.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use toolcrib::manifest::Severity;
use toolcrib::manifest::declaration::UpstreamDeclaration;
use toolcrib::manifest::lock::{Lock, LockMode};
use toolcrib::manifests::Manifests;
use toolcrib::runners::{RunnerHost, SecretSources, Secrets};
use toolcrib::servers::{ControlPlace, NoControlPlace, running_servers};
use toolcrib::settings::{
    Config, ConfigError, ConfigLayers, LoadedConfig, SandboxRequire, SetupError,
};
use toolcrib::stores::StateDir;
use toolcrib::tool::fully_visible;
use toolcrib::{Toolcrib, ToolcribBuilder};
use toolcrib_sandbox::{close_to_others, jail, sweep_scratch, take_variables};

use crate::could_not_run::ShownMistakes;
use crate::options::Options;
use crate::screen::WARNING;
use crate::{arguments, screen};

/// The names under which a config is read if none is named.
const DEFAULT_CONFIGS: [&str; 3] = ["config.yml", "config.yaml", "config.toml"];

/// A crib and what was found on the way to it.
pub(crate) struct Started {
    pub(crate) crib: Toolcrib,
    pub(crate) config: Config,
    pub(crate) manifests: Manifests,
    /// Where the servers of this config are found.
    pub(crate) control: Result<ControlPlace, NoControlPlace>,
}

/// Builds the crib for a server, which keeps what it knows to itself, and shows on standard error all that is wrong with manifests.
/// A server that `listens` for requests is refused at once where another one with this config does.
pub(crate) fn serve(options: &Options, listens: bool) -> anyhow::Result<Started> {
    match close_to_others() {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            tracing::warn!(%error, "what the server knows is open to its user's other programs");
        }
        closed => closed.context("this process cannot be closed to others of its user")?,
    }
    // Kept for reloads, with the variables that are taken out of the environment below.
    let layers = layers(options)?;
    let loaded = load(layers.clone())?;
    if listens {
        refuse_second(&loaded)?;
    }
    // Before the first thread is started: nobody else may be reading the environment.
    let taken = take_variables(loaded.secret_variables()).unwrap_or_else(|error| {
        tracing::warn!(%error, "variables that hold secrets stay in the environment");
        BTreeMap::new()
    });
    let secrets = |sources: SecretSources| Secrets::read(sources.variables(taken));
    let mut loaded = loaded;
    for warning in settle_state(&mut loaded) {
        tracing::warn!("{warning}");
    }
    // Where there is no place for it, what a client is asked is kept as long as the server runs.
    let open = ToolcribBuilder::resources;
    prepare(&loaded)?;
    let started = build_of(loaded.clone(), secrets, open)?;
    started.crib.follow_config(loaded.config(), move || {
        let loaded = layers.clone().load().map_err(|error| error.to_string())?;
        Ok(loaded.into_config())
    });
    say_that_nothing_is_pinned(&started);
    say_what_is_unavailable(&started);
    let mut findings = started.crib.unmatched_names(&started.config);
    findings.extend(started.config.missing_secrets());
    for text in loaded.reports(&findings) {
        tracing::warn!("{text}");
    }
    screen::diagnostics(started.manifests.files(), |problem| problem.severity == Severity::Error);
    tell_shortfalls(started.config.sandbox.require);
    // What servers of this user left behind that were killed; it may take a while.
    std::thread::spawn(sweep_scratch);
    Ok(started)
}

/// Fails if the address is taken by a server that runs with this config.
fn refuse_second(loaded: &LoadedConfig) -> anyhow::Result<()> {
    let listen = &loaded.config().server.listen;
    let is_taken = listen.try_out().is_err_and(|error| error.is_taken());
    let servers = ControlPlace::of(loaded).ok().filter(|_| is_taken);
    let servers = servers.and_then(|place| running_servers(&place).ok()).unwrap_or_default();
    match servers.first() {
        Some(server) => bail!(
            "{listen} is taken: the server {} runs with this config already (`toolcrib status` shows it). \
             Stop it first, or give this one another address with `--listen`",
            server.pid
        ),
        // Another program may have it: whoever listens says so.
        None => Ok(()),
    }
}

/// Unavailable tools that are named at the start.
const NAMED_AT_START: usize = 5;

/// Says in the log which tools cannot be called, and why.
fn say_what_is_unavailable(started: &Started) {
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

/// A lock that only warns has nothing to say before it was written: this says it once per start.
fn say_that_nothing_is_pinned(started: &Started) {
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

/// Makes the default state folder, for its owner alone. A program that cannot does without one. Returns
/// what to say about it. A folder that somebody named has to be usable.
fn settle_state(loaded: &mut LoadedConfig) -> Vec<String> {
    let state = &mut loaded.config_mut().state;
    let mut said = Vec::new();
    if !state.is_default {
        return said;
    }
    let why = match &state.dir {
        None => "there is no home folder to keep state in".to_owned(),
        Some(dir) => {
            if let Ok(Some(mode)) = StateDir::make_private(dir) {
                said.push(format!(
                    "the default state folder {} had mode {mode:03o}, so others could look into it: it has \
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

/// How long a start waits to know what this machine cannot enforce. Usually it takes some milliseconds.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// Says in the log what this machine cannot enforce of the profiles of programs. It does not wait for a
/// helper that does not answer: clients are served meanwhile.
fn tell_shortfalls(require: SandboxRequire) {
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

/// Builds the crib for one call, and names on standard error the files that are left out.
pub(crate) fn call(options: &Options) -> anyhow::Result<Started> {
    let mut loaded = config(options)?;
    for warning in settle_state(&mut loaded) {
        screen::note(warning);
    }
    prepare(&loaded)?;
    // This process is gone when somebody answers.
    let started = build_of(loaded, Secrets::read, |builder, config| {
        Ok(builder.resources(config)?.without_suspensions())
    })?;
    screen::broken_files(started.manifests.files());
    Ok(started)
}

/// Makes what a tool could make otherwise, where that would decide what runs.
fn prepare(loaded: &LoadedConfig) -> anyhow::Result<()> {
    let mut config = loaded.config().clone();
    config.own_files.extend(DEFAULT_CONFIGS.map(PathBuf::from));
    before_programs(&config)
}

/// The same, for a config that has been built with: before other MCP servers are started.
///
/// Fails if this is root's process and the state folder another user's, who would decide what root runs.
pub(crate) fn before_programs(config: &Config) -> anyhow::Result<()> {
    // The default folder is then done without: nothing is trusted for what is recorded there.
    let named = config.state.dir.as_ref().filter(|dir| !config.state.is_default && dir.is_dir());
    if let Some(dir) = named {
        StateDir::check_owner(dir).context("state.dir")?;
    }
    // Where it cannot be made, the program that is to work there says so.
    let _ = config.make_workspace();
    config.make_placeholders();
    Ok(())
}

/// Builds the crib to see what a call of a tool would do: nothing is opened, and no command is asked for
/// a secret, unless the tool may be another MCP server's, which gets what it needs.
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

/// Builds the crib for the tests in manifests, those of `paths` instead of the config's if there are
/// any. Nothing is opened: tests leave no trace in the audit log and no outputs behind. With `mock`
/// no command is asked for a secret either.
pub(crate) fn test(options: &Options, paths: &[PathBuf], mock: bool) -> anyhow::Result<Started> {
    let mut loaded = config(options)?;
    // Without manifests nothing is started. Paths of the command line are the caller's to make.
    if !mock && loaded.config().manifests.absent().is_empty() {
        prepare(&loaded)?;
    }
    if !paths.is_empty() {
        let manifests = &mut loaded.config_mut().manifests;
        manifests.dirs = paths.to_vec();
        manifests.may_be_missing = false;
    }
    if mock {
        // Whoever checks argument vectors need not have the programs, the secrets and the trust.
        return build_over(loaded, Secrets::look, RunnerHost::for_plans, |builder, _| Ok(builder));
    }
    build_of(loaded, Secrets::read, |builder, _| Ok(builder))
}

/// Builds the crib to look at: nothing is opened, nothing made, and no command is asked for a secret,
/// except where `connect` says that other MCP servers will be started: they get what they need. What is
/// pinned of their tools is read where there is a state folder.
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

/// As [`look`], and says nothing of files that are left out.
pub(crate) fn quietly(options: &Options) -> anyhow::Result<Started> {
    build(options, Secrets::look, |builder, config| Ok(pins(builder, config)))
}

/// As [`quietly`], for a command that shows what is wrong with the config elsewhere: fails without a word.
pub(crate) fn silently(options: &Options) -> anyhow::Result<Started> {
    let loaded = layers(options)?.load()?;
    build_of(loaded, Secrets::look, |builder, config| Ok(pins(builder, config)))
}

/// As [`quietly`], whatever the state directory is like: it is not looked into.
pub(crate) fn without_state(options: &Options) -> anyhow::Result<Started> {
    build_of(config(options)?, Secrets::look, |builder, _| Ok(builder))
}

/// Where there is a state directory, what is known of other MCP servers' tools is read from it. One that
/// cannot be used keeps nobody from looking at what manifests declare.
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

/// Builds the crib as it is declared, whatever the lock and pins say of it. Where other MCP servers
/// will be asked, they get the secrets they need.
pub(crate) fn declared(options: &Options, asks_servers: bool) -> anyhow::Result<Started> {
    let build = |secrets: fn(SecretSources) -> Secrets| {
        let mut loaded = config(options)?;
        loaded.config_mut().registry.lock = LockMode::Off;
        build_of(loaded, secrets, |builder, _| Ok(builder))
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
    build_of(config(options)?, secrets, open)
}

fn build_of(
    loaded: LoadedConfig,
    secrets: impl FnOnce(SecretSources) -> Secrets,
    open: impl FnOnce(ToolcribBuilder, &Config) -> Result<ToolcribBuilder, SetupError>,
) -> anyhow::Result<Started> {
    build_over(loaded, secrets, |host| host, open)
}

/// As [`build_of`], with another host for the tools of manifests.
fn build_over(
    loaded: LoadedConfig,
    secrets: impl FnOnce(SecretSources) -> Secrets,
    host: impl FnOnce(RunnerHost) -> RunnerHost,
    open: impl FnOnce(ToolcribBuilder, &Config) -> Result<ToolcribBuilder, SetupError>,
) -> anyhow::Result<Started> {
    let control = ControlPlace::of(&loaded);
    let mut config = loaded.config().clone();
    // Found here at the next start, whoever wrote them.
    config.own_files.extend(DEFAULT_CONFIGS.map(PathBuf::from));
    let secrets = secrets(config.secret_sources());
    let host = host(config.runner_host(secrets.clone()));
    let mut manifests = Manifests::load(&config.manifests.dirs, host);
    if config.manifests.may_be_missing {
        manifests = manifests.without_missing();
    }
    let manifests = manifests.located(&loaded);
    let builder = Toolcrib::builder().settings(&config).native_tools().manifests(&manifests);
    let crib = open(builder.secrets(&secrets)?, &config)?.build()?;
    Ok(Started { crib, config, manifests, control })
}

/// Reads all layers of the config; the file is the named one, or one of [`DEFAULT_CONFIGS`] here.
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

/// The layers with this config file.
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
                format!("--tools-dir {}: the name is no UTF-8 text", dir.display())
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

/// What is under this name, if anything is; a link counts as what it leads to.
fn kind_of(path: &'static Path) -> Option<(&'static Path, &'static str)> {
    path.symlink_metadata().ok()?;
    let kind = match path.metadata().map(|found| found.file_type()) {
        Ok(kind) if kind.is_file() => "file",
        Ok(kind) if kind.is_dir() => "directory",
        Ok(kind) if kind.is_fifo() => "FIFO",
        Ok(kind) if kind.is_socket() => "socket",
        Ok(_) => "device",
        Err(_) => "link that leads nowhere",
    };
    Some((path, kind))
}

/// The config file of the current folder. Two are a mistake: neither may take the other's place.
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

/// Reads the layers, and shows every mistake in them.
fn load(layers: ConfigLayers) -> anyhow::Result<LoadedConfig> {
    layers.load().map_err(refused)
}

/// Shows every mistake, and says how many there are.
fn refused(error: ConfigError) -> anyhow::Error {
    let problems = error.problems(screen::colour());
    if problems.is_empty() {
        return error.into();
    }
    problems.iter().for_each(screen::note);
    let mistakes = error.problems(false);
    ShownMistakes { what: "the settings cannot be used", mistakes }.into()
}

/// Where the servers of this config are found, even if the config is broken: its mistakes are shown, and
/// the servers keep the settings they have. If there are two configs here, the one that servers run with counts.
pub(crate) fn control(options: &Options) -> anyhow::Result<Result<ControlPlace, NoControlPlace>> {
    let warn = |error: anyhow::Error| {
        screen::note(format!(
            "{WARNING}warning{WARNING:#}: {error:#}. Running servers keep the settings they have"
        ));
    };
    let (place, problem) = match layers(options) {
        Ok(layers) => ControlPlace::find(&layers),
        Err(error) if options.config.is_none() => {
            let configs = DEFAULT_CONFIGS.map(Path::new).into_iter().filter(|path| path.is_file());
            let places =
                configs.map(|path| Ok(ControlPlace::find(&layers_over(options, Some(path))?)));
            let places = places.collect::<anyhow::Result<Vec<_>>>()?;
            let has_servers = |place: &Result<ControlPlace, NoControlPlace>| {
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
