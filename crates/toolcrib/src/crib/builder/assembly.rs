//! Builds a crib from the builder's settings.

use std::sync::{Arc, RwLock};

use toolcrib_core::events::EventBus;
use toolcrib_core::meta::meta_entries;
use toolcrib_core::spill::{MemorySpill, READ_OUTPUT, SpillLimits, SpillStore, read_output_entry};
use toolcrib_core::{Executor, ExecutorBuilder, Registration, Registry, RegistryBuilder};
#[cfg(feature = "mcp")]
use toolcrib_mcp::upstream::{MemoryPins, PinStore, Review, Upstream, Upstreams};
#[cfg(feature = "manifests")]
use toolcrib_runners::RunnerHost;
#[cfg(not(feature = "builtins"))]
use toolcrib_tool::native_tools;
use toolcrib_tool::{Layer, ToolEntry};

use super::{Outputs, ToolcribBuilder};
#[cfg(feature = "manifests")]
use crate::control_plane::ControlPlaneKeeper;
#[cfg(feature = "builtins")]
use crate::crib::offered_builtins::OfferedBuiltins;
#[cfg(feature = "crawler")]
use crate::crib::offered_web::OfferedWeb;
use crate::crib::refreshing::Refreshing;
use crate::crib::{BuildError, Toolcrib};
#[cfg(all(feature = "manifests", feature = "mcp"))]
use crate::manifests::lock::LockKeeper;
#[cfg(all(feature = "manifests", feature = "mcp"))]
use crate::manifests::names::Names;
#[cfg(feature = "manifests")]
use crate::manifests::{Manifests, Reloader};
#[cfg(all(unix, feature = "manifests"))]
use crate::settings::reload::LiveConfig;
#[cfg(feature = "mcp")]
use crate::upstreams::{Connections, DeclaredUpstreams};

/// The number of events that the crib's own bus keeps for its slowest subscriber.
const EVENTS: usize = 1_024;

impl ToolcribBuilder {
    /// Resolves every name and builds the executor.
    pub fn build(self) -> Result<Toolcrib, BuildError> {
        if let Some(refused) = self.refused {
            return Err(refused.into());
        }
        #[cfg(feature = "manifests")]
        let keeper = self.keeper();
        #[cfg(feature = "builtins")]
        let offered = self.offered(
            #[cfg(feature = "manifests")]
            &keeper,
        );
        let mut registry = RegistryBuilder::new().allow_override(self.allow_override);
        let host_reads = self.entries.iter().any(reads_outputs);
        let spill = self.outputs.store(host_reads);
        // It comes before linked-in tools, because truncated outputs name this tool.
        let mut entries = core_entries(spill.as_ref().filter(|_| !host_reads), self.meta);
        if self.native {
            #[cfg(feature = "builtins")]
            entries.extend(offered.all(self.enabled_builtins.as_deref())?);
            #[cfg(not(feature = "builtins"))]
            add_native(&mut entries)?;
        }
        entries.extend(self.entries);
        #[cfg(feature = "manifests")]
        if let Some(lock) = &self.lock {
            entries = lock.admit(entries)?;
        }
        register(&mut registry, entries)?;
        #[cfg(feature = "manifests")]
        if let Some(manifests) = &self.manifests {
            manifests.declare(&mut registry, self.lock.as_ref(), &keeper)?;
        }
        let snapshot = registry.build();
        self.on_duplicate.check(&snapshot)?;
        let registry = Registry::new(snapshot).on_duplicate(self.on_duplicate);

        let (executor, refreshing) = executor(self.executor.registry(registry), spill, self.events);
        #[cfg(feature = "mcp")]
        let wanted = declared_upstreams(
            self.upstreams,
            #[cfg(feature = "manifests")]
            &keeper,
        );
        #[cfg(all(feature = "manifests", feature = "mcp"))]
        let names = declared_names(&wanted, self.manifests.as_ref(), self.lock.as_ref());
        Ok(Toolcrib {
            #[cfg(all(feature = "manifests", feature = "mcp"))]
            names: names.clone(),
            #[cfg(feature = "manifests")]
            manifests: self.manifests.map(|manifests| {
                Reloader::new(
                    &manifests,
                    &executor,
                    self.lock.clone(),
                    keeper.clone(),
                    #[cfg(feature = "mcp")]
                    names,
                )
            }),
            #[cfg(feature = "mcp")]
            connections: {
                #[cfg(feature = "manifests")]
                let review = self.lock.clone().map(|lock| lock as Arc<dyn Review>);
                #[cfg(not(feature = "manifests"))]
                let review = None;
                Connections::new(upstreams(executor.clone(), self.pins, review), wanted)
            },
            executor,
            refreshing,
            context: self.context,
            #[cfg(feature = "builtins")]
            services: offered.lend(self.services),
            #[cfg(feature = "builtins")]
            offered_builtins: offered,
            #[cfg(not(feature = "builtins"))]
            services: self.services,
            toolsets: Arc::new(RwLock::new(self.toolsets)),
            #[cfg(all(unix, feature = "manifests"))]
            live_config: LiveConfig::default(),
            runs: self.runs,
            #[cfg(feature = "agent")]
            agents: self.agents,
            #[cfg(feature = "http")]
            answers: self.answers,
            #[cfg(feature = "mcp")]
            tasks: self.tasks,
            #[cfg(feature = "http")]
            mcp_sessions: self.mcp_sessions.map(toolcrib_mcp::McpSessions::of_at_most),
            #[cfg(feature = "manifests")]
            secrets: self.secrets,
            #[cfg(feature = "manifests")]
            keeper,
            #[cfg(feature = "manifests")]
            lock: self.lock,
            #[cfg(unix)]
            audit_sinks: self.audit_sinks,
            #[cfg(feature = "store")]
            database: self.database,
        })
    }
}

