//! MCP's requests, each answered from one turn.
#![expect(deprecated, reason = "older revisions have log levels, and clients that set them")]

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorCode,
    ErrorData, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use toolcrib_wire::McpData;

use crate::McpServer;
use crate::calls;
use crate::connection::Connection;
use crate::list_changes::ListChanges;
use crate::revision;

/// Keeps `rmcp`'s trait off the public type.
#[derive(Clone)]
pub(crate) struct Handler {
    server: McpServer,
    /// None where requests come each by itself.
    connection: Option<Arc<Connection>>,
}

impl Handler {
    /// For one connection or session, which ends with the last clone.
    pub(crate) fn of_connection(server: McpServer) -> Self {
        let connection = Connection::new(server.closing());
        Self { server, connection: Some(Arc::new(connection)) }
    }

    /// For requests that come each by itself.
    pub(crate) fn of_requests(server: McpServer) -> Self {
        Self { server, connection: None }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let options = self.server.options();
        let identity =
            Implementation::new(&options.name, &options.version).with_title(&options.title);
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut info = ServerConfig::new(capabilities).with_server_info(identity);
        info.instructions.clone_from(&options.instructions);
        info
    }

    /// Clients with a handshake are told without asking, as long as they are there.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(ended) = self.connection.as_ref().map(|connection| connection.ended()) else {
            return;
        };
        let (server, peer) = (self.server.clone(), context.peer);
        tokio::spawn(async move {
            let mut changes = ListChanges::new(&server);
            let tell = async {
                while changes.next().await {
                    if peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = tell => {}
                () = ended.cancelled() => {}
            }
        });
    }

    /// Clients of 2026-07-28 ask to be told.
    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = ListChanges::new(&self.server);
        let tell = async {
            while changes.next().await {
                if context.sink().notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = tell => {}
            () = context.cancelled() => {}
            () = self.server.closing().cancelled() => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params(
                "this cursor is not from this server, which lists all tools in one page: \
                 leave `cursor` out",
                None,
            ));
        }
        let tools = self.server.tools(&self.server.turn());
        Ok(ListToolsResult::with_all_items(tools.tools(revision::takes(&context)).to_vec()))
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
        let level = self.connection.as_ref().and_then(|connection| connection.level());
        calls::answer(&self.server, request, &context, level).await
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
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(not_offered("prompts"))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(not_offered("resources"))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(not_offered("resource templates"))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(not_offered("completions"))
    }
}

/// The answer to a request for what this server does not declare.
fn not_offered(what: &str) -> ErrorData {
    let message = format!("this server has tools and no {what}: its capabilities say so");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}
