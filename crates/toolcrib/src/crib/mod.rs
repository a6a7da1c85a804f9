//! A crib: an executor, and what its host attaches to every turn.

mod builder;
mod error;
#[cfg(feature = "builtins")]
mod offered_builtins;
mod refreshing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use toolcrib_core::approval::Approvals;
use toolcrib_core::run::RunStore;
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
use crate::stores::FileAudit;
#[cfg(feature = "mcp")]
use crate::upstreams::Connections;

use refreshing::Refreshing;

pub use builder::ToolcribBuilder;
pub use error::{BuildError, UnknownToolset};

/// A crib of tools, ready to hand them out. Cloning it is cheap.
///
/// Calls go through turns: [`turn`](Self::turn), [`turn_in`](Self::turn_in) a toolset, or
/// [`turn_options`](Self::turn_options) with more said. At the end,
/// [`shutdown`](Self::shutdown).
///
/// Tools that state a period are asked for their definition whenever it is over
/// ([`Tool::refresh`](toolcrib_tool::Tool::refresh)), by a task that starts when the crib is built or, if
/// that is done outside a tokio runtime, with its first turn. It ends with the crib.
#[derive(Clone)]
pub struct Toolcrib {
    executor: Executor,
    refreshing: Arc<Refreshing>,
    context: ContextValues,
    services: Services,
    #[cfg(feature = "builtins")]
    offered_builtins: offered_builtins::OfferedBuiltins,
    /// Replaced when the config is read again.
    toolsets: Arc<RwLock<BTreeMap<String, Toolset>>>,
    #[cfg(all(unix, feature = "manifests"))]
    live_config: LiveConfig,
    runs: Option<Arc<dyn RunStore>>,
    #[cfg(feature = "http")]
    pub(crate) answers: Option<Arc<dyn toolcrib_http::AnswerStore>>,
    /// Where tasks of MCP clients outlive the server.
    #[cfg(feature = "mcp")]
    pub(crate) tasks: Option<Arc<dyn toolcrib_mcp::TaskStore>>,
    /// How many MCP sessions one client may have over HTTP.
    #[cfg(feature = "http")]
    pub(crate) mcp_sessions: Option<toolcrib_mcp::McpSessions>,
    #[cfg(feature = "manifests")]
    secrets: toolcrib_runners::Secrets,
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
    /// The log that [`resources`](ToolcribBuilder::resources) opened, to be written out at the end.
    #[cfg(unix)]
    audit_file: Option<Arc<FileAudit>>,
}

impl Toolcrib {
    /// Starts an empty crib.
    pub fn builder() -> ToolcribBuilder {
        ToolcribBuilder::default()
    }

    /// Opens a turn over all tools, with the crib's own context and services.
    pub fn turn(&self) -> Turn {
        self.executor.turn(self.turn_options())
    }

    /// Opens a turn over the tools of a toolset: no others are listed, described or called.
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

    /// What [`turn`](Self::turn) opens turns with, to say more: a session, files, an approver, the
    /// context of one request. The turn itself is the executor's to open.
    pub fn turn_options(&self) -> TurnOptions {
        self.refreshing.start(&self.executor);
        TurnOptions::default().host_values(self.context.clone()).services(self.services.clone())
    }

    /// The calls that wait for approval, of every tenant and tool: listed, shown and decided on for
    /// whoever operates the crib. After a decision a call goes on as its caller, who gets its answer.
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

    /// A toolset by its name, as it is now.
    pub fn toolset(&self, name: &str) -> Result<Toolset, UnknownToolset> {
        let toolsets = self.toolsets.read().unwrap_or_else(PoisonError::into_inner);
        let found = toolsets.get(name).cloned();
        found.ok_or_else(|| UnknownToolset::new(name, toolsets.keys()))
    }