/// The host's upstreams, none of whose programs can write what decides about them.
#[cfg(feature = "mcp")]
fn declared_upstreams(
    upstreams: Vec<Upstream>,
    #[cfg(feature = "manifests")] keeper: &ControlPlaneKeeper,
) -> DeclaredUpstreams {
    let own = upstreams.into_iter();
    #[cfg(feature = "manifests")]
    let own = own.map(|own| own.control_plane(keeper.plane()));
    DeclaredUpstreams::new(own.collect())
}

#[cfg(feature = "builtins")]
impl ToolcribBuilder {
    /// The built-in tools with their settings.
    fn offered(
        &self,
        #[cfg(feature = "manifests")] keeper: &ControlPlaneKeeper,
    ) -> OfferedBuiltins {
        let builtins = self.lending_builtins();
        #[cfg(feature = "manifests")]
        let builtins = builtins.control_plane(keeper.plane());
        OfferedBuiltins {
            builtins,
            #[cfg(feature = "crawler")]
            web: OfferedWeb::new(self.web.clone(), &self.secrets),
            native: self.native,
        }
    }
}

/// The names of other MCP servers, prompts and resources that files declare.
#[cfg(all(feature = "manifests", feature = "mcp"))]
fn declared_names(
    wanted: &DeclaredUpstreams,
    manifests: Option<&Manifests>,
    lock: Option<&Arc<LockKeeper>>,
) -> Names {
    let names = Names::new(wanted.clone());
    if let Some(manifests) = manifests {
        names.load(manifests.files(), &manifests.host(lock), lock.map(Arc::as_ref));
    }
    names
}

/// The core's own tools: the reader of truncated outputs, and the meta-tools.
fn core_entries(outputs: Option<&Arc<dyn SpillStore>>, meta: bool) -> Vec<ToolEntry> {
    let reader = outputs.map(|store| read_output_entry(Arc::clone(store)));
    reader.into_iter().chain(meta.then(meta_entries).into_iter().flatten()).collect()
}

