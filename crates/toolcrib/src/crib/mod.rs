//! A crib: an executor, and the settings that its host attaches to every turn.

mod builder;
mod error;
#[cfg(feature = "builtins")]
mod offered_builtins;
#[cfg(feature = "crawler")]
mod offered_web;
mod refreshing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use toolcrib_core::approval::Approvals;
#[cfg(unix)]
use toolcrib_core::audit::AuditSink as _;
use toolcrib_core::run::Journal;
use toolcrib_core::{Executor, ShutdownReport, Toolset, Turn, TurnOptions};
#[cfg(feature = "mcp")]
use toolcrib_mcp::upstream::Upstreams;
use toolcrib_tool::{ContextValues, Services};

#[cfg(feature = "manifests")]
use crate::manifests::Reloader;
#[cfg(feature = "manifests")]
use crate::manifests::lock::LockKeeper;
#[cfg(all(feature = "manifests", feature = "mcp"))]
use crate::manifests::names::{DeclaredName, Names};
#[cfg(all(unix, feature = "manifests"))]
use crate::settings::reload::LiveConfig;
#[cfg(unix)]
use crate::stores::AuditSinks;
#[cfg(feature = "mcp")]
use crate::upstreams::Connections;

use refreshing::Refreshing;

pub use builder::ToolcribBuilder;
pub use error::{BuildError, UnknownToolset};

/// A ready-to-use collection of tools. Cloning it is cheap.
///
/// Calls go through turns: [`turn`](Self::turn), [`turn_in`](Self::turn_in) for a toolset, or
/// [`turn_options`](Self::turn_options) for more settings. Call [`shutdown`](Self::shutdown) at the
/// end.
///
/// The definition of a tool with a refresh period is requested again after each period
/// ([`Tool::refresh`](toolcrib_tool::Tool::refresh)). The task that does so starts when the crib is built or, outside
/// of a tokio runtime, with its first turn. It ends with the crib.
#[derive(Clone)]
pub struct Toolcrib {
    executor: Executor,
    refreshing: Arc<Refreshing>,
    context: ContextValues,
    services: Services,
    #[cfg(feature = "builtins")]
    offered_builtins: offered_builtins::OfferedBuiltins,
    /// Replaced when the config is reloaded.
    toolsets: Arc<RwLock<BTreeMap<String, Toolset>>>,
    #[cfg(all(unix, feature = "manifests"))]
    live_config: LiveConfig,
    runs: Option<Arc<dyn Journal>>,
    #[cfg(feature = "agent")]
    agents: crate::agents::LiveAgents,
    #[cfg(feature = "http")]
    pub(crate) answers: Option<Arc<dyn toolcrib_http::AnswerStore>>,
    /// The store in which tasks of MCP clients outlive the server.
    #[cfg(feature = "mcp")]
    pub(crate) tasks: Option<Arc<dyn toolcrib_mcp::TaskStore>>,
    /// The maximum number of MCP sessions of one client over HTTP.
    #[cfg(feature = "http")]
    pub(crate) mcp_sessions: Option<toolcrib_mcp::McpSessions>,
    #[cfg(feature = "manifests")]
    pub(crate) secrets: toolcrib_runners::Secrets,
    #[cfg(feature = "manifests")]
    keeper: crate::control_plane::ControlPlaneKeeper,
    #[cfg(feature = "manifests")]
    lock: Option<Arc<LockKeeper>>,
    #[cfg(feature = "manifests")]
    manifests: Option<Reloader>,
    #[cfg(all(feature = "manifests", feature = "mcp"))]
    names: Names,
    #[cfg(feature = "mcp")]
    connections: Connections,
    /// The audit log that [`resources`](ToolcribBuilder::resources) opened, to be flushed at the end.
    #[cfg(unix)]
    audit_sinks: AuditSinks,
    /// What [`resources`](ToolcribBuilder::resources) opened.
    #[cfg(feature = "store")]
    database: Option<crate::stores::Database>,
}

impl Toolcrib {
    /// Creates a builder without tools.
    pub fn builder() -> ToolcribBuilder {
        ToolcribBuilder::default()
    }

    /// Opens a turn over all tools, with the crib's own context and services.
    pub fn turn(&self) -> Turn {
        self.executor.turn(self.turn_options())
    }

