//! The listener's life: bound, serving, drained, closed.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::net::TcpListener;
use tokio::sync::watch;
use toolcrib_mcp::{McpHttpOptions, McpServer};

use crate::api::Api;
use crate::auth::allowed_hosts::OriginRule;
use crate::auth::client::Roster;
use crate::auth::clients::LiveClients;
use crate::auth::host_check::Admission;
use crate::observability::traffic::Traffic;
use crate::serving::connections;
use crate::serving::connections::{Bounds, Door};
use crate::serving::request_body::BodyLimits;
use crate::serving::{routes, unix_socket};
use crate::{Backend, HttpError, Listen, OwnerSocket, ServerConfig, ServerSettings, Token};

/// How long requests that are being answered may take to finish after a shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(10);

/// How long connections may take to notice that their requests were ended.
const CLOSE: Duration = Duration::from_secs(1);

/// Connections of the owner at once, beside those of the public listener.
const OWNER_CONNECTIONS: usize = 64;

/// A bound listener. It holds its port, or its socket, from [`bind`](Self::bind) on and answers from
/// [`serve`](Self::serve) on; connections made in between wait.
pub struct HttpServer {
    /// The public one first, if there is one, and then the owner's.
    entrances: Vec<Entrance>,
    /// Where the public one is, with the real port.
    address: Option<SocketAddr>,
    config: ServerConfig,
    token: Option<Token>,
    settings: Option<ServerSettings>,
    backend: Arc<dyn Backend>,
    mcp: McpServer,
}

/// One place at which requests come in, and who may send them.
struct Entrance {
    door: Door,
    admission: Admission,
    clients: Arc<LiveClients>,
    connections: usize,
}

impl HttpServer {
    /// Checks the settings and takes the port, or makes the socket.
    ///
    /// `mcp` says what MCP clients are told about the server; which tools they see, and whose calls
    /// theirs are, is decided by their token. Where the settings name no token, one is made;
    /// [`token`](Self::token) tells it.
    pub async fn bind(
        config: ServerConfig,
        backend: impl Backend,
        mcp: McpServer,
    ) -> Result<Self, HttpError> {
        config.check()?;
        let token = match &config.token {
            Some(token) => Some(token.clone()),
            None if config.no_auth || !config.tokens.is_empty() => None,
            None => Some(Token::random()?),
        };
        let (door, address) = match &config.listen {
            Listen::Tcp(address) => {
                let bind_error =
                    |source| HttpError::Bind { listen: config.listen.clone(), error: source };
                let listener = TcpListener::bind(address).await.map_err(bind_error)?;
                let address = listener.local_addr().map_err(bind_error)?;
                (Door::Tcp(listener), Some(address))
            }
            Listen::Unix(path) => {
                let (listener, file) = unix_socket::bind(path).await?;
                (Door::Unix(listener, file), None)
            }
        };
        let hosts = config.host_rules(address)?;
        let origins = config.origin_rules(address)?;
        let backend: Arc<dyn Backend> = Arc::new(backend);
        if let Some(token) = &token {
            // No call hands it out, whatever a tool finds it in.
            let secret = [token.reveal().to_owned()];
            backend.executor().mask_also(secret).map_err(|_| HttpError::TokenUnmasked)?;
        }
        let roster = Roster::new(&backend, &mcp, mcp_options(&config, &origins));
        let clients = {
            let toolsets = |name: &str| backend.toolset(name);
            roster.clients(&config, token.as_ref(), &toolsets, None)?
        };
        let clients = Arc::new(LiveClients::new(clients));
        backend.executor().add_caller_rights(&clients);
        let made = token.clone().filter(|_| config.token.is_none());
        let settings = ServerSettings::new(roster, Arc::clone(&clients), made, &config);
        let admission = Admission::new(hosts, origins);
        let public = Entrance { door, admission, clients, connections: config.connections };
        let (entrances, settings) = (vec![public], Some(settings));
        Ok(Self { entrances, address, config, token, settings, backend, mcp })
    }

    /// A server without a public listener, for programs that serve in another way: its owner alone
    /// reaches it, over the socket. `mcp` is what it serves at `/mcp`, and is closed with the server.
    pub fn for_owner(
        socket: OwnerSocket,
        backend: impl Backend,
        mcp: McpServer,
    ) -> Result<Self, HttpError> {
        let (entrances, config) = (Vec::new(), ServerConfig::default());
        let (address, token, settings) = (None, None, None);
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let server = Self { entrances, address, config, token, settings, backend, mcp };
        server.with_owner_socket(socket)
    }

