//! The config file, composed of its sections. Every default here is the one that `config.yml`
//! shows.

#[cfg(feature = "agent")]
mod agents;
#[cfg(feature = "builtins")]
mod builtins;
mod calls;
#[cfg(all(unix, feature = "manifests"))]
mod findings;
mod layers;
#[cfg(feature = "mcp")]
mod mcp;
mod names;
mod places;
#[cfg(feature = "agent")]
mod providers;
#[cfg(all(unix, feature = "manifests"))]
pub(crate) mod reload;
mod sandbox;
mod secrets;
pub(crate) mod setup;
#[cfg(test)]
mod tests;
#[cfg(all(unix, feature = "manifests"))]
pub(crate) mod unmatched;
mod version;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::policy::Policy;
use toolcrib_core::{ExecutorConfig, Toolset};
use toolcrib_tool::ContextValues;

#[cfg(feature = "agent")]
pub(crate) use agents::undeclared_model;
#[cfg(feature = "agent")]
pub use agents::{
    Agent, AgentBudget, AgentCompaction, AgentEntry, Dollars, OutputSchema, Responses,
    ResponsesDialect, Share, SubAgent,
};
#[cfg(feature = "databases")]
pub(crate) use builtins::lend_secrets;
#[cfg(feature = "builtins")]
pub use builtins::{Bash, Builtins, CodeExecution, ExtraModules, Paths, Timeouts};
#[cfg(feature = "databases")]
pub use builtins::{DataAnalysis, DatabaseEntry, DatabaseUrl, DbQuery};
#[cfg(feature = "crawler")]
pub use builtins::{Images, Network, SearchEntry, Web};
pub use calls::{Approval, Breaker, Cache, Executor, Output};
#[cfg(all(unix, feature = "manifests"))]
pub use findings::ConfigFinding;
pub use layers::{ConfigError, ConfigLayers, EffectiveValue, LoadedConfig, VARIABLE_PREFIX};
#[cfg(feature = "mcp")]
pub use mcp::{Mcp, Tasks};
pub use names::Registry;
pub use places::{Audit, Keep, KeepOutputs, KeepRuns, Manifests, State, Workspace};
#[cfg(feature = "agent")]
pub use providers::{
    BaseUrl, Capabilities, ModelName, ModelPrices, ModelSettings, Price, Provider, ProviderKind,
    ProviderLimits, SecretReference,
};
pub use sandbox::{Limits, Sandbox, SandboxRequire};
pub use secrets::SecretSource;
pub use setup::SetupError;
pub use version::ConfigVersion;

