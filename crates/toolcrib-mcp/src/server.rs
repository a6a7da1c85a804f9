//! The MCP server: an executor, its description, and the state it keeps for clients.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolcrib_core::events::Listeners;
use toolcrib_core::masking::LiveMask;
use toolcrib_core::{Executor, RegistryChanges, Turn, TurnOptions};
use toolcrib_tool::{Content, ContextValues, Layer, TaskMode, ToolDefinition, ToolResult};

use crate::call::tasks::{TaskOptions, TaskPersistence, TaskStore, Tasks};
use crate::catalog::linked_resources::{GivenLinks, LINKS_OF_A_RESULT};
use crate::catalog::tool_list::{ToolList, ToolListCache, ToolLists};
use crate::catalog::{Catalog, Offer};
use crate::upstream::{LinkedResources, UpstreamOffers};

/// The server's description, and the options of its calls.
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
    /// Name `toolcrib`, this crate's version, no instructions, no context values, long calls as
    /// tasks, lists on one page.
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
    /// Sets the server's name for programs.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the server's name for people.
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

    /// Sets the instructions that clients may pass to their model.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets context values that every call gets, for example `tenant`. No client can set or change
    /// them.
    #[must_use]
    pub fn values(mut self, values: ContextValues) -> Self {
        self.turn = self.turn.values(values);
        self
    }

    /// Sets the prompts and resources that clients are offered. Clients that are limited to a
    /// toolset get those that it names. Default: none, and the server does not declare these
    /// features.
    #[must_use]
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(catalog);
        self
    }

    /// Sets which calls become tasks, and how long tasks are kept.
    #[must_use]
    pub fn tasks(mut self, tasks: TaskOptions) -> Self {
        self.tasks = tasks;
        self
    }

    /// Sets the store in which tasks survive a restart. Default: none; tasks are lost when the
    /// server ends.
    #[must_use]
    pub fn task_store(mut self, store: Arc<dyn TaskStore>) -> Self {
        self.task_store = Some(store);
        self
    }

    /// Sets the largest number of entries on a page of a list; 0, the default, puts all entries on
    /// one page.
    #[must_use]
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries;
        self
    }

    /// Sets the reader for resources and prompts of other servers: a client is offered those that the
    /// upstreams offer, and may read a resource for an hour after it was given a link to it. Default:
    /// none; nothing of other servers but their tools can be used.
    #[must_use]
    pub fn linked(mut self, linked: LinkedResources) -> Self {
        self.linked = Some(linked);
        self
    }

    /// Sets the options of every request's turn: context values, services, and the toolset that
    /// clients are limited to. Replaces what [`values`](Self::values) has set.
    ///
    /// The client may approve calls only if [`TurnOptions::may_approve`] says so; an approver that
    /// the host has set does not grant that right.
    #[must_use]
    pub fn turn(mut self, options: TurnOptions) -> Self {
        self.turn = options;
        self
    }
}

/// Serves an executor's tools to MCP clients. Clones are cheap and share one server.
#[derive(Clone)]
pub struct McpServer(Arc<Inner>);

struct Inner {
    executor: Executor,
    options: McpOptions,
    /// The list cache of this server's client; the lists themselves are shared by all clients.
    tools: ToolListCache,
    lists: Arc<ToolLists>,
    tasks: Tasks,
    given_links: GivenLinks,
    /// The part of the catalog that clients are offered, if any.
    catalog: Option<Catalog>,
    closing: CancellationToken,
    /// Cancelled together with `closing` or earlier.
    notifications_ended: CancellationToken,
    /// Whether it was closed because its client's access was revoked.
    revoked: AtomicBool,
}

impl McpServer {
    /// Creates a server for `executor`. It opens no connection itself.
    pub fn new(executor: Executor, options: McpOptions) -> Self {
        let closing = CancellationToken::new();
        let notifications_ended = closing.child_token();
        Self::with(executor, options, Arc::default(), closing, notifications_ended)
    }

