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
mod tests {
    use std::time::Duration;

    use toolcrib_runners::{ExposeSecret as _, Secrets};

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

    /// A crib that follows a config, and the way to give it another.
    fn followed(text: &str, secrets: &Secrets) -> (Toolcrib, Arc<Mutex<String>>) {
        let first = config(text);
        let builder = Toolcrib::builder().settings(&first).native_tools();
        let crib = builder.secrets(secrets).unwrap().build().unwrap();
        let texts = Arc::new(Mutex::new(String::new()));
        let read = Arc::clone(&texts);
        crib.follow_config(&first, move || Ok(config(&read.lock().unwrap())));
        (crib, texts)
    }

    #[test]
    fn limits_and_output_are_in_effect_after_a_reload_and_queues_after_a_restart() {
        let (crib, texts) = followed("", &Secrets::default());
        "executor: {tool_timeout: 5s, max_queue: 7}\noutput: {max_chars: 900}\napproval: {timeout: 1m}\n"
            .clone_into(&mut texts.lock().unwrap());
        let report = crib.reload_config().unwrap().unwrap();
        let live = ["approval.timeout", "executor.tool_timeout", "output.max_chars"];
        assert_eq!(
            (&*report.changed, &*report.needs_restart),
            (&live.map(str::to_owned)[..], &["executor.max_queue".to_owned()][..])
        );
        let now = crib.executor().config();
        assert_eq!(now.tool_timeout, Some(Duration::from_secs(5)));
        assert_eq!((now.output_chars, now.max_queue), (900, 1000));
        assert_eq!(now.approval_timeout, Some(Duration::from_secs(60)));
    }

    #[cfg(feature = "builtins")]
    #[test]
    fn built_in_tools_come_and_go_with_a_reload_and_open_turns_keep_theirs() {
        let (crib, texts) = followed("builtins: {enabled: ['file_*']}\n", &Secrets::default());
        let has = |name: &str| crib.turn().describe(name).is_some();
        let listed = |name: &str| crib.executor().registry().snapshot().get(name).is_some();
        assert!(listed("file_read") && !listed("calculator") && has("read_output"));
        let open = crib.turn();
        for (text, calculator, files) in [
            ("builtins: {enabled: [calculator]}\n", true, false),
            ("builtins: {enabled: []}\n", false, false),
            ("", true, true),
        ] {
            text.clone_into(&mut texts.lock().unwrap());
            let report = crib.reload_config().unwrap().unwrap();
            assert_eq!(report.changed, ["builtins.enabled"], "{text}");
            assert_eq!((listed("calculator"), listed("file_read")), (calculator, files), "{text}");
        }
        assert!(open.describe("calculator").is_none(), "a turn keeps its list");
        "builtins: {enabled: [calculater]}\n".clone_into(&mut texts.lock().unwrap());
        crib.reload_config().unwrap();
        let named = crib.unmatched_names(&config("builtins: {enabled: [calculater]}\n"));
        assert!(
            named[0].message.contains("`calculater`, but there is no such built-in tool"),
            "{named:?}"
        );
    }

    #[test]
    fn sources_of_secrets_follow_a_reload_but_for_variables() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, value: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, value).unwrap();
            path.display().to_string()
        };
        let (one, other) = (file("one", "first-secret"), file("other", "second-secret"));
        let text = format!("secrets: {{key: {{file: {one}}}, path: {{env: PATH}}}}\n");
        let secrets = Secrets::read(config(&text).secret_sources());
        let (crib, texts) = followed(&text, &secrets);
        let path = secrets.get("path").unwrap().expose_secret().to_owned();
        format!(
            "secrets: {{key: {{file: {other}}}, path: {{file: {one}}}, more: {{command: [printf, from-a-command]}}}}\n"
        )
        .clone_into(&mut texts.lock().unwrap());
        let report = crib.reload_config().unwrap().unwrap();
        assert_eq!(report.changed, ["secrets.key.file", "secrets.more.command"]);
        assert_eq!(report.needs_restart, ["secrets.path.env", "secrets.path.file"]);
        let value = |name: &str| secrets.get(name).unwrap().expose_secret().to_owned();
        assert_eq!(
            (value("key"), value("more")),
            ("second-secret".into(), "from-a-command".into())
        );
        assert_eq!(value("path"), path, "a variable is read once");
        let shown = crib
            .executor()
            .masked(toolcrib_tool::Content::text("first-secret second-secret from-a-command"));
        assert_eq!(shown.as_text(), "[masked] [masked] [masked]", "old values stay masked");

        String::new().clone_into(&mut texts.lock().unwrap());
        crib.reload_config().unwrap();
        assert!(secrets.get("key").is_err() && secrets.get("path").is_ok());
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
        let is_here = |key: &&str| {
            (cfg!(feature = "http") || !key.starts_with("server."))
                && (cfg!(feature = "builtins") || !key.starts_with("builtins."))
        };
        for key in LIVE_KEYS.into_iter().filter(is_here) {
            let last = key.rsplit('.').next().unwrap();
            assert!(schema.contains(&format!("\"{last}\"")), "{key}");
        }
        assert!(is_live("server.tokens.ada.rights") && !is_live("server.tokens_extra"));
    }
}
