//! The builder of cribs.

mod assembly;
mod stores;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
#[cfg(feature = "manifests")]
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolcrib_core::approval::Approver;
use toolcrib_core::clock::Clock;
use toolcrib_core::events::EventBus;
use toolcrib_core::masking::Mask;
use toolcrib_core::policy::Policy;
use toolcrib_core::run::Journal;
use toolcrib_core::spill::SpillStore;
use toolcrib_core::{ExecutorBuilder, ExecutorConfig, Middleware, OnDuplicate, Toolset};
#[cfg(feature = "mcp")]
use toolcrib_mcp::upstream::{PinStore, Upstream};
use toolcrib_tool::{
    CallContext, ContextValues, DefinitionError, IntoOutcome, Services, ToolDefinitionBuilder,
    ToolEntry,
};

#[cfg(feature = "manifests")]
use crate::control_plane::OwnPlaces;
#[cfg(feature = "manifests")]
use crate::manifests::Manifests;
#[cfg(feature = "manifests")]
use crate::manifests::lock::LockKeeper;
#[cfg(unix)]
use crate::stores::AuditSinks;

/// Collects entries and settings; [`build`](Self::build) resolves every name.
///
/// Unset parts cost calls nothing, with one exception: outputs that are too long for a model are
/// stored in memory for an hour and read with the tool `read_output` ([`spill`](Self::spill),
/// [`no_spill`](Self::no_spill)).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolcrib::{ToolCall, Toolcrib};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Greet {
///     /// Whom to greet.
///     name: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolcrib::BuildError> {
/// let crib = Toolcrib::builder()
///     .tool("greet", "Greet somebody by name.", |args: Greet, _| async move {
///         format!("Hello, {}!", args.name)
///     })
///     .build()?;
///
/// let result = crib.turn().call(ToolCall::new("call_1", "greet", r#"{"name": "Ada"}"#)).await;
/// assert_eq!(result.text(), "Hello, Ada!");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ToolcribBuilder {
    entries: Vec<ToolEntry>,
    /// The error of the first invalid tool.
    refused: Option<DefinitionError>,
    #[cfg(feature = "manifests")]
    manifests: Option<Manifests>,
    native: bool,
    meta: bool,
    on_duplicate: OnDuplicate,
    allow_override: Vec<String>,
    #[cfg(feature = "manifests")]
    lock: Option<Arc<LockKeeper>>,
    pub(crate) executor: ExecutorBuilder,
    events: Option<EventBus>,
    context: ContextValues,
    services: Services,
    #[cfg(feature = "builtins")]
    builtins: toolcrib_builtins::Builtins,
    #[cfg(feature = "builtins")]
    enabled_builtins: Option<Vec<toolcrib_core::Pattern>>,
    #[cfg(feature = "crawler")]
    web: toolcrib_web::WebSettings,
    toolsets: BTreeMap<String, Toolset>,
    runs: Option<Arc<dyn Journal>>,
    #[cfg(feature = "agent")]
    agents: crate::agents::LiveAgents,
    #[cfg(feature = "http")]
    answers: Option<Arc<dyn toolcrib_http::AnswerStore>>,
    #[cfg(feature = "mcp")]
    tasks: Option<Arc<dyn toolcrib_mcp::TaskStore>>,
    #[cfg(feature = "http")]
    mcp_sessions: Option<usize>,
    #[cfg(feature = "manifests")]
    pub(crate) secrets: toolcrib_runners::Secrets,
    #[cfg(feature = "manifests")]
    own_places: OwnPlaces,
    #[cfg(feature = "manifests")]
    working_folders: Vec<PathBuf>,
    outputs: Outputs,
    #[cfg(feature = "mcp")]
    upstreams: Vec<Upstream>,
    #[cfg(feature = "mcp")]
    pins: Option<Arc<dyn PinStore>>,
    #[cfg(unix)]
    pub(crate) audit_sinks: AuditSinks,
    /// What [`resources`](Self::resources) opened.
    #[cfg(feature = "store")]
    database: Option<crate::stores::Database>,
}