/// The content of a config file. All keys are optional; unknown keys are errors.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The version of the format.
    pub toolcrib: ConfigVersion,
    /// Time limits and concurrency of calls.
    pub executor: Executor,
    /// Which tools are paused after repeated timeouts.
    pub breaker: Breaker,
    /// The cache of answers.
    pub cache: Cache,
    /// Limits of the output that reaches the model.
    pub output: Output,
    /// The policy: which calls run, which need approval, and which are refused.
    pub policy: Policy,
    /// Calls that need approval.
    pub approval: Approval,
    /// How names are resolved.
    pub registry: Registry,
    /// Named toolsets, which limit the tools of a surface or a turn. A toolset with `include` also
    /// contains `read_output`.
    pub toolsets: BTreeMap<String, Toolset>,
    /// The location of manifests.
    pub manifests: Manifests,
    /// The folder in which commands run, and in which file tools work if there are no `projects`.
    pub workspace: Workspace,
    /// How programs are confined.
    pub sandbox: Sandbox,
    /// Resource limits of programs whose manifest declares none.
    pub limits: Limits,
    /// The folders of file tools: one for each `project_id` that a host sets in the context; relative to the config
    /// file. Without projects, `workspace.root` applies to all calls.
    #[cfg(feature = "builtins")]
    pub projects: BTreeMap<String, PathBuf>,
    /// The files and folders that the built-in file tools and `bash` may use.
    #[cfg(feature = "builtins")]
    pub paths: Paths,
    /// The built-in tools.
    #[cfg(feature = "builtins")]
    pub builtins: Builtins,
    /// Settings of the code that `execute_python` runs.
    #[cfg(feature = "builtins")]
    pub code_execution: CodeExecution,
    /// Settings of the queries of `data_analysis`.
    #[cfg(feature = "databases")]
    pub data_analysis: DataAnalysis,
    /// The databases that `db_query` can read. With several, the context value `database` selects one of them, or else
    /// the one called `default`.
    #[cfg(feature = "databases")]
    pub databases: BTreeMap<String, DatabaseEntry>,
    /// Limits of `db_query`.
    #[cfg(feature = "databases")]
    pub db_query: DbQuery,
    /// The web tools.
    #[cfg(feature = "crawler")]
    pub web: Web,
    /// The pictures that `image_generate` makes.
    #[cfg(feature = "crawler")]
    pub images: Images,
    /// Values for `${secret.name}` in manifests. They are masked in all output of calls.
    #[schemars(extend("writeOnly" = true))]
    pub secrets: BTreeMap<String, SecretSource>,
    /// Folders whose files are secrets with the names of the files, after those of `secrets`;
    /// relative to the config file. `$CREDENTIALS_DIRECTORY`, which systemd sets, is always
    /// included.
    pub secret_folders: Vec<PathBuf>,
    /// Providers of models, for agents.
    #[cfg(feature = "agent")]
    pub providers: BTreeMap<String, Provider>,
    /// The limits of agents' runs.
    #[cfg(feature = "agent")]
    pub agent: Agent,
    /// The limits of agents that agents start.
    #[cfg(feature = "agent")]
    pub sub_agent: SubAgent,
    /// Agents: models with an instruction, tools and limits.
    #[cfg(feature = "agent")]
    pub agents: BTreeMap<String, AgentEntry>,
    /// How clients of OpenAI's Responses API see agents and models.
    #[cfg(feature = "agent")]
    pub responses: Responses,
    /// State that outlives the program.
    pub state: State,
    /// The audit log.
    pub audit: Audit,
    /// Values in the context of every call; a model can neither see nor change them.
    pub context: BTreeMap<String, Value>,
    /// What MCP clients are offered.
    #[cfg(feature = "mcp")]
    pub mcp: Mcp,
    /// The HTTP listener.
    #[cfg(feature = "http")]
    pub server: toolcrib_http::ServerConfig,
    /// Files that determine what this program does, in addition to those that other keys name: the
    /// config file itself. File tools may not change them.
    #[serde(skip)]
    #[schemars(skip)]
    pub own_files: Vec<PathBuf>,
    /// The config file's folder, to which the names in `manifests.trusted` are relative; the
    /// current folder if there is no file.
    #[serde(skip)]
    #[schemars(skip)]
    pub folder: PathBuf,
    /// The origins of values that are not defaults, by key: `config.yml:3:5`, a variable or a flag.
    #[serde(skip)]
    #[schemars(skip)]
    pub origins: BTreeMap<String, String>,
}

impl Config {
    /// The JSON Schema (2020-12) of config files: every key, with its default.
    pub fn json_schema() -> Value {
        let mut schema = toolcrib_manifest::layers::schema_of::<Self>();
        schema["title"] = Value::from("toolcrib config");
        schema
    }

    /// Makes every relative path relative to `base`, the config file's folder.
    /// [`ConfigLayers::load`] does this.
    #[must_use]
    pub fn relative_to(self, base: &Path) -> Self {
        let mut config = self.rebased(base, |_| true);
        if config.state.says_none() {
            config.state.dir = None;
        }
        config
    }

