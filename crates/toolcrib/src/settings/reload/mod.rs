//! The config of a crib that runs: read again when a reload is asked for, and put into effect as far as
//! it can change without a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
#[cfg(feature = "http")]
use toolcrib_http::ServerSettings;

use crate::Toolcrib;
use crate::settings::Config;

/// Keys whose values take effect on a reload, with everything below them. All others need a restart.
///
/// The environment variables of secrets are read once, at the start, and are removed from the environment then:
/// a secret that gets such a source, or had one, needs a restart although `secrets` is here.
const LIVE_KEYS: [&str; 16] = [
    "approval.timeout",
    "builtins.enabled",
    "executor.max_concurrency",
    "executor.max_timeout",
    "executor.tool_timeout",
    "manifests.trusted",
    "output",
    "policy",
    "secret_folders",
    "secrets",
    "server.concurrent",
    "server.rate",
    "server.token",
    "server.tokens",
    "server.toolset",
    "toolsets",
];

/// The result of reading a config again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigReload {
    /// Keys whose new value is in effect now, without those of clients that came or went.
    pub changed: Vec<String>,
    /// Clients of the HTTP API (`server.tokens`) that are new.
    pub added_clients: Vec<String>,
    /// Clients of the HTTP API whose entry is gone.
    pub removed_clients: Vec<String>,
    /// Keys that differ from what the program runs with, and need a restart.
    pub needs_restart: Vec<String>,
    /// Where those of them that are set are set: `config.yml:3:5`, a variable or a flag.
    pub restart_origins: BTreeMap<String, String>,
    /// Clients of the HTTP API whose token is no longer good or whose rights have changed.
    /// Requests, streams and sessions that they no longer have the right to have ended.
    pub ended_clients: Vec<String>,
}

/// The source of a crib's config for reloads, and the result of the last reload.
#[derive(Clone, Default)]
pub(crate) struct LiveConfig(Arc<LiveConfigInner>);

#[derive(Default)]
struct LiveConfigInner {
    /// Held during a reload, so that reloads come one after another.
    followed: Mutex<Option<FollowedConfig>>,
    last: Mutex<LastReload>,
}

struct FollowedConfig {
    read: Box<dyn Fn() -> Result<Config, String> + Send + Sync>,
    /// What the program runs with, by key. Keys that need a restart keep their value of the start.
    running: BTreeMap<String, Value>,
    /// The config that was read last and could be used.
    #[cfg(feature = "http")]
    read_last: Config,
    /// The operator's token, which is hidden in `running`.
    #[cfg(feature = "http")]
    token: Option<toolcrib_http::Token>,
    #[cfg(feature = "http")]
    servers: Vec<ServerSettings>,
}

/// How the last reload ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastReload {
    /// Why the config that was read could not be used, if it could not.
    pub(crate) problem: Option<String>,
    /// Keys that wait for a restart.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only servers are asked"))]
    pub(crate) needs_restart: Vec<String>,
    /// Where they are set.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only servers are asked"))]
    pub(crate) restart_origins: BTreeMap<String, String>,
}

impl LiveConfig {
    /// How the last reload ended.
    #[cfg(feature = "http")]
    pub(crate) fn last(&self) -> LastReload {
        lock(&self.0.last).clone()
    }
}

impl Toolcrib {
    /// Has the config read again with `read` whenever a reload is asked for. `config` is the one this
    /// program was started with, as `read` gives it.
    ///
    /// Its policy, toolsets, limits of calls and of output, secrets in files, folders and commands, enabled
    /// built-in tools, trusted manifests and the clients of the HTTP API take effect then; other settings need a
    /// restart. Calls that run, and those that wait for approval, keep what they began with.
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

    /// Lets a server take over the `server` settings of a config that is read again. Does nothing before
    /// [`follow_config`](Self::follow_config).
    #[cfg(feature = "http")]
    pub fn follow_server(&self, server: ServerSettings) {
        if let Some(followed) = &mut *lock(&self.live_config().0.followed) {
            followed.servers.push(server);
        }
    }

