//! MCP's requests, each answered from one turn.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::collections::BTreeSet;
use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, TASKS_EXTENSION_ID, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use toolcrib_core::Turn;
use toolcrib_wire::McpData;

use crate::McpServer;
use crate::call;
use crate::catalog::Offer;
use crate::catalog::paging::{Page, page};
use crate::catalog::{linked_resources, outputs, prompts, requests};
use crate::notify::notifier::{Changes, OfSession};
use crate::notify::subscriptions::Subscriptions;
use crate::session::connection::Connection;
use crate::session::http::session;
use crate::session::registry::KnownSessions;
use crate::transport::revision;

/// Keeps `rmcp`'s trait off the public type.
pub(crate) struct Handler {
    server: McpServer,
    /// None where requests come each by itself.
    connection: Option<Arc<Connection>>,
    /// Those that the connection is one of, over HTTP.
    sessions: Option<Arc<KnownSessions>>,
    subscriptions: Subscriptions,
}

impl Handler {
    /// For a request that comes by itself.
    pub(crate) fn of_request(server: McpServer) -> Self {
        let subscriptions = Subscriptions::default();
        Self { server, connection: None, sessions: None, subscriptions }
    }

    /// For one connection, which ends with whoever holds it last.
    pub(crate) fn of_connection(server: McpServer, connection: Arc<Connection>) -> Self {
        Self { connection: Some(connection), ..Self::of_request(server) }
    }

    /// For one of several sessions, which ends with it.
    pub(crate) fn of_session(server: McpServer, sessions: Arc<KnownSessions>) -> Self {
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

    /// What there is to read, if anything is offered: the catalog's; outputs that were too long; what
    /// results link to.
    fn resources(&self) -> Result<(Arc<Offer>, Turn), ErrorData> {
        let turn = self.server.turn();
        match self.server.offer() {
            Some(offer) => Ok((offer, turn)),
            None if self.has_more_to_read(&turn) => Ok((Arc::default(), turn)),
            None => Err(not_offered("resources")),
        }
    }

    /// Whether results may name what can be read and is not listed.
    fn has_more_to_read(&self, turn: &Turn) -> bool {
        turn.keeps_outputs() || self.server.options().linked.is_some()
    }

    /// The connection of a client that can follow resources.
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
        if self.server.tasks().options().are_offered() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        }
        let mut info = ServerConfig::new(capabilities).with_server_info(identity);
        info.instructions.clone_from(&options.instructions);
        info
    }

    /// Clients with a handshake are told without asking, as long as they are there.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(connection) = &self.connection else { return };
        connection.client_state.shook_hands(&context.peer);
        let listening = self.sessions.as_ref().and_then(|sessions| {
            let parts = context.extensions.get::<Parts>()?;
            sessions.shook_hands(session(&parts.headers)?)
        });
        let Some(changes) = connection.changes() else { return };
        let ended = connection.ended();
        // Not kept alive by the task: it ends with the connection.
        let connection = Arc::downgrade(connection);
        let followed = move || connection.upgrade().map(|one| one.followed()).unwrap_or_default();
        let peer = context.peer;
        tokio::spawn(async move {
            let telling = async {
                match listening {
                    Some(listening) => changes.tell(&OfSession { peer, listening }, followed).await,
                    None => changes.tell(&peer, followed).await,
                }
            };
            tokio::select! {
                () = telling => {}
                () = ended.cancelled() => {}
            }
        });
    }

    /// Clients of 2026-07-28 ask to be told.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::builder().tools_list_changed().build();
        if self.server.catalog().is_some() {
            accepted.prompts_list_changed = Some(true);
            accepted.resources_list_changed = Some(true);
            accepted.resource_subscriptions.clone_from(&requested.resource_subscriptions);
        }
        // Now, and not once it was told that it is heard: what changes in between must not be lost.
        self.subscriptions.note(Changes::of(&self.server));
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changes = self.subscriptions.noted().unwrap_or_else(|| Changes::of(&self.server));
        let uris = context.accepted().resource_subscriptions.iter().flatten();
        let followed: BTreeSet<String> = uris.cloned().collect();
        tokio::select! {
            () = changes.tell(context.sink(), || followed.clone()) => {}
            () = context.cancelled() => {}
            () = self.server.silent().cancelled() => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if let Some(connection) = &self.connection {
            connection.client_state.heard(&context);
        }
        let tools = self.server.tools(&self.server.turn());
        tools.page(revision::takes(&context), request.as_ref())
    }

    /// HTTP requests of 2026-07-28 repeat some arguments in headers (`x-mcp-header`); the schema
    /// found here is what they are checked against.
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
            connection.client_state.heard(&context);
        }
        call::answer(&self.server, request, &context, connection).await
    }

    /// What a client is told of its calls from then on, as long as the connection lasts. Later
    /// revisions say it with each request.
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

    // What is not declared is refused. The trait's defaults would answer with empty lists.

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("prompts"))?;
        let page = self.page(&offer.prompts, |prompt| &prompt.name, request.as_ref(), "prompts")?;
        let mut result = ListPromptsResult::with_all_items(requests::prompts(page.entries)?);
        result.next_cursor = page.next;
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("prompts"))?;
        prompts::answer(&self.server, &offer, request, &context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (offer, _) = self.resources()?;
        let (all, request) = (offer.resources_at(false), request.as_ref());
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
            all.sort_by(|one, other| one.address.as_str().cmp(other.address.as_str()));
        }
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
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (offer, turn) = self.resources()?;
        if let Some(read) = outputs::read::<ReadResourceResult>(&turn, &request.uri).await {
            return Ok(read?.into());
        }
        // What the operator offers comes before what others link to.
        let read: ReadResourceResult = if offer.resource(&request.uri).is_none()
            && let Some(read) = linked_resources::read(&self.server, &turn, &request.uri).await
        {
            read?
        } else {
            requests::read(&self.server, &offer, &request.uri).await?
        };
        Ok(read.into())
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
        Err(ErrorData::invalid_params("this client follows too many resources: unsubscribe", None))
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
        requests::suggestions(&offer, &request)
    }
}

/// The answer to a request for what this server does not declare.
fn not_offered(what: &str) -> ErrorData {
    let message = format!("this server has tools and no {what}: its capabilities say so");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}