    /// All toolsets by their names, as they are now.
    pub fn toolsets(&self) -> BTreeMap<String, Toolset> {
        self.toolsets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces all toolsets. Turns that are open keep theirs.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn replace_toolsets(&self, toolsets: BTreeMap<String, Toolset>) {
        *self.toolsets.write().unwrap_or_else(PoisonError::into_inner) = toolsets;
    }

    /// Where the config is read from again, if anywhere: [`reload`](Self::reload) and
    /// [`follow_config`](Self::follow_config).
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn live_config(&self) -> &LiveConfig {
        &self.live_config
    }

    /// The executor, for turns with a context of their own and for servers.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The values [`turn`](Self::turn) puts into the context.
    pub fn context(&self) -> &ContextValues {
        &self.context
    }

    /// Where [`Run`](toolcrib_core::run::Run)s are saved, if anywhere.
    pub fn runs(&self) -> Option<&Arc<dyn RunStore>> {
        self.runs.as_ref()
    }

    /// Where tasks of MCP clients outlive the server, if anywhere
    /// ([`McpOptions::task_store`](toolcrib_mcp::McpOptions::task_store)).
    #[cfg(feature = "mcp")]
    pub fn task_store(&self) -> Option<&Arc<dyn toolcrib_mcp::TaskStore>> {
        self.tasks.as_ref()
    }

    /// The prompts and resources of the manifests, for servers. It follows the files as tools do.
    #[cfg(all(feature = "manifests", feature = "mcp"))]
    pub fn catalog(&self) -> &toolcrib_mcp::catalog::Catalog {
        self.names.catalog()
    }

    /// What files declare besides tools (other MCP servers, prompts, resources), in the order that decides
    /// names: directory, file, kind, place. It follows the files as tools do.
    ///
    /// A file owns a name as long as it declares it, whatever others come; those are withheld.
    #[cfg(all(feature = "manifests", feature = "mcp"))]
    pub fn declared_names(&self) -> Vec<DeclaredName> {
        self.names.declared()
    }

    /// Reads the secrets again that were given with [`secrets`](ToolcribBuilder::secrets): files and
    /// folders, in which others may have rotated them, and commands that failed. New values are
    /// masked before a call can have them; old ones stay masked. Which tools are available does not
    /// change: make their entries anew and publish them. Blocks as long as reading takes.
    #[cfg(feature = "manifests")]
    pub fn refresh_secrets(&self) -> Result<(), toolcrib_core::masking::MaskError> {
        let mut masked = Ok(());
        self.secrets.refresh(|secrets| {
            masked = self.executor.mask_also(crate::settings::setup::values(secrets));
        });
        masked
    }

    /// The built-in tools, as they can be offered.
    #[cfg(all(unix, feature = "manifests", feature = "builtins"))]
    pub(crate) fn offered_builtins(&self) -> &offered_builtins::OfferedBuiltins {
        &self.offered_builtins
    }

    /// Reads secrets from other sources from now on: files, folders and commands. Those that `is_kept` names
    /// keep their source. New values are masked before a call can have them. Fails if they cannot be masked;
    /// then the sources stay as they were.
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
            // What could be masked before can be masked now.
            let _ = self.refresh_secrets();
        }
        refreshed
    }

    /// The audit log that [`resources`](ToolcribBuilder::resources) opened.
    #[cfg(all(unix, feature = "http"))]
    pub(crate) fn audit_file(&self) -> Option<&FileAudit> {
        self.audit_file.as_deref()
    }

    /// Audit records that could not be written.
    #[cfg(all(unix, feature = "http"))]
    pub(crate) fn audit_lost(&self) -> u64 {
        self.audit_file().map_or(0, toolcrib_core::audit::AuditSink::lost)
    }

    /// What decides what this crib runs, or only the host may know: no built-in file tool and no
    /// confined program changes it, and none reads what is hidden. It follows the manifests.
    ///
    /// Programs that the host starts itself take it with
    /// [`Confinement::control_plane`](toolcrib_runners::ControlPlane).
    #[cfg(feature = "manifests")]
    pub fn control_plane(&self) -> &toolcrib_runners::ControlPlane {
        self.keeper.plane()
    }

    /// Withholds what a config names that will hold from the next start on.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn expect_config(&self, config: &crate::settings::Config) {
        self.keeper.expect(config.own_places());
    }

    /// What every entry has to pass before it enters the registry, if anything.
    #[cfg(feature = "manifests")]
    pub fn lock(&self) -> Option<&Arc<LockKeeper>> {
        self.lock.as_ref()
    }

    /// The manifests it was built with, to reload and to follow them.
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

    /// Begins to connect to the other MCP servers, those that the builder was given and those that
    /// manifests name, in the background: their tools are there once they have answered, and whoever
    /// wants to wait does so with what this returns ([`settled`](Upstreams::settled)).
    ///
    /// From then on the connections follow the manifests, whenever these are reloaded: new servers are
    /// connected to, changed ones ended and connected to anew, and those that are named no more ended
    /// and their tools removed, within a second. All others keep their connection and the calls that
    /// run. A file that cannot be used keeps its last good servers with its last good tools.
    ///
    /// Of two files that name one server, the first to do so keeps it as long as it does. A secret or a
    /// variable that has another value counts as a change once the file is read again.
    ///
    /// Doing it again does no harm: when it returns, what the last reload has found is being connected
    /// to. After a [`shutdown`](Self::shutdown) it does nothing.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    #[cfg(feature = "mcp")]
    pub async fn connect(&self) -> &Upstreams {
        self.connections.connect().await;
        self.connections.upstreams()
    }

    /// The other MCP servers that the builder was given or manifests name now, in the order that decides
    /// names, whether they are connected to or not. A server that the lock blocks is among them; it is
    /// never started, and its status says why.
    #[cfg(all(feature = "manifests", feature = "mcp"))]
    pub fn declared_upstreams(&self) -> Vec<toolcrib_mcp::upstream::Upstream> {
        self.connections.wanted()
    }

    /// The other MCP servers whose tools are offered here: none, before [`connect`](Self::connect).
    #[cfg(feature = "mcp")]
    pub fn upstreams(&self) -> &Upstreams {
        self.connections.upstreams()
    }

    /// Shuts down: new calls are `unavailable`, running calls have `grace` to end and are then
    /// `cancelled`, and every tool is closed. Then the connections to other MCP servers are closed,
    /// and their programs end within a second. When this returns, the audit log that
    /// [`resources`](ToolcribBuilder::resources) opened is written. It is idempotent.
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
        if let Some(audit) = self.audit_file.clone() {
            // Fails only if the runtime is ending, too: then the log is written when it is dropped.
            let _ = tokio::task::spawn_blocking(move || audit.flush()).await;
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