/// The store for truncated outputs.
#[derive(Default)]
enum Outputs {
    #[default]
    Memory,
    Store(Arc<dyn SpillStore>),
    Nowhere,
}

impl ToolcribBuilder {
    /// Adds a tool from an async closure. The schema of its arguments is derived from the type of the closure's first
    /// parameter ([`NoArguments`](crate::NoArguments) for none). It may return whatever a `#[tool]` function may
    /// return.
    ///
    /// The definition does not describe the tool's effects, so policies and models assume that it may change anything;
    /// use [`tool_with`](Self::tool_with) to describe them. [`build`](Self::build) fails if the name or the description
    /// is invalid, or if the arguments are not an object.
    #[must_use]
    pub fn tool<T, F, R, O>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(T, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoOutcome,
    {
        self.typed(ToolEntry::from_fn(name, description, function))
    }

    /// Like [`tool`](Self::tool), with a complete definition: the tool's effects, its approval, its time limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use toolcrib::{NoArguments, Toolcrib};
    ///
    /// let crib = Toolcrib::builder()
    ///     .tool_with(
    ///         "uptime",
    ///         "Show how long the machine has been running.",
    ///         |definition| definition.read_only(true).timeout(Duration::from_secs(2)),
    ///         |_: NoArguments, _| async { "3 days" },
    ///     )
    ///     .build()?;
    /// assert!(crib.turn().describe("uptime").is_some_and(|one| one.annotations().read_only));
    /// # Ok::<(), toolcrib::BuildError>(())
    /// ```
    #[must_use]
    pub fn tool_with<T, F, R, O>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        define: impl FnOnce(ToolDefinitionBuilder) -> ToolDefinitionBuilder,
        function: F,
    ) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(T, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoOutcome,
    {
        self.typed(ToolEntry::from_fn_with(name, description, define, function))
    }

    /// Stores the first invalid tool until the crib is built.
    fn typed(mut self, entry: Result<ToolEntry, DefinitionError>) -> Self {
        match entry {
            Ok(entry) => self.entries.push(entry),
            Err(error) => {
                self.refused.get_or_insert(error);
            }
        }
        self
    }

    /// Adds a prepared entry: a tool with its own type, one instance per call, or an existing definition. Closures are
    /// added with [`tool`](Self::tool).
    #[must_use]
    pub fn entry(mut self, entry: ToolEntry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Adds the tools of a source, in order. They never change; use [`manifests`](Self::manifests)
    /// for tools that should follow manifest files.
    #[must_use]
    pub fn entries(mut self, entries: impl IntoIterator<Item = ToolEntry>) -> Self {
        self.entries.extend(entries);
        self
    }

    /// Adds the tools of manifests, one unit per file, which can be reloaded
    /// ([`Toolcrib::manifests`](crate::Toolcrib::manifests)), and the other MCP servers that they name
    /// ([`Toolcrib::connect`](crate::Toolcrib::connect)).
    #[cfg(feature = "manifests")]
    #[must_use]
    pub fn manifests(mut self, manifests: &Manifests) -> Self {
        self.manifests = Some(manifests.clone());
        self
    }

    /// Adds other MCP servers whose tools are offered, before those that manifests name. They never change.
    ///
    /// This starts nothing; [`Toolcrib::connect`](crate::Toolcrib::connect) does.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn upstreams(mut self, upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        self.upstreams.extend(upstreams);
        self
    }

    /// Sets the store for pinned definitions of other MCP servers' tools. Default: in memory, as
    /// long as the crib lives.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn pins(mut self, pins: Arc<dyn PinStore>) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Adds every tool linked into this binary (`#[tool]`).
    #[must_use]
    pub fn native_tools(mut self) -> Self {
        self.native = true;
        self
    }

    /// Configures the built-in tools: their names, and the folders in which they may work. Default: the default names
    /// and no folder, so that file tools are unavailable.
    ///
    /// ```
    /// use toolcrib::builtins::{Builtins, Projects};
    /// use toolcrib::{ToolCall, Toolcrib};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("notes.txt"), "remember")?;
    /// let builtins = Builtins::new().projects(Projects::in_folder(dir.path()));
    /// let crib = Toolcrib::builder().native_tools().builtins(builtins).build()?;
    /// let read = ToolCall::new("1", "file_read", r#"{"path": "notes.txt"}"#);
    /// assert_eq!(crib.turn().call(read).await.text(), "remember");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "builtins")]
    #[must_use]
    pub fn builtins(mut self, builtins: toolcrib_builtins::Builtins) -> Self {
        self.builtins = builtins;
        self
    }

    /// Sets how the web tools work. Default: pages of the public internet are fetched, and there is no search and no
    /// pictures. API keys are taken from the crib's [`secrets`](Self::secrets).
    #[cfg(feature = "crawler")]
    #[must_use]
    pub fn web(mut self, settings: toolcrib_web::WebSettings) -> Self {
        self.web = settings;
        self
    }

    /// Sets which built-in tools are offered, by names or patterns. Default, and `None`: all of them. Other linked-in
    /// tools are not affected.
    ///
    /// ```
    /// use toolcrib::Toolcrib;
    /// use toolcrib::core::Pattern;
    ///
    /// let enabled = vec![Pattern::new("calc*")];
    /// let crib = Toolcrib::builder().native_tools().enabled_builtins(Some(enabled)).build()?;
    /// let turn = crib.turn();
    /// assert!(turn.describe("calculator").is_some() && turn.describe("bash").is_none());
    /// # Ok::<(), toolcrib::BuildError>(())
    /// ```
    #[cfg(feature = "builtins")]
    #[must_use]
    pub fn enabled_builtins(mut self, enabled: Option<Vec<toolcrib_core::Pattern>>) -> Self {
        self.enabled_builtins = enabled;
        self
    }

    /// Sets whether to add tools that find, describe and call others
    /// ([`meta_entries`](toolcrib_core::meta::meta_entries)). Default: no.
    ///
    /// ```
    /// use toolcrib::Toolcrib;
    ///
    /// let crib = Toolcrib::builder().meta_tools(true).build()?;
    /// assert!(crib.turn().describe("tool_search").is_some());
    /// # Ok::<(), toolcrib::BuildError>(())
    /// ```
    #[must_use]
    pub fn meta_tools(mut self, offered: bool) -> Self {
        self.meta = offered;
        self
    }

    /// Sets how to resolve a name that is declared twice, now and after later changes. Default: the
    /// first declaration keeps it, and [`conflicts`](toolcrib_core::RegistrySnapshot::conflicts)
    /// lists the other one.
    #[must_use]
    pub fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// Names the manifest and upstream tools that may replace a system tool
    /// ([`OVERRIDABLE`](toolcrib_core::OVERRIDABLE)), as `unit:name`, for example
    /// `tools.d/own.yaml:new_task`. Host and linked-in tools may always do so. Default: none.
    #[must_use]
    pub fn allow_override<S: Into<String>>(mut self, entries: impl IntoIterator<Item = S>) -> Self {
        self.allow_override.extend(entries.into_iter().map(Into::into));
        self
    }

    /// Sets the lock with which every tool is compared. Default: none.
    #[cfg(feature = "manifests")]
    #[must_use]
    pub fn lock(mut self, keeper: LockKeeper) -> Self {
        self.lock = Some(Arc::new(keeper));
        self
    }

    /// Adds files and folders that no tool may change, or even read, to the [control
    /// plane](crate::Toolcrib::control_plane): settings, state and keys of the host program. The manifests, the
    /// programs that they run and the running program itself always belong to it.
    ///
    /// ```
    /// use toolcrib::Toolcrib;
    /// use toolcrib::control_plane::OwnPlaces;
    ///
    /// let own = OwnPlaces::new().hide("/srv/app/keys").read_only("/srv/app/hooks");
    /// let crib = Toolcrib::builder().own_places(own).build()?;
    /// assert!(crib.control_plane().places().hidden.contains(&"/srv/app/keys".into()));
    /// # Ok::<(), toolcrib::BuildError>(())
    /// ```
    #[cfg(feature = "manifests")]
    #[must_use]
    pub fn own_places(mut self, own: OwnPlaces) -> Self {
        self.own_places.extend(own);
        self
    }

    /// Adds folders in which programs of tools work, in addition to those of the built-in tools and manifests.
    #[cfg(feature = "manifests")]
    #[must_use]
    pub(crate) fn working_folders(mut self, folders: Vec<PathBuf>) -> Self {
        self.working_folders.extend(folders);
        self
    }

    /// Sets the executor's configuration.
    #[must_use]
    pub fn executor(mut self, config: ExecutorConfig) -> Self {
        self.executor = self.executor.config(config);
        self
    }

    /// Sets the context values of every turn of the crib.
    #[must_use]
    pub fn context(mut self, values: ContextValues) -> Self {
        self.context = values;
        self
    }

    /// Sets the services that every turn of the crib offers to its tools: databases, clients,
    /// settings.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// Adds a toolset for [`Toolcrib::turn_in`](crate::Toolcrib::turn_in); one of the same name is replaced.
    ///
    /// Truncated outputs in its turns can be read only if it includes `read_output`.
    #[must_use]
    pub fn toolset(mut self, name: impl Into<String>, toolset: Toolset) -> Self {
        self.toolsets.insert(name.into(), toolset);
        self
    }

    /// Sets the policy: which calls run, which need approval, and which are refused. Default: the
    /// approval settings of the tools themselves.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.executor = self.executor.policy(policy);
        self
    }

