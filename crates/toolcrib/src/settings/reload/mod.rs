//! Reloads the config of a running crib, and applies the changes that do not need a restart.

#[cfg(feature = "crawler")]
mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
#[cfg(feature = "http")]
use toolcrib_http::ServerSettings;

use crate::Toolcrib;
use crate::settings::Config;

/// Keys that take effect on a reload, with everything below them. All others need a restart.
///
/// The environment variables of secrets are read once, at the start, and are then removed from the environment. A
/// secret that gets such a source, or had one, therefore needs a restart although `secrets` is listed here.
const LIVE_KEYS: [&str; 26] = [
    "agent",
    "agents",
    "approval.timeout",
    "audit.keep",
    "audit.max_age",
    "audit.max_bytes",
    "builtins.enabled",
    "executor.max_concurrency",
    "executor.max_timeout",
    "executor.tool_timeout",
    "images",
    "manifests.trusted",
    "output",
    "policy",
    "providers",
    "secret_folders",
    "secrets",
    "server.concurrent",
    "server.rate",
    "server.token",
    "server.tokens",
    "server.toolset",
    "state.keep",
    "sub_agent",
    "toolsets",
    "web",
];

/// The result of a config reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigReload {
    /// Keys whose new value is in effect now, except those of added or removed clients.
    pub changed: Vec<String>,
    /// Added clients of the HTTP API (`server.tokens`).
    pub added_clients: Vec<String>,
    /// Removed clients of the HTTP API.
    pub removed_clients: Vec<String>,
    /// Keys that differ from the running configuration and need a restart.
    pub needs_restart: Vec<String>,
    /// The origins of those keys that are set: `config.yml:3:5`, a variable or a flag.
    pub restart_origins: BTreeMap<String, String>,
    /// Clients of the HTTP API whose token has become invalid or whose rights have changed.
    /// Requests, streams and sessions that they no longer have the right to were ended.
    pub ended_clients: Vec<String>,
}

/// The source of a crib's config for reloads, and the result of the last reload.
#[derive(Clone, Default)]
pub(crate) struct LiveConfig(Arc<LiveConfigInner>);

#[derive(Default)]
struct LiveConfigInner {
    /// Held during a reload, so that reloads run one after another.
    followed: Mutex<Option<FollowedConfig>>,
    last: Mutex<LastReload>,
}

struct FollowedConfig {
    read: Box<dyn Fn() -> Result<Config, String> + Send + Sync>,
    /// The running configuration, by key. Keys that need a restart keep their value from the start.
    running: BTreeMap<String, Value>,
    /// The last valid config that was read.
    #[cfg(feature = "http")]
    read_last: Config,
    /// The operator's token, which is hidden in `running`.
    #[cfg(feature = "http")]
    token: Option<toolcrib_http::Token>,
    #[cfg(feature = "http")]
    servers: Vec<ServerSettings>,
}

/// The result of the last reload.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastReload {
    /// The error of the last reload, if it failed.
    pub(crate) problem: Option<String>,
    /// Keys that need a restart.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only servers are asked"))]
    pub(crate) needs_restart: Vec<String>,
    /// The origins of those keys.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only servers are asked"))]
    pub(crate) restart_origins: BTreeMap<String, String>,
}

impl LiveConfig {
    /// The result of the last reload.
    #[cfg(feature = "http")]
    pub(crate) fn last(&self) -> LastReload {
        lock(&self.0.last).clone()
    }
}

impl Toolcrib {
    /// Reads the config with `read` whenever a reload is requested. `config` is the one with which this program was
    /// started, as `read` returns it.
    ///
    /// These settings then take effect: policy, toolsets, limits of calls and of output, secrets in files, folders and
    /// commands, enabled built-in tools, the web tools, trusted manifests, the clients of the HTTP API, and providers and agents, for
    /// runs that begin or continue afterwards. Other settings need a restart. Running calls, and those that wait for approval, keep the settings they started with.
    pub fn follow_config(
        &self,
        config: &Config,
        read: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) {
        *lock(&self.live_config().0.followed) = Some(FollowedConfig {
            read: Box::new(read),
            running: leaves(config),
            #[cfg(feature = "http")]
            read_last: config.clone(),
            #[cfg(feature = "http")]
            token: config.server.token.clone(),
            #[cfg(feature = "http")]
            servers: Vec::new(),
        });
    }

    /// Lets a server apply the `server` settings of a reloaded config. Does nothing before
    /// [`follow_config`](Self::follow_config).
    #[cfg(feature = "http")]
    pub fn follow_server(&self, server: ServerSettings) {
        if let Some(followed) = &mut *lock(&self.live_config().0.followed) {
            followed.servers.push(server);
        }
    }