/// The executor, and the task that refreshes its tools.
fn executor(
    mut executor: ExecutorBuilder,
    spill: Option<Arc<dyn SpillStore>>,
    events: Option<EventBus>,
) -> (Executor, Arc<Refreshing>) {
    if let Some(store) = spill {
        executor = executor.spill(store);
    }
    let executor = executor.events(events.unwrap_or_else(|| EventBus::new(EVENTS))).build();
    let refreshing = Arc::<Refreshing>::default();
    refreshing.start(&executor);
    (executor, refreshing)
}

impl Outputs {
    /// The spill store. A host's own tool for reading outputs would not know the default store.
    fn store(self, host_reads: bool) -> Option<Arc<dyn SpillStore>> {
        match self {
            Self::Memory if host_reads => None,
            Self::Memory => Some(Arc::new(MemorySpill::new(SpillLimits::default()))),
            Self::Store(store) => Some(store),
            Self::Nowhere => None,
        }
    }
}

/// Whether it is the host's own tool for reading outputs.
fn reads_outputs(entry: &ToolEntry) -> bool {
    entry.source.layer == Layer::Host && entry.name() == READ_OUTPUT
}

/// Adds the linked-in tools.
#[cfg(not(feature = "builtins"))]
fn add_native(entries: &mut Vec<ToolEntry>) -> Result<(), BuildError> {
    for tool in native_tools() {
        entries.push(tool.entry()?);
    }
    Ok(())
}

/// Registers entries in order. The snapshot lists name conflicts, because only it knows the final owners.
fn register(registry: &mut RegistryBuilder, entries: Vec<ToolEntry>) -> Result<(), BuildError> {
    for entry in entries {
        if let Registration::Refused { reason } = registry.register(entry) {
            return Err(BuildError::Refused { reason });
        }
    }
    Ok(())
}

#[cfg(feature = "builtins")]
impl ToolcribBuilder {
    /// The built-in tools with what they need of the builder's other settings.
    fn lending_builtins(&self) -> toolcrib_builtins::Builtins {
        let builtins = self.builtins.clone();
        #[cfg(feature = "databases")]
        let builtins = crate::settings::lend_secrets(builtins, &self.secrets);
        builtins
    }
}

#[cfg(feature = "manifests")]
impl ToolcribBuilder {
    /// The control plane, which must be set before any manifest is accepted.
    fn keeper(&self) -> ControlPlaneKeeper {
        let host = match &self.manifests {
            Some(manifests) => manifests.host(self.lock.as_ref()),
            None => RunnerHost::new("."),
        };
        #[cfg_attr(
            not(feature = "builtins"),
            expect(unused_mut, reason = "only the built-in tools have projects")
        )]
        let mut roots = self.working_folders.clone();
        #[cfg(feature = "builtins")]
        if let Some(projects) = self.builtins.lent_projects() {
            roots.extend(projects.roots().map(std::path::Path::to_owned));
        }
        let mut own = self.own_places.clone();
        // Everyone who can write there can declare tools.
        let declared = self.manifests.iter().flat_map(Manifests::paths);
        own.read_only.extend(declared.clone().cloned());
        own.guarded.extend(declared.clone().cloned());
        own.manifest_folders.extend(declared.cloned());
        host.secrets.set_control_plane(&host.control_plane);
        ControlPlaneKeeper::new(&host, own, roots)
    }
}

/// Nothing is connected yet; `review` knows which definitions may be called.
#[cfg(feature = "mcp")]
fn upstreams(
    executor: toolcrib_core::Executor,
    pins: Option<Arc<dyn PinStore>>,
    review: Option<Arc<dyn Review>>,
) -> Upstreams {
    let pins = pins.unwrap_or_else(|| Arc::new(MemoryPins::default()));
    match review {
        Some(review) => Upstreams::reviewed(executor, pins, review),
        None => Upstreams::new(executor, pins),
    }
}