    /// Lets the owner of this process operate the server over a socket of their own, too: the same
    /// routes, with every right and without a token.
    pub fn with_owner_socket(mut self, socket: OwnerSocket) -> Result<Self, HttpError> {
        // A browser reaches no such socket, so that no page has an origin to call from.
        let (hosts, origins) = (ServerConfig::default().host_rules(None)?, Vec::new());
        let options = mcp_options(&self.config, &origins);
        let clients = Roster::new(&self.backend, &self.mcp, options).owner();
        self.entrances.push(Entrance {
            door: Door::Owner(socket),
            admission: Admission::new(hosts, origins),
            clients: Arc::new(LiveClients::new(clients)),
            connections: OWNER_CONNECTIONS,
        });
        Ok(self)
    }

    /// The settings that can change while the public listener runs; none where there is no such
    /// listener.
    pub fn settings(&self) -> Option<ServerSettings> {
        self.settings.clone()
    }

    /// The address that is listened on, with the real port; none where it is a socket in the file system.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The socket in the file system that is listened on, if it is one.
    pub fn socket(&self) -> Option<&Path> {
        self.entrances.iter().find_map(|entrance| match &entrance.door {
            Door::Unix(_, file) => Some(file.path()),
            Door::Tcp(_) | Door::Owner(_) => None,
        })
    }

    /// The URL the server is reached at from this machine, without a slash at its end. Over a
    /// [socket](Self::socket) it is `http://localhost`.
    pub fn url(&self) -> String {
        let Some(mut address) = self.address else { return "http://localhost".to_owned() };
        if address.ip().is_unspecified() {
            // Nothing can connect to "any address".
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}")
    }

    /// The URL an MCP client on this machine connects to.
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.url())
    }

    /// The operator's own token; none with `no_auth`, and where only named clients have one.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Whether a token is asked for at all.
    pub fn asks_for_tokens(&self) -> bool {
        !self.config.no_auth
    }

    /// Whether the token was made at this start, so that nobody knows it yet.
    pub fn token_is_new(&self) -> bool {
        self.token.is_some() && self.config.token.is_none()
    }

    /// Answers requests until `shutdown` completes.
    ///
    /// Then no connection is taken any more, streams that only tell MCP clients of changes end at once,
    /// and requests that are being answered have 10 s to finish; after that their calls are dropped and
    /// the MCP server is closed.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), HttpError> {
        let head = self.config.read_timeout.0;
        let limits = BodyLimits { bytes: self.config.body_bytes(), time: head };
        let traffic = Arc::<Traffic>::default();
        let api = Api::new(self.backend, Arc::clone(&traffic));
        let (stop, stopped) = watch::channel(false);
        let serving = self.entrances.into_iter().map(|entrance| {
            let Entrance { door, admission, clients, connections } = entrance;
            let traffic = Arc::clone(&traffic);
            let app = routes::app(api.clone(), &clients, admission, limits, Arc::clone(&traffic));
            let bounds = Bounds { connections, head };
            connections::serve(door, app, bounds, traffic, stopped.clone())
        });
        let mut serving = Box::pin(join_all(serving));
        tokio::select! {
            _ = &mut serving => {}
            () = shutdown => {}
        }
        let _ = stop.send(true);
        // Before anybody waits for them: they have no end of their own.
        self.mcp.end_streams();
        api.closing().cancel();
        let drained = async {
            serving.as_mut().await;
            api.settled().await;
        };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            tracing::warn!("requests were still being answered after {DRAIN:?}; they are ended");
            self.mcp.close();
            let _ = tokio::time::timeout(CLOSE, serving).await;
        }
        self.mcp.close();
        Ok(())
    }
}

fn mcp_options(config: &ServerConfig, origins: &[OriginRule]) -> McpHttpOptions {
    let options = McpHttpOptions::default()
        // Checked in front of all routes, where the address of the connection is known.
        .any_host()
        .allowed_origins(origins.iter().map(OriginRule::to_text))
        .retry(config.retry_after.0)
        .body_limit(config.body_bytes());
    match config.stream_lifetime.0 {
        Some(lifetime) => options.open_for(lifetime),
        None => options,
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("address", &self.address)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