    fn with(
        executor: Executor,
        mut options: McpOptions,
        lists: Arc<ToolLists>,
        closing: CancellationToken,
        notifications_ended: CancellationToken,
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
            TaskPersistence { store, owner }
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
            notifications_ended,
            revoked: AtomicBool::new(false),
        }))
    }

    /// Creates a server for another client: its turns are opened with `turn`, and the two clients
    /// do not see each other's tasks. Closing this server also closes that one; closing that one
    /// closes nothing else.
    #[must_use]
    pub fn for_client(&self, turn: TurnOptions) -> Self {
        let options = self.0.options.clone().turn(turn);
        let (closing, notifications_ended) =
            (self.0.closing.child_token(), self.0.notifications_ended.child_token());
        let lists = Arc::clone(&self.0.lists);
        Self::with(self.0.executor.clone(), options, lists, closing, notifications_ended)
    }

    /// [Closes](Self::close) the server because its client's access was revoked: running calls are
    /// recorded as revoked. Servers made [for clients](Self::for_client) of this one are closed but
    /// not marked as revoked.
    pub fn revoke(&self) {
        self.0.revoked.store(true, Ordering::Release);
        self.close();
    }

    /// Whether it was closed because its client's access was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        self.0.revoked.load(Ordering::Acquire)
    }

    /// Ends every call and every connection at once, over every transport. The server cannot be
    /// used afterwards. For an orderly shutdown, let the transport finish first.
    pub fn close(&self) {
        self.0.closing.cancel();
        self.0.notifications_ended.cancel();
    }

    /// Ends the HTTP streams that only carry notifications: they have no end of their own, and a
    /// listener that drains its connections would wait for them. Calls continue and are answered.
    pub fn end_streams(&self) {
        self.0.notifications_ended.cancel();
    }

    /// What upstreams offer this server's client besides tools.
    pub(crate) fn upstream_offers(&self) -> UpstreamOffers {
        let Some(linked) = &self.0.options.linked else { return UpstreamOffers::default() };
        let mut offers = linked.offers();
        if let Some(toolset) = self.0.options.turn.own_toolset() {
            offers.resources.retain(|one| toolset.allows_resource(one.address()));
            offers.templates.retain(|one| toolset.allows_resource(one.address()));
            offers.prompts.retain(|one| toolset.allows_prompt(&one.shown.name));
        }
        offers
    }

    pub(crate) fn options(&self) -> &McpOptions {
        &self.0.options
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }

    /// Cancelled when clients receive no more notifications.
    pub(crate) fn notifications_ended(&self) -> &CancellationToken {
        &self.0.notifications_ended
    }

    /// The tasks of this server's client.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    /// The links that this server's client was given.
    pub(crate) fn given_links(&self) -> &GivenLinks {
        &self.0.given_links
    }

    /// Records the links in a result, if they can be read from the server that the tool belongs to.
    pub(crate) fn note_links(&self, result: &ToolResult) {
        let Some(output) = result.output().filter(|_| self.0.options.linked.is_some()) else {
            return;
        };
        let mut links = output.content().iter().filter_map(|part| match part {
            Content::Link(link) => Some(link.uri.as_str()),
            _ => None,
        });
        // Most results contain no links.
        let Some(first) = links.next() else { return };
        let snapshot = self.0.executor.registry().snapshot();
        let source = snapshot.get(result.tool()).map(|entry| &entry.source);
        if let Some(source) = source.filter(|source| source.layer == Layer::Upstream) {
            for uri in std::iter::once(first).chain(links).take(LINKS_OF_A_RESULT) {
                self.0.given_links.note(uri, result.tool(), &source.unit);
            }
        }
    }

    /// Masks secrets in a part that does not come from a call.
    pub(crate) fn masked(&self, part: Content) -> Content {
        self.0.executor.masked(part)
    }

    /// The mask for texts that do not come from a call.
    pub(crate) fn mask(&self) -> LiveMask {
        self.0.executor.mask()
    }

    /// Masks secrets in bytes that do not come from a call, whether they are text or not.
    pub(crate) fn masked_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut mask, mut shown) = (self.0.executor.mask().byte_masks()(), Vec::new());
        mask(Some(bytes), &mut shown);
        mask(None, &mut shown);
        shown
    }

    /// Whether calls of a tool always become tasks.
    pub(crate) fn is_task_only(&self, turn: &Turn, name: &str) -> bool {
        let required = |known: &Arc<ToolDefinition>| known.task() == TaskMode::Required;
        self.tasks().options().are_offered() && turn.describe(name).is_some_and(required)
    }

    /// The number of entries on a page of a list; 0 for all.
    pub(crate) fn page_size(&self) -> usize {
        self.0.options.page_size
    }

    pub(crate) fn changes(&self) -> RegistryChanges {
        self.0.executor.registry().changes()
    }

    /// Opens a turn. A request uses one turn, so that listing and calling cannot differ.
    pub(crate) fn turn(&self) -> Turn {
        self.0.executor.turn(self.0.options.turn.clone())
    }

    /// Like [`turn`](Self::turn), with listeners for the events of its calls.
    pub(crate) fn turn_heard_by(&self, listeners: Listeners) -> Turn {
        self.0.executor.turn(self.0.options.turn.clone().listeners(listeners))
    }

    /// The catalog that clients are offered, if any; within a toolset, only what it names.
    pub(crate) fn catalog(&self) -> Option<&Catalog> {
        self.0.catalog.as_ref()
    }

    /// The current content of the catalog.
    pub(crate) fn offer(&self) -> Option<Arc<Offer>> {
        self.catalog().map(Catalog::offer)
    }

    pub(crate) fn tools(&self, turn: &Turn) -> Arc<ToolList> {
        self.0.tools.get(turn, &self.0.lists, self.page_size())
    }
}

/// Identifies the owner of tasks: an identity, a client and a toolset. Nobody else finds them.
fn owner(turn: &Turn, options: &TurnOptions) -> String {
    let toolset = options.own_toolset().and_then(|toolset| serde_json::to_value(toolset).ok());
    json!([turn.identity(), options.own_client(), options.own_client_key(), toolset]).to_string()
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("options", &self.0.options).finish_non_exhaustive()
    }
}
