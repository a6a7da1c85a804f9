//! Handlers for MCP requests, each answered from one turn.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::collections::BTreeSet;
use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    TASKS_EXTENSION_ID, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;
use toolcrib_core::Turn;
use toolcrib_wire::McpData;

use crate::McpServer;
use crate::call;
use crate::catalog::Offer;
use crate::catalog::paging::{Page, page};
use crate::catalog::{linked_resources, outputs, prompts, requests};
use crate::notify::notifier::{RecordedChanges, SessionListener};
use crate::notify::subscriptions::Subscriptions;
use crate::session::connection::Connection;
use crate::session::http::session;
use crate::session::limits::SessionRegistry;
use crate::transport::revision;

/// Keeps `rmcp`'s trait off the public type.
pub(crate) struct Handler {
    server: McpServer,
    /// The client's connection; none if each request stands alone.
    connection: Option<Arc<Connection>>,
    /// The sessions that the connection belongs to, over HTTP.
    sessions: Option<Arc<SessionRegistry>>,
    subscriptions: Subscriptions,
}

impl Handler {
    /// Creates a handler for a single request.
    pub(crate) fn of_request(server: McpServer) -> Self {
        let subscriptions = Subscriptions::default();
        Self { server, connection: None, sessions: None, subscriptions }
    }

    /// Creates a handler for one connection, which ends when its last user is dropped.
    pub(crate) fn of_connection(server: McpServer, connection: Arc<Connection>) -> Self {
        Self { connection: Some(connection), ..Self::of_request(server) }
    }

    /// Creates a handler for one of several sessions; the handler ends with its session.
    pub(crate) fn of_session(server: McpServer, sessions: Arc<SessionRegistry>) -> Self {
        let connection = Arc::new(Connection::new(&server));
        Self { sessions: Some(sessions), ..Self::of_connection(server, connection) }
    }