    /// Reads the config again and applies the changes that need no restart; `None` if there is no source. Blocks while
    /// the file is read.
    ///
    /// An invalid config changes nothing: the error says why, and so do the log and the server's
    /// health until a reload succeeds.
    pub fn reload_config(&self) -> Result<Option<ConfigReload>, String> {
        let live = self.live_config();
        let mut followed = lock(&live.0.followed);
        let Some(followed) = &mut *followed else { return Ok(None) };
        let reloaded = (followed.read)().and_then(|config| followed.apply(self, &config));
        let mut last = lock(&live.0.last);
        match reloaded {
            Ok(report) => {
                let needs_restart = report.needs_restart.clone();
                let restart_origins = report.restart_origins.clone();
                *last = LastReload { problem: None, needs_restart, restart_origins };
                log(&report);
                Ok(Some(report))
            }
            Err(reason) => {
                tracing::warn!("the config was read again and cannot be used: {reason}");
                last.problem = Some(reason.clone());
                Err(reason)
            }
        }
    }
}

impl Toolcrib {
    /// The names in the last valid config that match nothing
    /// ([`unmatched_names`](Self::unmatched_names)); empty if no config is followed.
    #[cfg(feature = "http")]
    pub(crate) fn unmatched_in_config(&self) -> Vec<String> {
        let followed = lock(&self.live_config().0.followed);
        let found = followed.as_ref().map(|own| self.unmatched_names(&own.read_last));
        found.unwrap_or_default().into_iter().map(|found| found.message).collect()
    }
}

#[cfg(unix)]
impl Toolcrib {
    /// Keeps things as long as a config says from now on.
    fn apply_retention(&self, config: &Config) {
        if let Some(database) = self.database() {
            database.keep(config.state.keep.retention());
        }
        if let Some(file) = &self.audit_sinks().file {
            file.rotate_by(config.audit.rotation());
        }
    }
}

/// The built-in tools that the config enables, as far as the lock allows them.
#[cfg(feature = "builtins")]
fn admitted_builtins(
    crib: &Toolcrib,
    config: &Config,
) -> Result<Vec<toolcrib_tool::ToolEntry>, String> {
    let enabled = config.builtins.enabled.as_deref();
    let made = crib.offered_builtins().entries(enabled).map_err(|error| error.to_string())?;
    match crib.lock() {
        Some(lock) => lock.admit(made).map_err(|error| error.to_string()),
        None => Ok(made),
    }
}

impl FollowedConfig {
    /// Checks everything before it applies anything.
    fn apply(&mut self, crib: &Toolcrib, config: &Config) -> Result<ConfigReload, String> {
        let next = leaves(config);
        #[cfg_attr(not(feature = "http"), expect(unused_mut, reason = "only servers have a token"))]
        let mut differing = differing(&self.running, &next);
        #[cfg(feature = "http")]
        if self.token != config.server.token {
            // Hidden in both, so that the keys reveal nothing about the values.
            differing.push("server.token".to_owned());
            differing.sort();
            differing.dedup();
        }
        let asks_otherwise = differing.iter().any(|key| key == "server.no_auth");
        // For secrets in variables, the previous source stays.
        let in_variable = |name: &str| {
            let key = format!("secrets.{name}.env");
            self.running.contains_key(&key) || next.contains_key(&key)
        };
        let (mut changed, needs_restart): (Vec<_>, Vec<_>) =
            differing.into_iter().partition(|key| {
                is_live(key)
                    && !(asks_otherwise && key.starts_with("server."))
                    && !secret_of(key).is_some_and(in_variable)
            });

        #[cfg(unix)]
        if let Some(why) = config.misplaced_audit_log() {
            return Err(format!("audit.file: {why}"));
        }
        let toolsets = config.own_toolsets();
        #[cfg(feature = "http")]
        let servers = {
            let toolset = |name: &str| toolsets.get(name).cloned();
            let prepared = self.servers.iter().map(|one| one.prepare(&config.server, &toolset));
            prepared.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?
        };
        #[cfg(feature = "http")]
        if let Some(token) = &config.server.token {
            // The values are masked before anybody can use them.
            let secret = [token.reveal().to_owned()];
            crib.executor().mask_also(secret).map_err(|error| error.to_string())?;
        }

        #[cfg(feature = "builtins")]
        let builtins = admitted_builtins(crib, config)?;
        #[cfg(feature = "crawler")]
        let web = crib.web_entries(config)?;
        if changed.iter().any(|key| key.starts_with("secret")) {
            crib.replace_secret_sources(config.secret_sources(), in_variable)
                .map_err(|error| format!("secrets: {error}"))?;
        }
        #[cfg(feature = "builtins")]
        if changed.iter().any(|key| key == "builtins.enabled") {
            crib.offered_builtins()
                .replace(crib.executor().registry(), &builtins)
                .map_err(|error| format!("builtins.enabled: {error}"))?;
        }

        #[cfg(feature = "crawler")]
        crib.apply_web(config, web, &changed)?;

        // Nothing fails from here on.
        crib.executor().replace_limits(&config.executor_config());
        crib.expect_config(config);
        crib.executor().replace_policy(config.policy.clone());
        crib.replace_toolsets(toolsets);
        #[cfg(feature = "agent")]
        crib.live_agents().replace(config);
        #[cfg(unix)]
        crib.apply_retention(config);
        if let Some(manifests) = crib.manifests() {
            manifests.trust(&config.manifests.trusted);
        }
        #[cfg_attr(not(feature = "http"), expect(unused_mut, reason = "only servers have clients"))]
        let mut ended_clients = Vec::new();
        #[cfg(feature = "http")]
        {
            let ended = servers.into_iter().flat_map(toolcrib_http::ChangedSettings::apply);
            ended_clients.extend(ended.map(|name| name.to_string()));
            self.token.clone_from(&config.server.token);
            self.read_last = config.clone();
        }
        let (added_clients, removed_clients) =
            (clients_only_in(&next, &self.running), clients_only_in(&self.running, &next));
        // A removed client's empty values are included, although they are no change.
        let is_removed =
            |key: &String| removed_clients.iter().any(|name| client_of(key) == Some(name.as_str()));
        self.running.retain(|key, _| !changed.contains(key) && !is_removed(key));
        self.running.extend(next.into_iter().filter(|(key, _)| changed.contains(key)));
        let is_told = |key: &String| {
            let of = |name: &String| client_of(key) == Some(name.as_str());
            !added_clients.iter().chain(&removed_clients).any(of)
        };
        changed.retain(is_told);
        let of = |key: &String| Some((key.clone(), config.origins.get(key)?.clone()));
        let restart_origins = needs_restart.iter().filter_map(of).collect();
        Ok(ConfigReload {
            changed,
            added_clients,
            removed_clients,
            needs_restart,
            restart_origins,
            ended_clients,
        })
    }
}

