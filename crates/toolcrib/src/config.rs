//! The config file, composed of its parts. Every default here is the one `config.yml` shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolcrib_core::ExecutorConfig;
use toolcrib_manifest::units::{ByteSize, HumanDuration};
use toolcrib_tool::ContextValues;

/// Everything a config file may say. All keys are optional; unknown ones are errors.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How calls are run.
    pub executor: Executor,
    /// Which tools are paused after repeated timeouts.
    pub breaker: Breaker,
    /// Which answers are used again.
    pub cache: Cache,
    /// What reaches the model.
    pub output: Output,
    /// How names are resolved.
    pub registry: Registry,
    /// Where manifests are.
    pub manifests: Manifests,
    /// Where commands run.
    pub workspace: Workspace,
    /// Values every call gets as its context; a model cannot see or change them.
    pub context: BTreeMap<String, Value>,
    /// The HTTP listener.
    #[cfg(feature = "http")]
    pub server: toolcrib_http::ServerConfig,
}

/// How calls are run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Executor {
    /// Time limit of a tool that declares none; `none` for no such limit.
    pub tool_timeout: HumanDuration,
    /// Time limit of every call, whatever a tool declares; `none` for no such limit.
    pub max_timeout: HumanDuration,
    /// Calls of one batch that run at once; 0 for all of them.
    pub max_concurrency: usize,
    /// Calls that may wait for a slot of one tool; 0 for none.
    pub max_queue: usize,
    /// How long a call waits for a slot at most.
    pub queue_timeout: HumanDuration,
}

impl Default for Executor {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            tool_timeout: HumanDuration(core.tool_timeout),
            max_timeout: HumanDuration(core.max_timeout),
            max_concurrency: core.max_concurrency,
            max_queue: core.max_queue,
            queue_timeout: HumanDuration(Some(core.queue_timeout)),
        }
    }
}

/// Which tools are paused after repeated timeouts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Consecutive timeouts of a tool, for one identity, that pause it; 0 for never.
    pub consecutive_timeouts: u32,
    /// How long a paused tool rests before one call is tried.
    pub cooldown: HumanDuration,
}

impl Default for Breaker {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            consecutive_timeouts: core.breaker_timeouts,
            cooldown: HumanDuration(Some(core.breaker_cooldown)),
        }
    }
}

/// Which answers are used again. Only tools that say so are cached.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// Whether answers are kept at all, in the cache and for a session.
    pub enabled: bool,
    /// How long an answer is used, for tools that do not say.
    pub ttl: HumanDuration,
    /// Answers that are kept.
    pub max_entries: usize,
    /// Bytes of answers that are kept.
    pub max_bytes: ByteSize,
}

impl Default for Cache {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            enabled: true,
            ttl: HumanDuration(Some(core.cache_ttl)),
            max_entries: core.cache_entries,
            max_bytes: ByteSize(core.cache_bytes as u64),
        }
    }
}

/// What reaches the model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// Characters of text that reach the model, for tools that declare no budget.
    pub max_chars: usize,
}

impl Default for Output {
    fn default() -> Self {
        Self { max_chars: ExecutorConfig::default().output_chars }
    }
}

/// How names are resolved.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Registry {
    /// What happens when two sources declare one name. The first wins either way.
    pub on_duplicate: OnDuplicate,
}

/// What happens when two sources declare one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDuplicate {
    /// The loser is logged and listed.
    #[default]
    Warn,
    /// Nothing starts.
    Error,
}

/// Where manifests are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Manifests {
    /// Directories whose `*.yaml`, `*.yml` and `*.toml` files are read, in this order; relative to
    /// the config file.
    pub dirs: Vec<PathBuf>,
}

impl Default for Manifests {
    fn default() -> Self {
        Self { dirs: vec!["tools.d".into()] }
    }
}

/// Where commands run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workspace {
    /// The working directory of command tools that name none; relative to the config file.
    pub root: PathBuf,
}

impl Default for Workspace {
    fn default() -> Self {
        Self { root: ".".into() }
    }
}

impl Config {
    /// Makes every relative path relative to `base`, which is the config file's folder.
    #[must_use]
    pub fn relative_to(mut self, base: &Path) -> Self {
        for dir in &mut self.manifests.dirs {
            *dir = base.join(&*dir);
        }
        self.workspace.root = base.join(&self.workspace.root);
        self
    }

    /// The settings of the executor.
    pub fn executor_config(&self) -> ExecutorConfig {
        let mut core = ExecutorConfig::default();
        core.tool_timeout = self.executor.tool_timeout.0;
        core.max_timeout = self.executor.max_timeout.0;
        core.max_concurrency = self.executor.max_concurrency;
        core.max_queue = self.executor.max_queue;
        core.queue_timeout = self.executor.queue_timeout.0.unwrap_or(Duration::MAX);
        core.breaker_timeouts = self.breaker.consecutive_timeouts;
        core.breaker_cooldown = self.breaker.cooldown.0.unwrap_or(Duration::MAX);
        core.cache_ttl = self.cache.ttl.0.unwrap_or(Duration::MAX);
        core.cache_entries = if self.cache.enabled { self.cache.max_entries } else { 0 };
        core.cache_bytes = usize::try_from(self.cache.max_bytes.0).unwrap_or(usize::MAX);
        core.output_chars = self.output.max_chars;
        core
    }

    /// The context every call gets.
    pub fn context_values(&self) -> ContextValues {
        self.context.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