    /// Like [`relative_to`](Self::relative_to), for the keys that `concerned` selects.
    fn rebased(mut self, base: &Path, concerned: impl Fn(&str) -> bool) -> Self {
        let Self {
            manifests,
            registry,
            workspace,
            state,
            audit,
            secrets,
            secret_folders,
            #[cfg(feature = "builtins")]
            projects,
            #[cfg(feature = "builtins")]
                paths: refused,
            ..
        } = &mut self;
        #[cfg_attr(
            not(feature = "builtins"),
            expect(unused_mut, reason = "only the built-in tools have further ones")
        )]
        let mut paths = vec![
            ("manifests.dirs", manifests.dirs.iter_mut().collect::<Vec<_>>()),
            ("registry.lock_file", vec![&mut registry.lock_file]),
            ("workspace.root", vec![&mut workspace.root]),
            ("state.homes", state.homes.iter_mut().collect()),
            ("state.dir", state.dir.iter_mut().filter(|dir| !places::is_none(dir)).collect()),
            ("audit.file", audit.file.iter_mut().collect()),
            ("audit.syslog", audit.syslog.iter_mut().filter_map(|own| own.path_mut()).collect()),
            ("secrets", secrets.values_mut().filter_map(SecretSource::path_mut).collect()),
            ("secret_folders", secret_folders.iter_mut().collect()),
        ];
        #[cfg(feature = "builtins")]
        {
            paths.push(("projects", projects.values_mut().collect()));
            paths.push(("paths.bash_read", refused.bash_read.iter_mut().collect()));
            paths.push(("paths.sensitive_extra", refused.sensitive_extra.iter_mut().collect()));
        }
        let rebased = |path: &Path| match path.strip_prefix("~").ok().zip(std::env::home_dir()) {
            Some((below, home)) => home.join(below),
            None => base.join(path),
        };
        for (_, paths) in paths.into_iter().filter(|(key, _)| concerned(key)) {
            for path in paths {
                *path = rebased(path);
            }
        }
        if concerned("manifests.trusted") {
            for named in &mut self.manifests.trusted {
                *named = rebased(Path::new(&*named)).to_string_lossy().into_owned();
            }
        }
        base.clone_into(&mut self.folder);
        self
    }

    /// The settings of the executor.
    pub fn executor_config(&self) -> ExecutorConfig {
        let mut core = ExecutorConfig::default();
        core.tool_timeout = self.executor.tool_timeout.0;
        core.max_timeout = self.executor.max_timeout.0;
        core.max_concurrency = self.executor.max_concurrency.map_or(0, NonZeroUsize::get);
        core.max_queue = self.executor.max_queue;
        core.queue_timeout = self.executor.queue_timeout.0.unwrap_or(Duration::MAX);
        core.breaker_timeouts = self.breaker.consecutive_timeouts.map_or(0, NonZeroU32::get);
        core.breaker_cooldown = self.breaker.cooldown.0.unwrap_or(Duration::MAX);
        core.cache_ttl = self.cache.ttl.0.unwrap_or(Duration::MAX);
        core.cache_entries = if self.cache.enabled { self.cache.max_entries } else { 0 };
        core.cache_bytes = usize::try_from(self.cache.max_bytes.0).unwrap_or(usize::MAX);
        core.output_chars = self.output.max_chars;
        core.batch_output_chars = self.output.batch_chars.map(NonZeroUsize::get);
        core.data_bytes = usize::try_from(self.output.max_data_bytes.0).unwrap_or(usize::MAX);
        core.approval_timeout = self.approval.timeout.0;
        core
    }

    /// The toolsets that limit turns, with `read_output`.
    pub(crate) fn own_toolsets(&self) -> BTreeMap<String, Toolset> {
        let toolsets = self.toolsets.iter();
        toolsets.map(|(name, own)| (name.clone(), own.clone().with_read_output())).collect()
    }

    /// The context values of every call.
    pub fn context_values(&self) -> ContextValues {
        self.context.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
