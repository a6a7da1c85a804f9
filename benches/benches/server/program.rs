//! The servers, each this program started again.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::transport::{stdio, stdio_pipes};
use rmcp::{ServerHandler, ServiceExt as _};
use tokio::net::TcpListener;
use toolcrib_benches::router;
use toolcrib_core::{Executor, ExecutorConfig, Registry};
use toolcrib_http::{HttpServer, ServerConfig as HttpConfig};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_testkit::search_tool::{self, Schemas};

use crate::limits;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The first argument of a program that is to serve.
pub(crate) const WORD: &str = "serve-for-bench";

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Ours,
    /// The same, asked in a session.
    OursInSession,
    /// The peer with its best settings: plain JSON, no sessions, no delay; pipes without threads.
    Best,
    /// The peer as it comes.
    Default,
    /// The peer asked in a session, without delay.
    InSession,
    /// The HTTP library alone: it reads the body and answers always the same.
    Axum,
    /// No library: blocking reads and writes, a thread for each connection.
    Limit,
}

impl Program {
    const ALL: [Self; 7] = [
        Self::Ours,
        Self::OursInSession,
        Self::Best,
        Self::Default,
        Self::InSession,
        Self::Axum,
        Self::Limit,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::OursInSession => "ours/session",
            Self::Best => "rmcp/best",
            Self::Default => "rmcp/default",
            Self::InSession => "rmcp/session",
            Self::Axum => "limit/axum",
            Self::Limit => "limit/blocking",
        }
    }

    /// Whether a client has to open a session first.
    pub(crate) fn has_sessions(self) -> bool {
        matches!(self, Self::OursInSession | Self::Default | Self::InSession)
    }
}

/// Starts a server; over HTTP it writes its port as its first line.
#[expect(clippy::disallowed_methods, reason = "a server of the bench's own, which it ends itself")]
pub(crate) fn start(program: Program, transport: &str, tools: usize) -> Result<Child, Failure> {
    let child = Command::new(std::env::current_exe()?)
        .args([WORD, &format!("{transport}:{}", program.as_str()), &tools.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// What a started server does, until it is ended.
pub(crate) fn run(asked: &str, tools: usize) -> Result<(), Failure> {
    let (transport, name) = asked.split_once(':').ok_or("which transport?")?;
    let program = Program::ALL.into_iter().find(|one| one.as_str() == name).ok_or("which one?")?;
    match (transport, program) {
        ("http", Program::Limit) => return limits::serve_http(),
        ("stdio", Program::Limit) => return limits::serve_stdio(),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match (transport, program) {
            ("http", Program::Ours | Program::OursInSession) => {
                let executor = executor(tools);
                let mcp = McpServer::new(executor.clone(), McpOptions::default());
                let server = HttpServer::bind(config(), executor, mcp).await?;
                announce(server.local_addr().ok_or("no address")?)?;
                server.serve(std::future::pending()).await?;
            }
            ("http", Program::Best) => {
                let config = StreamableHttpServerConfig::default()
                    .with_legacy_session_mode(false)
                    .with_json_response(true);
                peer_over_http(tools, config, true).await?;
            }
            ("http", Program::Default) => {
                peer_over_http(tools, StreamableHttpServerConfig::default(), false).await?;
            }
            ("http", Program::InSession) => {
                peer_over_http(tools, StreamableHttpServerConfig::default(), true).await?;
            }
            ("http", Program::Axum) => {
                let answer = |body: axum::body::Bytes| async move {
                    let text = "services/billing/src/main/resources/templates";
                    format!(
                        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#,
                        body.len()
                    )
                };
                let app = axum::Router::new().route("/mcp", axum::routing::post(answer));
                listen(app, true).await?;
            }
            ("stdio", Program::Ours) => {
                let mcp = McpServer::new(executor(tools), McpOptions::default());
                mcp.serve_stdio(std::future::pending()).await?;
            }
            ("stdio", Program::Best) => {
                Bare::new(tools).serve(stdio_pipes()).await?.waiting().await?;
            }
            ("stdio", Program::Default) => {
                Bare::new(tools).serve(stdio()).await?.waiting().await?;
            }
            _ => return Err("there is no such server".into()),
        }
        Ok(())
    })
}

pub(crate) fn announce(address: SocketAddr) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut output = std::io::stdout();
    writeln!(output, "{}", address.port())?;
    Ok(output.flush()?)
}

fn config() -> HttpConfig {
    HttpConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(),
        no_auth: true,
        ..HttpConfig::default()
    }
}

fn executor(tools: usize) -> Executor {
    let registry = Registry::new(search_tool::snapshot(tools, Schemas::Shared));
    Executor::new(registry, ExecutorConfig::default())
}

async fn peer_over_http(
    tools: usize,
    config: StreamableHttpServerConfig,
    no_delay: bool,
) -> Result<(), Failure> {
    let bare = Bare::new(tools);
    let service = StreamableHttpService::new(
        move || Ok(bare.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    listen(axum::Router::new().route_service("/mcp", service), no_delay).await
}

async fn listen(app: axum::Router, no_delay: bool) -> Result<(), Failure> {
    use axum::serve::ListenerExt as _;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?)?;
    if no_delay {
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        axum::serve(listener, app).await?;
    } else {
        axum::serve(listener, app).await?;
    }
    Ok(())
}

/// The peer's server with nothing but its router.
#[derive(Clone)]
struct Bare {
    router: Arc<ToolRouter<Self>>,
}

impl Bare {
    fn new(tools: usize) -> Self {
        Self { router: Arc::new(router(tools, Schemas::Shared)) }
    }
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.router.list_all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.router.get(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.router.call(ToolCallContext::new(self, request, context)).await
    }
}
