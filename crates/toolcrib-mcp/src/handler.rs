//! MCP's requests, each answered from one turn.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorCode,
    ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use toolcrib_wire::McpData;

use crate::McpServer;
use crate::connection::Connection;
use crate::telling::Changes;
use crate::{calls, offering, prompting, revision};

/// Keeps `rmcp`'s trait off the public type.
#[derive(Clone)]
pub(crate) struct Handler {
    server: McpServer,
    /// None where requests come each by itself.
    connection: Option<Arc<Connection>>,
}

impl Handler {
    /// For one connection or session, which ends with whoever holds it last.
    pub(crate) fn of_connection(server: McpServer, connection: Arc<Connection>) -> Self {
        Self { server, connection: Some(connection) }
    }

    /// For requests that come each by itself.
    pub(crate) fn of_requests(server: McpServer) -> Self {
        Self { server, connection: None }
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
        let mut info = ServerConfig::new(capabilities).with_server_info(identity);
        info.instructions.clone_from(&options.instructions);
        info
    }

    /// Clients with a handshake are told without asking, as long as they are there.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(connection) = &self.connection else { return };
        connection.standing.shook_hands(&context.peer);
        let Some(changes) = connection.changes() else { return };
        let ended = connection.ended();
        // Not kept alive by the task: it ends with the connection.
        let connection = Arc::downgrade(connection);
        let followed = move || connection.upgrade().map(|one| one.followed()).unwrap_or_default();
        let peer = context.peer;
        tokio::spawn(async move {
            tokio::select! {
                () = changes.tell(&peer, followed) => {}
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
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changes = Changes::of(&self.server);
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
        one_page(request.as_ref(), "tools")?;
        if let Some(connection) = &self.connection {
            connection.standing.heard(&context);
        }
        let tools = self.server.tools(&self.server.turn());
        Ok(tools.first_page(revision::takes(&context)))
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
            connection.standing.heard(&context);
        }
        calls::answer(&self.server, request, &context, connection).await
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

    // What is not declared is refused. The trait's defaults would answer with empty lists.

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("prompts"))?;
        one_page(request.as_ref(), "prompts")?;
        Ok(ListPromptsResult::with_all_items(offering::prompts(&offer)?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("prompts"))?;
        prompting::answer(&offer, request, &context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("resources"))?;
        one_page(request.as_ref(), "resources")?;
        Ok(ListResourcesResult::with_all_items(offering::resources(&offer, false)?))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("resource templates"))?;
        one_page(request.as_ref(), "resource templates")?;
        Ok(ListResourceTemplatesResult::with_all_items(offering::resources(&offer, true)?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let offer = self.server.offer().ok_or_else(|| not_offered("resources"))?;
        let read: ReadResourceResult = offering::read(&offer, &request.uri).await?;
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
        offering::suggestions(&offer, &request)
    }
}

/// Lists are one page here, so that there is no cursor to come back with.
fn one_page(request: Option<&PaginatedRequestParams>, what: &str) -> Result<(), ErrorData> {
    if request.is_none_or(|page| page.cursor.is_none()) {
        return Ok(());
    }
    let message = format!(
        "this cursor is not from this server, which lists all {what} in one page: leave `cursor` out"
    );
    Err(ErrorData::invalid_params(message, None))
}

/// The answer to a request for what this server does not declare.
fn not_offered(what: &str) -> ErrorData {
    let message = format!("this server has tools and no {what}: its capabilities say so");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}
