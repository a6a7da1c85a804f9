//! One connection to a server, from its start to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, Implementation, InitializeRequestParams, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, QuitReason, RunningService,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolcrib_net::TransportError;
use toolcrib_sandbox::{Ended, KeptProcess, Status, keep};

use super::failure::Failure;
use super::http::{self, HttpServer};
use super::link::Live;
use super::progress::Progress;
use super::settings::{StdioServer, Transport, Upstream};

/// How long a program may take to end once its input is closed, before it gets SIGTERM. With the
/// grace after that, a server is gone within a second.
const PATIENCE: Duration = Duration::from_millis(200);

/// An open session.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) live: Arc<Live>,
    /// Told when the server says that its tools have changed.
    pub(crate) changed: Arc<Notify>,
    session: JoinHandle<Result<QuitReason, JoinError>>,
    closing: CancellationToken,
    process: Option<KeptProcess>,
    is_over: bool,
}

impl Connection {
    /// Connects; in the end there is a session, or nothing is left.
    pub(crate) async fn open(upstream: &Upstream) -> Result<Self, Failure> {
        match &upstream.transport {
            Transport::Stdio(server) => {
                // Nearly every server knows `initialize`; those that do not say so.
                match start(upstream, server, handshake_first()).await {
                    Err((_, true)) => start(upstream, server, discovery()).await,
                    outcome => outcome,
                }
                .map_err(|(failure, _)| failure)
            }
            Transport::Http(server) => match dial(upstream, server, handshake_first()).await {
                Err((_, true)) => dial(upstream, server, discovery()).await,
                outcome => outcome,
            }
            .map_err(|(failure, _)| failure),
        }
    }

    /// Completes when the connection is over by itself. May be awaited again.
    pub(crate) async fn lost(&mut self) {
        if self.is_over {
            return;
        }
        match &self.process {
            None => drop((&mut self.session).await),
            Some(process) => tokio::select! {
                _ = &mut self.session => {}
                () = process.ended() => {}
            },
        }
        self.is_over = true;
    }

    /// Ends the connection and the server's process tree; what it said at the end is in the failure.
    pub(crate) async fn close(self, upstream: &Upstream) -> Failure {
        self.closing.cancel();
        let by_itself = self.is_over;
        let Some(process) = self.process else {
            // It is told that the session ends; whether it hears it is its own affair.
            let mut session = self.session;
            if !by_itself {
                let _ = timeout(PATIENCE, &mut session).await;
            }
            return Failure::new("it closed the connection");
        };
        let ended = process.stop(PATIENCE).await;
        let reason = if by_itself { how_it_ended(ended.status) } else { "it was ended".to_owned() };
        said(upstream, Failure::new(reason), &ended)
    }
}

fn handshake_first() -> ClientLifecycleMode {
    ClientLifecycleMode::Initialize
}

fn discovery() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// Starts a program and opens a session with it. A failure comes with whether the server refused this
/// way of opening one.
async fn start(
    upstream: &Upstream,
    server: &StdioServer,
    mode: ClientLifecycleMode,
) -> Result<Connection, (Failure, bool)> {
    let kept = keep(&server.command()).map_err(|error| {
        let confidential = upstream.confidential();
        let failure = Failure::new("it cannot be started");
        (failure.detail(&error.to_string(), confidential), false)
    })?;
    let process = kept.process;
    let client = Client::default();
    let (changed, progress) = (Arc::clone(&client.changed), Arc::clone(&client.progress));
    let closing = CancellationToken::new();
    let (problem, has_ended) = {
        let mut opening = pin!(serve_client_with_lifecycle_and_ct(
            client,
            (kept.output, kept.input),
            mode,
            closing.clone(),
        ));
        let problem = match timeout(upstream.connect_timeout, &mut opening).await {
            Ok(Ok(session)) => {
                let live = Live { peer: session.peer().clone(), progress };
                return Ok(Connection {
                    live: Arc::new(live),
                    changed,
                    session: spawn_session(session),
                    closing,
                    process: Some(process),
                    is_over: false,
                });
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        // Looked at while its pipes are still open: a program that is given up goes when they close.
        let closed = matches!(problem, Some(ClientInitializeError::ConnectionClosed(_)));
        (problem, process.has_ended() || closed)
    };
    let ended = process.stop(PATIENCE).await;
    let refused = matches!(problem, Some(ClientInitializeError::JsonRpcError(_)));
    let failure = match problem {
        _ if has_ended => said(upstream, Failure::new(how_it_ended(ended.status)), &ended),
        Some(error) => Failure::new("it does not open an MCP session")
            .detail(&error.to_string(), upstream.confidential()),
        None => {
            let limit = upstream.connect_timeout;
            said(upstream, Failure::new(format!("it was not ready within {limit:?}")), &ended)
        }
    };
    Err((failure, refused))
}

/// Opens a session with a server over HTTP; a failure comes as that of [`start`] does.
async fn dial(
    upstream: &Upstream,
    server: &HttpServer,
    mode: ClientLifecycleMode,
) -> Result<Connection, (Failure, bool)> {
    let client = Client::default();
    let (changed, progress) = (Arc::clone(&client.changed), Arc::clone(&client.progress));
    let closing = CancellationToken::new();
    let opening = async {
        let transport = server.transport().await.map_err(|failure| (failure, false))?;
        let opened = serve_client_with_lifecycle_and_ct(client, transport, mode, closing.clone());
        opened.await.map_err(|error| {
            let refused = matches!(error, ClientInitializeError::JsonRpcError(_));
            let failure = Failure::new("it does not open an MCP session");
            (failure.detail(&why(&error), upstream.confidential()), refused)
        })
    };
    let limit = upstream.connect_timeout;
    let session = timeout(limit, opening).await.unwrap_or_else(|_| {
        Err((Failure::new(format!("it was not ready within {limit:?}")), false))
    })?;
    let live = Live { peer: session.peer().clone(), progress };
    Ok(Connection {
        live: Arc::new(live),
        changed,
        session: spawn_session(session),
        closing,
        process: None,
        is_over: false,
    })
}

/// Why no session was opened: of a transport what it says itself, and not which one it was.
fn why(error: &ClientInitializeError) -> String {
    let ClientInitializeError::TransportError { error, .. } = error else {
        return http::chain(error);
    };
    match error.error.downcast_ref::<StreamableHttpError<TransportError>>() {
        // It does not tell its cause by itself.
        Some(StreamableHttpError::Client(cause)) => http::chain(cause),
        _ => http::chain(error.error.as_ref()),
    }
}

fn spawn_session(
    session: RunningService<RoleClient, Client>,
) -> JoinHandle<Result<QuitReason, JoinError>> {
    tokio::spawn(session.waiting())
}

fn said(upstream: &Upstream, failure: Failure, ended: &Ended) -> Failure {
    failure.detail(&ended.stderr.text(), upstream.confidential())
}

fn how_it_ended(status: Status) -> String {
    match (status.code(), status.signal_name(), status.signal()) {
        (Some(code), ..) => format!("it ended with exit code {code}"),
        (None, Some(name), _) => format!("it was ended by {name}"),
        (None, None, Some(number)) => format!("it was ended by signal {number}"),
        (None, None, None) => "it ended".to_owned(),
    }
}

/// What the server can tell us by itself.
#[derive(Debug, Default)]
struct Client {
    changed: Arc<Notify>,
    progress: Arc<Progress>,
}

impl ClientHandler for Client {
    /// Nothing is offered to the server: no files, no model, no person to ask.
    fn get_info(&self) -> InitializeRequestParams {
        let name = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.deliver(&progress);
    }
}
