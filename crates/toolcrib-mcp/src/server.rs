//! The MCP server: an executor, what it says about itself, and what it remembers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolcrib_core::events::Listeners;
use toolcrib_core::{Executor, RegistryChanges, Turn, TurnOptions};
use toolcrib_tool::{Content, ContextValues, Layer, TaskMode, ToolDefinition, ToolResult};

use crate::call::tasks::{Keeping, TaskOptions, TaskStore, Tasks};
use crate::catalog::linked_resources::{GivenLinks, LINKS_OF_A_RESULT};
use crate::catalog::tool_list::{ToolList, ToolListCache, ToolLists};
use crate::catalog::{Catalog, Offer};
use crate::upstream::LinkedResources;

/// What an [`McpServer`] says about itself and attaches to calls.
#[derive(Debug, Clone)]
pub struct McpOptions {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
    turn: TurnOptions,
    pub(crate) catalog: Option<Catalog>,
    tasks: TaskOptions,
    task_store: Option<Arc<dyn TaskStore>>,
    page_size: usize,
    pub(crate) linked: Option<LinkedResources>,
}

impl Default for McpOptions {
    /// Name `toolcrib`, this crate's version, no instructions, no context values, calls that take long
    /// as tasks, lists in one page.
    fn default() -> Self {
        Self {
            name: "toolcrib".to_owned(),
            title: "toolcrib: guarded tools for agents".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: None,
            turn: TurnOptions::default(),
            catalog: None,
            tasks: TaskOptions::default(),
            task_store: None,
            page_size: 0,
            linked: None,
        }
    }
}

impl McpOptions {
    /// Sets the server's name, as programs know it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the server's name, as people read it.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets the server's version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets what clients may tell their model about using this server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the host's values that every call gets, for example `tenant`. No client can set or
    /// change them.
    #[must_use]
    pub fn values(mut self, values: ContextValues) -> Self {
        self.turn = self.turn.values(values);
        self
    }

    /// Sets the prompts and resources that clients are offered; those who are limited to a toolset get
    /// what it names. Default: none, and clients are told that there are none.
    #[must_use]
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }

    /// Sets which calls become tasks, and how long those are kept.
    #[must_use]
    pub fn tasks(mut self, tasks: TaskOptions) -> Self {
        self.tasks = tasks;
        self
    }

    /// Sets where tasks outlive the server. Default: nowhere; then they are forgotten with it.
    #[must_use]
    pub fn task_store(mut self, store: Arc<dyn TaskStore>) -> Self {
        self.task_store = Some(store);
        self
    }

    /// Sets how many entries a page of a list has at most; 0: all are in one page, as by default.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries;
        self
    }

    /// Sets how clients read what results link to, where it is another server's: a client may read what
    /// it was given a link to, for an hour. Default: they cannot.
    #[must_use]
    pub fn linked(mut self, linked: LinkedResources) -> Self {
        self.linked = Some(linked);
        self
    }

    /// Sets all that every request's turn is opened with: the host's values, services, and the
    /// toolset, beyond which clients see and call nothing. Replaces what [`values`](Self::values)
    /// has set.
    ///
    /// The client may approve calls only if [`TurnOptions::may_approve`] says so; an approver that
    /// the host has set does not give the client that right.
    #[must_use]
    pub fn turn(mut self, options: TurnOptions) -> Self {
        self.turn = options;
        self
    }
}

/// Serves an executor's tools to MCP clients. Cloning it is cheap; clones are one server.
#[derive(Clone)]
pub struct McpServer(Arc<Inner>);

struct Inner {
    executor: Executor,
    options: McpOptions,
    /// Of this server's client; the lists themselves are all clients'.
    tools: ToolListCache,
    lists: Arc<ToolLists>,
    tasks: Tasks,
    given_links: GivenLinks,
    /// What of the catalog the clients are offered, if anything.
    catalog: Option<Catalog>,
    closing: CancellationToken,
    /// Cancelled with `closing` at the latest.
    silent: CancellationToken,
    /// Whether it was closed because its client may not use it any more.
    revoked: AtomicBool,
}

impl McpServer {
    /// A server in front of `executor`. It opens nothing by itself.
    pub fn new(executor: Executor, options: McpOptions) -> Self {
        let closing = CancellationToken::new();
        let silent = closing.child_token();
        Self::with(executor, options, Arc::default(), closing, silent)
    }

    fn with(
        executor: Executor,
        mut options: McpOptions,
        lists: Arc<ToolLists>,
        closing: CancellationToken,
        silent: CancellationToken,
    ) -> Self {
        let may_approve = options.turn.grants_approval();
        options.turn = options.turn.may_approve(may_approve).joinable(true);
        let catalog = options.catalog.as_ref();
        let catalog = catalog.and_then(|catalog| match options.turn.own_toolset() {
            Some(toolset) => toolset.has_offers().then(|| catalog.within(toolset)),
            None => Some(catalog.clone()),
        });
        let keeping = options.task_store.clone().map(|store| {
            let owner = owner(&executor.turn(options.turn.clone()), &options.turn);
            Keeping { store, owner }
        });
        let tasks = Tasks::new(options.tasks.clone(), keeping);
        let tools = ToolListCache::default();
        let given_links = GivenLinks::default();
        Self(Arc::new(Inner {
            executor,
            options,
            tools,
            lists,
            tasks,
            given_links,
            catalog,
            closing,
            silent,
            revoked: AtomicBool::new(false),
        }))
    }