    /// Reads the config again and puts it into effect, as far as it can change while the program runs;
    /// `None` where nobody said where it is from. Blocks while the file is read.
    ///
    /// A config that cannot be used changes nothing: the error says why, and so do the log and the
    /// server's health until a reload succeeds.
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
    /// The names in the config that was read last that match nothing
    /// ([`unmatched_names`](Self::unmatched_names)); none where no config is followed.
    #[cfg(feature = "http")]
    pub(crate) fn unmatched_in_config(&self) -> Vec<String> {
        let followed = lock(&self.live_config().0.followed);
        let found = followed.as_ref().map(|own| self.unmatched_names(&own.read_last));
        found.unwrap_or_default().into_iter().map(|found| found.message).collect()
    }
}

impl FollowedConfig {
    /// Checks everything first and then puts it into effect.
    fn apply(&mut self, crib: &Toolcrib, config: &Config) -> Result<ConfigReload, String> {
        let next = leaves(config);
        #[cfg_attr(not(feature = "http"), expect(unused_mut, reason = "only servers have a token"))]
        let mut differing = differing(&self.running, &next);
        #[cfg(feature = "http")]
        if self.token != config.server.token {
            // Hidden in both, so that the values tell nothing.
            differing.push("server.token".to_owned());
            differing.sort();
            differing.dedup();
        }
        let asks_otherwise = differing.iter().any(|key| key == "server.no_auth");
        // Of secrets in variables, the source before stays.
        let in_variable = |name: &str| {
            let key = format!("secrets.{name}.env");
            self.running.contains_key(&key) || next.contains_key(&key)
        };
        let (changed, needs_restart): (Vec<_>, Vec<_>) = differing.into_iter().partition(|key| {
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
            // Hidden before anybody can use it.
            let secret = [token.reveal().to_owned()];
            crib.executor().mask_also(secret).map_err(|error| error.to_string())?;
        }

        #[cfg(feature = "builtins")]
        let builtins = {
            let enabled = config.builtins.enabled.as_deref();
            let made =
                crib.offered_builtins().entries(enabled).map_err(|error| error.to_string())?;
            match crib.lock() {
                Some(lock) => lock.admit(made).map_err(|error| error.to_string())?,
                None => made,
            }
        };
        if changed.iter().any(|key| key.starts_with("secret")) {
            crib.replace_secret_sources(config.secret_sources(), in_variable)
                .map_err(|error| format!("secrets: {error}"))?;
        }
        #[cfg(feature = "builtins")]
        if changed.iter().any(|key| key == "builtins.enabled") {
            crib.executor()
                .registry()
                .replace_native(toolcrib_builtins::Builtins::CRATE, builtins)
                .map_err(|error| format!("builtins.enabled: {error}"))?;
        }

        // From here on nothing fails.
        crib.executor().replace_limits(&config.executor_config());
        crib.expect_config(config);
        crib.executor().replace_policy(config.policy.clone());
        crib.replace_toolsets(toolsets);
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
        // Of a removed client also what was empty, which is no change.
        let is_removed =
            |key: &String| removed_clients.iter().any(|name| client_of(key) == Some(name.as_str()));
        self.running.retain(|key, _| !changed.contains(key) && !is_removed(key));
        self.running.extend(next.into_iter().filter(|(key, _)| changed.contains(key)));
        let is_told = |key: &String| {
            let of = |name: &String| client_of(key) == Some(name.as_str());
            !added_clients.iter().chain(&removed_clients).any(of)
        };
        let mut changed = changed;
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

/// The secret that a key is about.
fn secret_of(key: &str) -> Option<&str> {
    // The last part is `env`, `file`, `command` or `pass_env`.
    Some(key.strip_prefix("secrets.")?.rsplit_once('.')?.0)
}

/// The client that a key is about.
fn client_of(key: &str) -> Option<&str> {
    // The names of clients have no points.
    key.strip_prefix("server.tokens.")?.split('.').next()
}

/// The clients that have keys in the first of two configs and none in the other.
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
    // Every key of a config is a text, and every value one that JSON has.
    collect("", serde_json::to_value(config).unwrap_or_default(), &mut values);
    values
}

/// The keys whose values differ. An empty mapping and the keys that come into it are one difference.
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