/// The name of the secret that a key concerns.
fn secret_of(key: &str) -> Option<&str> {
    // The last part is `env`, `file`, `command` or `pass_env`.
    Some(key.strip_prefix("secrets.")?.rsplit_once('.')?.0)
}

/// The name of the client that a key concerns.
fn client_of(key: &str) -> Option<&str> {
    // Names of clients contain no dots.
    key.strip_prefix("server.tokens.")?.split('.').next()
}

/// The clients with keys in the first config and none in the second.
fn clients_only_in(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> Vec<String> {
    let clients = |config: &'_ BTreeMap<String, Value>| -> BTreeSet<String> {
        config.keys().filter_map(|key| client_of(key)).map(str::to_owned).collect()
    };
    clients(one).difference(&clients(other)).cloned().collect()
}

/// Whether the value of a key takes effect without a restart.
fn is_live(key: &str) -> bool {
    LIVE_KEYS.iter().any(|live| {
        key.strip_prefix(live).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Every value of a config by its key; a list is one value. Tokens are hidden.
fn leaves(config: &Config) -> BTreeMap<String, Value> {
    fn collect(path: &str, value: Value, leaves: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(entries) if !entries.is_empty() => {
                for (key, value) in entries {
                    let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                    collect(&path, value, leaves);
                }
            }
            value => drop(leaves.insert(path.to_owned(), value)),
        }
    }
    let mut values = BTreeMap::new();
    // Every key of a config is a text, and every value has a JSON form.
    collect("", serde_json::to_value(config).unwrap_or_default(), &mut values);
    values
}

/// The keys whose values differ. An empty mapping that gets keys counts as one difference.
fn differing(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let is_empty = |value: Option<&Value>| {
        value.is_none_or(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
    };
    let mut keys: Vec<_> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| {
        let (one, other) = (before.get(*key), after.get(*key));
        one != other && !(is_empty(one) && is_empty(other))
    });
    keys.into_iter().cloned().collect()
}

fn log(report: &ConfigReload) {
    let ConfigReload {
        changed,
        added_clients,
        removed_clients,
        needs_restart,
        restart_origins,
        ended_clients,
    } = report;
    for name in added_clients {
        tracing::info!("client {name} added");
    }
    for name in removed_clients {
        tracing::info!("client {name} removed");
    }
    if !changed.is_empty() {
        let (keys, ended) = (changed.join(", "), ended_clients.join(", "));
        tracing::info!(keys, ended_clients = ended, "settings of the config have changed");
    }
    if !needs_restart.is_empty() {
        let at = |key: &String| match restart_origins.get(key) {
            Some(origin) => format!("{key} ({origin})"),
            None => key.clone(),
        };
        let keys = needs_restart.iter().map(at).collect::<Vec<_>>().join(", ");
        tracing::warn!(keys, "settings of the config have changed that need a restart");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for LiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveConfig").field("last", &self.0.last).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