    /// The same server for another client: its requests' turns are opened with `turn`, and neither knows
    /// the other's tasks. Closing this server closes that of the client; closing the client's ends
    /// nothing else.
    #[must_use]
    pub fn for_client(&self, turn: TurnOptions) -> Self {
        let options = self.0.options.clone().turn(turn);
        let (closing, silent) = (self.0.closing.child_token(), self.0.silent.child_token());
        let lists = Arc::clone(&self.0.lists);
        Self::with(self.0.executor.clone(), options, lists, closing, silent)
    }

    /// [Closes](Self::close) the server because its client may not use it any more: calls that are at work
    /// are recorded as revoked. Servers that were made [for clients](Self::for_client) of this one are
    /// closed, and revoked by themselves only.
    pub fn revoke(&self) {
        self.0.revoked.store(true, Ordering::Release);
        self.close();
    }

    /// Whether it was closed because its client may not use it any more.
    pub(crate) fn is_revoked(&self) -> bool {
        self.0.revoked.load(Ordering::Acquire)
    }

    /// Ends every call and every connection that is being served, over every transport, at once.
    /// The server cannot be used afterwards. For an orderly end let the transport finish first.
    pub fn close(&self) {
        self.0.closing.cancel();
        self.0.silent.cancel();
    }

    /// Ends what only tells clients of changes, over HTTP: such a stream has no end of its own, and a
    /// listener that waits for its connections would wait for it. Calls go on, and are answered.
    pub fn end_streams(&self) {
        self.0.silent.cancel();
    }

    pub(crate) fn options(&self) -> &McpOptions {
        &self.0.options
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Cancelled once clients are told of no more changes.
    pub(crate) fn silent(&self) -> &CancellationToken {
        &self.0.silent
    }

    /// The tasks of this server's client.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    /// The links that this server's client was given.
    pub(crate) fn given_links(&self) -> &GivenLinks {
        &self.0.given_links
    }

    /// Notes what a result links to, where that can be read from the server whose tool it is of.
    pub(crate) fn note_links(&self, result: &ToolResult) {
        let Some(output) = result.output().filter(|_| self.0.options.linked.is_some()) else {
            return;
        };
        let mut links = output.content().iter().filter_map(|part| match part {
            Content::Link(link) => Some(link.uri.as_str()),
            _ => None,
        });
        // Most results link to nothing.
        let Some(first) = links.next() else { return };
        let snapshot = self.0.executor.registry().snapshot();
        let source = snapshot.get(result.tool()).map(|entry| &entry.source);
        if let Some(source) = source.filter(|source| source.layer == Layer::Upstream) {
            for uri in std::iter::once(first).chain(links).take(LINKS_OF_A_RESULT) {
                self.0.given_links.note(uri, result.tool(), &source.unit);
            }
        }
    }

    /// A part that does not come of a call, without what is secret here.
    pub(crate) fn masked(&self, part: Content) -> Content {
        self.0.executor.masked(part)
    }

    /// Bytes that do not come of a call, likewise, whether they are text or not.
    pub(crate) fn masked_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut mask, mut shown) = (self.0.executor.mask().byte_masks()(), Vec::new());
        mask(Some(bytes), &mut shown);
        mask(None, &mut shown);
        shown
    }

    /// Whether calls of a tool are tasks and nothing else.
    pub(crate) fn is_task_only(&self, turn: &Turn, name: &str) -> bool {
        let required = |known: &Arc<ToolDefinition>| known.task() == TaskMode::Required;
        self.tasks().options().are_offered() && turn.describe(name).is_some_and(required)
    }

    /// How many entries a page of a list has; 0: all.
    pub(crate) fn page_size(&self) -> usize {
        self.0.options.page_size
    }

    pub(crate) fn changes(&self) -> RegistryChanges {
        self.0.executor.registry().changes()
    }

    /// One request works on one turn, so that what is listed and what is called cannot differ.
    pub(crate) fn turn(&self) -> Turn {
        self.0.executor.turn(self.0.options.turn.clone())
    }

    /// As [`turn`](Self::turn), with somebody who is told of its calls.
    pub(crate) fn turn_heard_by(&self, listeners: Listeners) -> Turn {
        self.0.executor.turn(self.0.options.turn.clone().listeners(listeners))
    }

    /// What clients are offered beside tools, if they are: within a toolset only what it names.
    pub(crate) fn catalog(&self) -> Option<&Catalog> {
        self.0.catalog.as_ref()
    }

    /// What the catalog holds now.
    pub(crate) fn offer(&self) -> Option<Arc<Offer>> {
        self.catalog().map(Catalog::offer)
    }

    pub(crate) fn tools(&self, turn: &Turn) -> Arc<ToolList> {
        self.0.tools.get(turn, &self.0.lists, self.page_size())
    }
}

/// Whose tasks these are: an identity's, a client's and a toolset's. Nobody else finds them.
fn owner(turn: &Turn, options: &TurnOptions) -> String {
    let toolset = options.own_toolset().and_then(|toolset| serde_json::to_value(toolset).ok());
    json!([turn.identity(), options.own_client(), options.own_client_key(), toolset]).to_string()
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("options", &self.0.options).finish_non_exhaustive()
    }
}