    /// A page of a list that is sorted by `name`.
    fn page<'a, T>(
        &self,
        list: &'a [T],
        name: impl Fn(&T) -> &str,
        request: Option<&PaginatedRequestParams>,
        what: &str,
    ) -> Result<Page<'a, T>, ErrorData> {
        page(list, name, request, self.server.page_size(), what)
    }

    /// The resources of the catalog, if there is one. Fails if nothing can be read here: neither
    /// the catalog, nor outputs that were too long, nor linked resources.
    fn resources(&self) -> Result<(Arc<Offer>, Turn), ErrorData> {
        let turn = self.server.turn();
        match self.server.offer() {
            Some(offer) => Ok((offer, turn)),
            None if self.has_more_to_read(&turn) => Ok((Arc::default(), turn)),
            None => Err(not_offered("resources")),
        }
    }

    /// The prompts of the catalog, if there is one. Fails if neither the catalog nor an upstream can
    /// offer prompts here.
    fn prompts(&self) -> Result<Arc<Offer>, ErrorData> {
        match self.server.offer() {
            Some(offer) => Ok(offer),
            None if self.server.options().linked.is_some() => Ok(Arc::default()),
            None => Err(not_offered("prompts")),
        }
    }

    /// Whether results may name resources that are not listed.
    fn has_more_to_read(&self, turn: &Turn) -> bool {
        turn.keeps_outputs() || self.server.options().linked.is_some()
    }

    /// Masks an error, which may repeat what the client sent.
    fn masked(&self, error: ErrorData) -> ErrorData {
        let mask = self.server.mask();
        let message = mask.text(error.message.into_owned());
        ErrorData::new(error.code, message, error.data.map(|data| mask.value(data)))
    }

    /// The connection of a client that can subscribe to resources.
    fn follower(&self) -> Result<&Connection, ErrorData> {
        let connection = self.connection.as_deref().filter(|_| self.server.catalog().is_some());
        connection.ok_or_else(|| not_offered("resources to subscribe to"))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let options = self.server.options();
        let identity =
            Implementation::new(&options.name, &options.version).with_title(&options.title);
        let mut capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        if self.server.catalog().is_some() {
            let offered = ServerCapabilities::builder()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_resources()
                .enable_resources_list_changed()
                .enable_resources_subscribe()
                .enable_completions()
                .build();
            capabilities.prompts = offered.prompts;
            capabilities.resources = offered.resources;
            capabilities.completions = offered.completions;
        }
        if self.has_more_to_read(&self.server.turn()) {
            capabilities.resources.get_or_insert_default();
        }
        // Upstreams may offer resources and prompts at any time.
        if options.linked.is_some() {
            capabilities.resources.get_or_insert_default().list_changed = Some(true);
            capabilities.prompts.get_or_insert_default().list_changed = Some(true);
        }
        if self.server.tasks().options().are_offered() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        }
        let mut info = ServerConfig::new(capabilities).with_server_info(identity);
        info.instructions.clone_from(&options.instructions);
        info
    }

    /// Clients with a handshake are notified without a subscription while they are connected.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(connection) = &self.connection else { return };
        connection.client_state.handshake_completed(&context.peer);
        let listening = self.sessions.as_ref().and_then(|sessions| {
            let parts = context.extensions.get::<Parts>()?;
            sessions.handshake_completed(session(&parts.headers)?)
        });
        let Some(changes) = connection.changes() else { return };
        let ended = connection.ended();
        // The task holds no strong reference: it ends with the connection.
        let connection = Arc::downgrade(connection);
        let followed = move || connection.upgrade().map(|one| one.followed()).unwrap_or_default();
        let peer = context.peer;
        tokio::spawn(async move {
            let telling = async {
                match listening {
                    Some(listening) => {
                        changes.tell(&SessionListener { peer, listening }, followed).await;
                    }
                    None => changes.tell(&peer, followed).await,
                }
            };
            tokio::select! {
                () = telling => {}
                () = ended.cancelled() => {}
            }
        });
    }

    /// Clients of 2026-07-28 subscribe to notifications.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::builder().tools_list_changed().build();
        if self.server.catalog().is_some() || self.server.options().linked.is_some() {
            accepted.prompts_list_changed = Some(true);
            accepted.resources_list_changed = Some(true);
        }
        if self.server.catalog().is_some() {
            accepted.resource_subscriptions.clone_from(&requested.resource_subscriptions);
        }
        // Recorded now, not after the acknowledgement, so that no change in between is lost.
        self.subscriptions.note(RecordedChanges::of(&self.server));
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changes =
            self.subscriptions.noted().unwrap_or_else(|| RecordedChanges::of(&self.server));
        let uris = context.accepted().resource_subscriptions.iter().flatten();
        let followed: BTreeSet<String> = uris.cloned().collect();
        tokio::select! {
            () = changes.tell(context.sink(), || followed.clone()) => {}
            () = context.cancelled() => {}
            () = self.server.notifications_ended().cancelled() => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if let Some(connection) = &self.connection {
            connection.client_state.request_seen(&context);
        }
        let tools = self.server.tools(&self.server.turn());
        tools.page(revision::data_form(&context), request.as_ref())
    }

    /// HTTP requests of 2026-07-28 repeat some arguments in headers (`x-mcp-header`); they are
    /// checked against the schema found here.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let list = self.server.tools(&self.server.turn());
        list.find(name, McpData::Any).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let connection = self.connection.as_deref();
        if let Some(connection) = connection {
            connection.client_state.request_seen(&context);
        }
        let answered = call::answer(&self.server, request, &context, connection).await;
        answered.map_err(|error| self.masked(error))
    }

    /// Sets the lowest level of log messages that the client receives for the rest of the
    /// connection. Later revisions send the level with each request.
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match &self.connection {
            Some(connection) if !revision::has_input_required(&context) => {
                connection.set_level(request.level);
                Ok(())
            }
            _ => Err(not_offered("log levels that outlast a request")),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.server.tasks().get(&request.task_id).await.map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.tasks().update(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.tasks().cancel(&request.task_id).await
    }

    // Undeclared features are refused: the trait's defaults would answer with empty lists.

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (offer, of_upstreams) = (self.prompts()?, self.server.upstream_offers().prompts);
        let mut all: Vec<_> = offer.prompts.iter().collect();
        // Stable: the operator's own come first, and of equal names the first stays.
        all.extend(of_upstreams.iter().map(|one| &one.shown));
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|later, first| later.name == first.name);
        let page = self.page(&all, |prompt| &prompt.name, request.as_ref(), "prompts")?;
        let mut result = ListPromptsResult::with_all_items(requests::prompts(page.entries)?);
        result.next_cursor = page.next;
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let offer = self.prompts()?;
        let answer = prompts::answer(&self.server, &offer, request, &context);
        unless_cancelled(&context.ct, answer).await.map_err(|error| self.masked(error))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (offer, _) = self.resources()?;
        let (of_upstreams, request) = (self.server.upstream_offers().resources, request.as_ref());
        let mut all = offer.resources_at(false);
        // Stable: the operator's own come first, and of equal addresses the first stays.
        all.extend(of_upstreams.iter().map(|one| &one.shown));
        all.sort_by(|one, other| one.address.as_str().cmp(other.address.as_str()));
        all.dedup_by(|one, other| one.address.as_str() == other.address.as_str());
        let page = self.page(&all, |one| one.address.as_str(), request, "resources")?;
        let mut result = ListResourcesResult::with_all_items(requests::resources(page.entries)?);
        result.next_cursor = page.next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (offer, turn) = self.resources()?;
        let mut all = offer.resources_at(true);
        if turn.keeps_outputs() {
            all.extend(outputs::TEMPLATES.iter());
        }
        let of_upstreams = self.server.upstream_offers().templates;
        all.extend(of_upstreams.iter().map(|one| &one.shown));
        all.sort_by(|one, other| one.address.as_str().cmp(other.address.as_str()));
        all.dedup_by(|later, first| later.address == first.address);
        let request = request.as_ref();
        let page = self.page(&all, |one| one.address.as_str(), request, "resource templates")?;
        let entries = requests::resources(page.entries)?;
        let mut result = ListResourceTemplatesResult::with_all_items(entries);
        result.next_cursor = page.next;
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (offer, turn) = self.resources()?;
        if let Some(read) = outputs::read::<ReadResourceResult>(&turn, &request.uri).await {
            return Ok(read.map_err(|error| self.masked(error))?.into());
        }
        // The operator's own resources come before linked ones.
        let read = async {
            if offer.resource(&request.uri).is_none()
                && let Some(read) = linked_resources::read(&self.server, &turn, &request.uri).await
            {
                return read;
            }
            requests::read::<ReadResourceResult>(&self.server, &offer, &request.uri).await
        };
        let read = unless_cancelled(&context.ct, read).await;
        Ok(read.map_err(|error| self.masked(error))?.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let connection = self.follower()?;
        if connection.follow(request.uri) {
            return Ok(());
        }
        Err(ErrorData::invalid_params(
            "this client is subscribed to too many resources: unsubscribe from some first",
            None,
        ))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.follower()?.unfollow(&request.uri);
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("completions"))?;
        requests::suggestions(&offer, &request).map_err(|error| self.masked(error))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None);
        Err(self.masked(unknown))
    }
}

/// Does the work of a request until the client cancels it: then the work is dropped, and with it what was
/// asked of other servers.
async fn unless_cancelled<T>(
    cancelled: &CancellationToken,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    tokio::select! {
        biased;
        () = cancelled.cancelled() => {
            Err(ErrorData::internal_error("the request was cancelled", None))
        }
        answer = work => answer,
    }
}

/// The error for a feature that this server does not declare.
fn not_offered(what: &str) -> ErrorData {
    let message = format!("this server offers tools but no {what}, as its capabilities say");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}
