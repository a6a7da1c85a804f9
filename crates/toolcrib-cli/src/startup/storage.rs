//! Opens what a command needs before it builds the crib: the state folder, the places of the audit log, placeholders.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use toolcrib::ToolcribBuilder;
use toolcrib::core::audit::AuditSink;
use toolcrib::settings::{Config, LoadedConfig, SetupError};
use toolcrib::stores::{Database, Runs, StateDir};

use super::config::DEFAULT_CONFIGS;
use crate::screen::{self, WARNING};

/// Creates the default state folder, for its owner alone. If that fails, the program works without
/// one. Returns the messages about it. A folder that was named explicitly has to be usable.
pub(super) fn create_state_folder(loaded: &mut LoadedConfig) -> Vec<String> {
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

/// Opens the state folder and the places of the audit log.
pub(super) fn resources(
    mut builder: ToolcribBuilder,
    config: &Config,
) -> Result<ToolcribBuilder, SetupError> {
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
pub(super) fn prepare(loaded: &LoadedConfig) -> anyhow::Result<()> {
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

/// Opens the stored runs to look at them. A state folder without a database has none, and stays without one.
pub(super) fn stored_runs(
    builder: ToolcribBuilder,
    config: &Config,
) -> Result<ToolcribBuilder, SetupError> {
    let open = |source| SetupError::Open { key: "state.dir", source };
    let existing = config.state.dir.as_ref().filter(|dir| StateDir::has_database(dir));
    let database = match existing {
        Some(dir) => {
            let state = StateDir::open(dir).map_err(open)?;
            StateDir::check_owner(dir).map_err(open)?;
            state.database().map_err(open)?
        }
        None => Database::in_memory().map_err(|error| open(std::io::Error::other(error)))?,
    };
    Ok(builder.runs(Arc::new(Runs::new(&database))))
}

/// Reads pins of other MCP servers' tools, if the state folder has a database. An unusable one does not
/// prevent an inspection of the manifests.
pub(super) fn pins(builder: ToolcribBuilder, config: &Config) -> ToolcribBuilder {
    let Some(dir) = config.state.dir.as_ref().filter(|dir| dir.is_dir()) else {
        return builder;
    };
    let opened = StateDir::open(dir).and_then(|state| StateDir::check_owner(dir).map(|()| state));
    let pins = |state: StateDir| StateDir::has_database(dir).then(|| state.pins()).transpose();
    match opened.and_then(pins) {
        Ok(Some(pins)) => builder.pins(Arc::new(pins)),
        Ok(None) => builder,
        Err(error) => {
            screen::note(format!(
                "{WARNING}warning{WARNING:#}: the state folder cannot be used ({error}), so what is pinned \
                 of other MCP servers is not known here; see `toolcrib doctor`"
            ));
            builder
        }
    }
}