    /// Opens a turn over the tools of a toolset: no other tools are listed, described or called.
    ///
    /// ```
    /// use toolcrib::{ToolFilter, Toolcrib, Toolset};
    ///
    /// let reader = Toolset::new().include(ToolFilter::new().name("read_*"));
    /// let crib = Toolcrib::builder().toolset("reader", reader).build()?;
    /// assert!(crib.turn_in("reader")?.describe("read_output").is_some());
    ///
    /// let unknown = crib.turn_in("writer").unwrap_err();
    /// assert_eq!(unknown.to_string(), "there is no toolset `writer`; there is `reader`");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn turn_in(&self, toolset: &str) -> Result<Turn, UnknownToolset> {
        let toolset = self.toolset(toolset)?;
        Ok(self.executor.turn(self.turn_options().toolset(toolset)))
    }

    /// The options of [`turn`](Self::turn), to be extended with a session, files, an approver, or
    /// the context of one request. The executor opens the turn.
    pub fn turn_options(&self) -> TurnOptions {
        self.refreshing.start(&self.executor);
        TurnOptions::default().host_values(self.context.clone()).services(self.services.clone())
    }

    /// The calls of every tenant and tool that wait for approval, to be listed, shown and decided by the operator of
    /// the crib. After a decision, a call continues as its caller, who gets its answer.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toolcrib::Toolcrib;
    /// use toolcrib::core::suspension::MemorySuspensions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let crib = Toolcrib::builder().suspensions(Arc::new(MemorySuspensions::new())).build()?;
    /// for request in crib.approvals().list().await? {
    ///     println!("{}", request.text());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn approvals(&self) -> Approvals {
        self.executor.approvals(self.turn_options())
    }

    /// The current version of a toolset.
    pub fn toolset(&self, name: &str) -> Result<Toolset, UnknownToolset> {
        let toolsets = self.toolsets.read().unwrap_or_else(PoisonError::into_inner);
        let found = toolsets.get(name).cloned();
        found.ok_or_else(|| UnknownToolset::new(name, toolsets.keys()))
    }

    /// The current versions of all toolsets, by name.
    pub fn toolsets(&self) -> BTreeMap<String, Toolset> {
        self.toolsets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces all toolsets. Open turns keep theirs.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn replace_toolsets(&self, toolsets: BTreeMap<String, Toolset>) {
        *self.toolsets.write().unwrap_or_else(PoisonError::into_inner) = toolsets;
    }

    /// The source for reading the config again, if there is one, for [`reload`](Self::reload) and
    /// [`follow_config`](Self::follow_config).
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn live_config(&self) -> &LiveConfig {
        &self.live_config
    }

    /// The executor, for servers and for turns with other context values.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The context values of [`turn`](Self::turn).
    pub fn context(&self) -> &ContextValues {
        &self.context
    }

    /// The journals of runs, if there are any: of [`Run`](toolcrib_core::run::Run)s and of agents.
    pub fn runs(&self) -> Option<&Arc<dyn Journal>> {
        self.runs.as_ref()
    }

    /// The settings of agents.
    #[cfg(feature = "agent")]
    pub(crate) fn live_agents(&self) -> &crate::agents::LiveAgents {
        &self.agents
    }

    /// The store in which tasks of MCP clients outlive the server, if there is one
    /// ([`McpOptions::task_store`](toolcrib_mcp::McpOptions::task_store)).
    #[cfg(feature = "mcp")]
    pub fn task_store(&self) -> Option<&Arc<dyn toolcrib_mcp::TaskStore>> {
        self.tasks.as_ref()
    }

    /// The prompts and resources of the manifests, for servers. They follow the files as tools do.
    #[cfg(all(feature = "manifests", feature = "mcp"))]
    pub fn catalog(&self) -> &toolcrib_mcp::catalog::Catalog {
        self.names.catalog()
    }

    /// The other declarations of files (MCP servers, prompts, resources), in the order that resolves names: directory,
    /// file, kind, position. They follow the files as tools do.
    ///
    /// A file owns a name as long as it declares it; other files with the same name are shadowed.
    #[cfg(all(feature = "manifests", feature = "mcp"))]
    pub fn declared_names(&self) -> Vec<DeclaredName> {
        self.names.declared()
    }

    /// Reads the secrets again that were given with [`secrets`](ToolcribBuilder::secrets): files
    /// and folders, whose content may have been rotated, and commands that failed. New values are
    /// masked before a call can use them; old values stay masked. The availability of tools does
    /// not change: to update it, create their entries again and publish them. Blocks as long as
    /// reading takes.
    #[cfg(feature = "manifests")]
    pub fn refresh_secrets(&self) -> Result<(), toolcrib_core::masking::MaskError> {
        let mut masked = Ok(());
        self.secrets.refresh(|secrets| {
            masked = self.executor.mask_also(crate::settings::setup::values(secrets));
        });
        masked
    }

    /// The built-in tools that can be offered.
    #[cfg(all(unix, feature = "manifests", feature = "builtins"))]
    pub(crate) fn offered_builtins(&self) -> &offered_builtins::OfferedBuiltins {
        &self.offered_builtins
    }

    /// Reads secrets from other sources from now on: files, folders and commands. Secrets that `is_kept` selects keep
    /// their source. New values are masked before a call can use them. Fails if they cannot be masked; then the sources
    /// stay unchanged.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn replace_secret_sources(
        &self,
        sources: toolcrib_runners::SecretSources,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<(), toolcrib_core::masking::MaskError> {
        let before = self.secrets.replace_sources(sources, is_kept);
        let refreshed = self.refresh_secrets();
        if refreshed.is_err() {
            drop(self.secrets.replace_sources(before, |_| false));
            // Everything that could be masked before can be masked now.
            let _ = self.refresh_secrets();
        }
        refreshed
    }

    /// The audit log that [`resources`](ToolcribBuilder::resources) opened.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn audit_sinks(&self) -> &AuditSinks {
        &self.audit_sinks
    }

    /// The database that [`resources`](ToolcribBuilder::resources) opened.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn database(&self) -> Option<&crate::stores::Database> {
        self.database.as_ref()
    }

    /// The files and folders that determine what this crib runs, or that only the host may know. No
    /// built-in file tool and no confined program can change them, and none can read the hidden
    /// ones. It follows the manifests.
    ///
    /// Apply it to programs that the host starts itself with
    /// [`Confinement::control_plane`](toolcrib_runners::ControlPlane).
    #[cfg(feature = "manifests")]
    pub fn control_plane(&self) -> &toolcrib_runners::ControlPlane {
        self.keeper.plane()
    }

    /// Withholds the places that a changed config names and that apply from the next start on.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn expect_config(&self, config: &crate::settings::Config) {
        self.keeper.expect(config.own_places());
    }

    /// The check of every entry before it enters the registry, if there is one.
    #[cfg(feature = "manifests")]
    pub fn lock(&self) -> Option<&Arc<LockKeeper>> {
        self.lock.as_ref()
    }

    /// The manifests that the crib was built with, for reloading and following them.
    ///
    /// ```
    /// use toolcrib::Toolcrib;
    /// use toolcrib::manifests::Manifests;
    /// use toolcrib::runners::RunnerHost;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let found = Manifests::load(&[dir.path().to_owned()], RunnerHost::new(dir.path()));
    /// let crib = Toolcrib::builder().manifests(&found).build()?;
    /// let text = "
    /// toolcrib: 1
    /// tools:
    ///   - {name: uptime, description: Show how long the machine runs., run: {argv: [uptime]}}
    /// ";
    /// std::fs::write(dir.path().join("uptime.yaml"), text)?;
    ///
    /// let manifests = crib.manifests().ok_or("there are manifests")?;
    /// manifests.reload(); // or, to follow them: manifests.watch()?
    /// assert!(crib.turn().describe("uptime").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "manifests")]
    pub fn manifests(&self) -> Option<&Reloader> {
        self.manifests.as_ref()
    }

    /// Starts to connect to the other MCP servers, which the builder or manifests name, in the
    /// background. Their tools are available after they have answered; await the returned value to
    /// wait for that ([`settled`](Upstreams::settled)).
    ///
    /// From then on, the connections follow each reload of the manifests within a second: new servers are connected,
    /// changed ones reconnected, and removed ones disconnected with their tools. All others keep their connection and
    /// their running calls. A file that cannot be used keeps its last good servers with its last good tools.
    ///
    /// If two files name the same server, the first one owns it as long as it declares it. A changed value of a secret
    /// or variable counts as a change when the file is read again.
    ///
    /// It may be called again: when it returns, the servers of the last reload are being connected. After a
    /// [`shutdown`](Self::shutdown) it does nothing.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    #[cfg(feature = "mcp")]
    pub async fn connect(&self) -> &Upstreams {
        self.connections.connect().await;
        self.connections.upstreams()
    }

    /// The other MCP servers that the builder was given or manifests name now, connected or not, in the order that
    /// resolves names. A server that the lock blocks is included; it is never started, and its status says why.
    #[cfg(all(feature = "manifests", feature = "mcp"))]
    pub fn declared_upstreams(&self) -> Vec<toolcrib_mcp::upstream::Upstream> {
        self.connections.wanted()
    }

    /// The connections to other MCP servers; empty before [`connect`](Self::connect).
    #[cfg(feature = "mcp")]
    pub fn upstreams(&self) -> &Upstreams {
        self.connections.upstreams()
    }

    /// Shuts down: new calls are `unavailable`, running calls have `grace` to end and are then
    /// `cancelled`, and every tool is closed. Then the connections to other MCP servers are closed,
    /// and their programs end within a second. When this returns, the audit log that
    /// [`resources`](ToolcribBuilder::resources) opened has all records, as far as its places accept them within two
    /// seconds each; the rest is counted and logged. It is idempotent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use toolcrib::{ErrorKind, ToolCall, Toolcrib};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let crib = Toolcrib::builder().build()?;
    /// let turn = crib.turn();
    /// assert_eq!(crib.shutdown(Duration::from_secs(5)).await.cancelled, 0);
    /// let late = turn.call(ToolCall::new("1", "read_output", r#"{"handle": "00"}"#)).await;
    /// assert_eq!(late.error_kind(), Some(ErrorKind::Unavailable));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        self.refreshing.end();
        let report = self.executor.shutdown(grace).await;
        #[cfg(feature = "mcp")]
        self.connections.upstreams().shutdown().await;
        #[cfg(unix)]
        {
            let audit = self.audit_sinks.clone();
            // This fails only if the runtime is shutting down too: then the log is flushed when it
            // is dropped.
            let _ = tokio::task::spawn_blocking(move || audit.finish()).await;
        }
        report
    }
}

impl fmt::Debug for Toolcrib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolcrib")
            .field("executor", &self.executor)
            .field("toolsets", &self.toolsets)
            .finish_non_exhaustive()
    }
}