    /// Sets the approver for turns without their own. Default: none. Then calls that need approval
    /// wait in the [`suspensions`](Self::suspensions), and without these they are `denied`.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.executor = self.executor.approver(approver);
        self
    }

    /// Sets the providers and agents of a config.
    #[cfg(feature = "agent")]
    pub(crate) fn agents(self, config: &crate::settings::Config) -> Self {
        self.agents.replace(config);
        self
    }

    /// Sets the maximum number of MCP sessions of one client over HTTP. Default 256.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn mcp_sessions(mut self, per_client: usize) -> Self {
        self.mcp_sessions = Some(per_client);
        self
    }

    /// Sets the mask of texts that must never be shown: the values of secrets. Default: none.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.executor = self.executor.mask(mask);
        self
    }

    /// Adds a hook around every call, inside those added before.
    #[must_use]
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.executor = self.executor.middleware(middleware);
        self
    }

    /// Sets the bus for the events of all calls: their output while they run, how they end, and
    /// tools that pause. Default: the crib's own bus, which keeps 1,024 events for its slowest
    /// subscriber ([`Executor::events`](toolcrib_core::Executor::events)).
    ///
    /// ```
    /// use toolcrib::core::events::EventBus;
    /// use toolcrib::{ToolCall, Toolcrib};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolcrib::BuildError> {
    /// let bus = EventBus::new(16);
    /// let crib = Toolcrib::builder().events(bus.clone()).build()?;
    /// let mut events = bus.subscribe();
    /// crib.turn().call(ToolCall::new("1", "read_output", r#"{"handle": "00"}"#)).await;
    /// let first = events.next().await.map(|event| event.name());
    /// assert_eq!(first, Some("call.prepare"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn events(mut self, bus: EventBus) -> Self {
        self.events = Some(bus);
        self
    }

    /// Sets the clock that determines what has expired. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.executor = self.executor.clock(clock);
        self
    }
}

impl fmt::Debug for ToolcribBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolcribBuilder")
            .field("entries", &self.entries.len())
            .field("executor", &self.executor)
            .field("toolsets", &self.toolsets)
            .finish_non_exhaustive()
    }
}
