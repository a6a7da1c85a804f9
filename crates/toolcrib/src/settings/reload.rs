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
const LIVE_KEYS: [&str; 8] = [
    "manifests.trusted",
    "policy",
    "server.concurrent",
    "server.rate",
    "server.token",
    "server.tokens",
    "server.toolset",
    "toolsets",
];

/// What came of reading a config again.
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
    /// Clients of the HTTP API whose token is no longer good or whose rights have changed. What they may
    /// no longer do has ended: their requests, streams and sessions.
    pub ended_clients: Vec<String>,
}

/// Where the config of a crib is read from again, and what came of it last.
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
    /// Its policy, toolsets, trusted manifests and the clients of the HTTP API take effect then; other
    /// settings need a restart.
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
                *last = LastReload { problem: None, needs_restart: report.needs_restart.clone() };
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
        let (changed, needs_restart): (Vec<_>, Vec<_>) = differing
            .into_iter()
            .partition(|key| is_live(key) && !(asks_otherwise && key.starts_with("server.")));

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

        // From here on nothing fails.
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
        Ok(ConfigReload { changed, added_clients, removed_clients, needs_restart, ended_clients })
    }
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
    let ConfigReload { changed, added_clients, removed_clients, needs_restart, ended_clients } =
        report;
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
        let keys = needs_restart.join(", ");
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
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        toolcrib_manifest::decode("config.yml", text).unwrap()
    }

    #[test]
    fn what_changes_is_in_effect_and_what_needs_a_restart_is_named_until_then() {
        let crib = Toolcrib::builder().build().unwrap();
        let texts = Arc::new(Mutex::new(String::new()));
        let read = Arc::clone(&texts);
        crib.follow_config(&config(""), move || Ok(config(&read.lock().unwrap())));
        let reload = |text: &str| {
            text.clone_into(&mut texts.lock().unwrap());
            let report = crib.reload_config().unwrap().unwrap();
            (report.changed.join(" "), report.needs_restart.join(" "))
        };
        assert_eq!(reload(""), (String::new(), String::new()));
        let text = "toolsets: {reader: {include: [{names: [read_*]}]}}\nworkspace: {root: other}\n";
        assert_eq!(
            reload(text),
            ("toolsets.reader.include".to_owned(), "workspace.root".to_owned())
        );
        assert!(crib.turn_in("reader").is_ok());
        assert_eq!(reload(text), (String::new(), "workspace.root".to_owned()));
        let (changed, rest) = reload("policy: {on_ask: allow}\n");
        assert_eq!(
            (changed.as_str(), rest.as_str()),
            ("policy.on_ask toolsets.reader.include", "")
        );
        assert!(crib.turn_in("reader").is_err());
    }

    #[test]
    fn a_config_that_cannot_be_read_changes_nothing() {
        let crib = Toolcrib::builder().settings(&config("toolsets: {a: {}}\n")).build().unwrap();
        crib.follow_config(&config(""), || Err("line 3: no".to_owned()));
        assert_eq!(crib.reload_config().unwrap_err(), "line 3: no");
        assert!(crib.toolset("a").is_ok());
    }

    #[test]
    fn every_live_key_is_a_key_of_the_config() {
        let schema = Config::json_schema().to_string();
        let is_here = |key: &&str| cfg!(feature = "http") || !key.starts_with("server.");
        for key in LIVE_KEYS.into_iter().filter(is_here) {
            let last = key.rsplit('.').next().unwrap();
            assert!(schema.contains(&format!("\"{last}\"")), "{key}");
        }
        assert!(is_live("server.tokens.ada.rights") && !is_live("server.tokens_extra"));
    }
}
