//! The peer: rmcp's `ToolRouter` with the same tools, called without a transport.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::handler::server::router::tool::{IntoToolRoute, ToolRoute, ToolRouter};
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, JsonObject, NumberOrString, Tool, object,
};
use rmcp::service::{Peer, RequestContext, RoleServer, RunningService, serve_directly};
use tokio::runtime::Runtime;
use toolcrib_testkit::search_tool::{self, Schemas, SearchArguments};

/// A server that does nothing by itself: rmcp hands it to every tool.
#[derive(Debug, Clone)]
pub(crate) struct Server;

impl ServerHandler for Server {}

/// The definition of the tool of that number.
pub(crate) fn definition(number: usize, schemas: Schemas, shared: &Arc<JsonObject>) -> Tool {
    let schema = match schemas {
        Schemas::Shared => Arc::clone(shared),
        Schemas::Distinct => Arc::new(object(schemas.schema(number))),
    };
    Tool::new(
        search_tool::name(number),
        "Search the files of a folder for names or content. Read-only.",
        schema,
    )
}

/// The tool with its body, which answers with the path it was given.
pub(crate) fn route<S: Send + Sync + 'static>(tool: Tool) -> ToolRoute<S> {
    let body = |Parameters(args): Parameters<SearchArguments>| std::future::ready(args.path);
    (tool, body).into_tool_route()
}

/// A router of `count` tools.
pub fn router<S: Send + Sync + 'static>(count: usize, schemas: Schemas) -> ToolRouter<S> {
    let shared = Arc::new(object(search_tool::schema()));
    let mut router = ToolRouter::new();
    for number in 0..count {
        router.add_route(route(definition(number, schemas, &shared)));
    }
    router
}

/// The other end that a call's context must name. No byte passes through it.
pub(crate) struct Connection {
    // Dropping it would close the connection.
    _running: RunningService<RoleServer, Server>,
    _client_end: tokio::io::DuplexStream,
    peer: Peer<RoleServer>,
}

impl Connection {
    pub(crate) fn open(runtime: &Runtime) -> Self {
        let _entered = runtime.enter();
        let (server_end, client_end) = tokio::io::duplex(1024);
        let running = serve_directly(Server, server_end, None);
        let peer = running.peer().clone();
        Self { _running: running, _client_end: client_end, peer }
    }

    /// A call as rmcp takes it from its transport.
    pub(crate) fn call<'s>(
        &self,
        server: &'s Server,
        id: &str,
        name: &str,
        arguments: JsonObject,
    ) -> ToolCallContext<'s, Server> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let id = NumberOrString::String(id.into());
        ToolCallContext::new(server, params, RequestContext::new(id, self.peer.clone()))
    }
}

/// Whether the call did its work.
pub(crate) fn succeeded(response: Result<CallToolResponse, rmcp::ErrorData>) -> bool {
    matches!(response, Ok(CallToolResponse::Complete(result)) if result.is_error != Some(true))
}
