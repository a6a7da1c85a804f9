//! One connection to a server, from its start to its end.

pub(crate) mod backoff;
pub(crate) mod exact_http;
pub(crate) mod failure;
pub(crate) mod http;
pub(crate) mod link;
pub(crate) mod long_lines;
pub(crate) mod pending;
pub(crate) mod subscriptions;
pub(crate) mod supervisor;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, QuitReason, RunningService,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolcrib_net::TransportError;
use toolcrib_sandbox::{Ended, KeptProcess, Places, Status, keep};

use super::settings::{StdioServer, Transport, Upstream};
use crate::transport::exact_numbers::{ProtectedLines, RestoredLines};
use crate::upstream::connection::failure::Failure;
use crate::upstream::connection::http::HttpServer;
use crate::upstream::connection::link::Live;
use crate::upstream::connection::long_lines::LongLines;
use crate::upstream::connection::subscriptions::{has_to_be_asked, listen};
use crate::upstream::review::confidential::Confidential;
use crate::upstream::tool::progress::{InOrder, Progress};

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
    /// The task that asks to be told of changes, where that is needed; it ends with the connection.
    _listening: JoinSet<()>,
    closing: CancellationToken,
    process: Option<KeptProcess>,
    /// What the program could not change when it was started.
    before: Arc<Places>,
    is_over: bool,
}

impl Connection {
    /// Connects; in the end there is a session, or nothing is left.
    pub(crate) async fn open(
        upstream: &Upstream,
        confidential: &Confidential,
    ) -> Result<Self, Failure> {
        match &upstream.transport {
            Transport::Stdio(server) => {
                // Nearly every program knows `initialize`; those that do not say so.
                match start(upstream, confidential, server, ClientLifecycleMode::Initialize).await {
                    Err((_, true)) => {
                        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                        let discovery = ClientLifecycleMode::Discover { preferred_versions };
                        start(upstream, confidential, server, discovery).await
                    }
                    outcome => outcome,
                }
                .map_err(|(failure, _)| failure)
            }
            Transport::Http(server) => dial(upstream, confidential, server).await,
        }
    }

    fn of(
        session: RunningService<RoleClient, Client>,
        closing: CancellationToken,
        process: Option<KeptProcess>,
        before: Arc<Places>,
    ) -> Self {
        let peer = session.peer().clone();
        let Client { changed, progress } = session.service();
        let (changed, progress) = (Arc::clone(changed), Arc::clone(progress));
        let mut listening = JoinSet::new();
        if has_to_be_asked(&peer) {
            listening.spawn(listen(peer.clone(), Arc::clone(&changed)));
        }
        Self {
            live: Arc::new(Live { peer, progress }),
            changed,
            session: tokio::spawn(session.waiting()),
            _listening: listening,
            closing,
            process,
            before,
            is_over: false,
        }
    }

    /// Completes once the program could change what decides what runs here: it has to be started anew.
    pub(crate) fn outgrown(&self, upstream: &Upstream) -> impl Future<Output = ()> + use<> {
        let server = match &upstream.transport {
            Transport::Stdio(server) => Some(server.clone()),
            Transport::Http(_) => None,
        };
        let before = Arc::clone(&self.before);
        async move {
            match server {
                Some(server) => server.outgrown(&before).await,
                None => std::future::pending().await,
            }
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
    pub(crate) async fn close(self, confidential: &Confidential) -> Failure {
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
        said(confidential, Failure::new(reason), &ended)
    }
}

/// Starts a program and opens a session with it. A failure comes with whether the server refused this
/// way of opening one.
async fn start(
    upstream: &Upstream,
    confidential: &Confidential,
    server: &StdioServer,
    mode: ClientLifecycleMode,
) -> Result<Connection, (Failure, bool)> {
    if let Some(reason) = server.refusal() {
        return Err((Failure::new(reason), false));
    }
    // Before the program is started: what comes in between counts as new.
    let before = server.places();
    // Standard error is cut while it is read: what is confidential is hidden before that.
    let command = server.command().filter_output(confidential.byte_masks());
    let kept = keep(&command).await.map_err(|error| {
        let failure = Failure::new("it cannot be started");
        (failure.detail(&error.to_string(), confidential), false)
    })?;
    let process = kept.process;
    let closing = CancellationToken::new();
    let (problem, has_ended) = {
        let client = Client::default();
        let read = ProtectedLines::new(LongLines::new(kept.output));
        let transport = AsyncRwTransport::new_client(read, RestoredLines::new(kept.input));
        let transport = InOrder { inner: transport, progress: Arc::clone(&client.progress) };
        let mut opening =
            pin!(serve_client_with_lifecycle_and_ct(client, transport, mode, closing.clone()));
        let problem = match timeout(upstream.connect_timeout, &mut opening).await {
            Ok(Ok(session)) => {
                return Ok(Connection::of(session, closing, Some(process), before));
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        // Looked at while its pipes are still open: a program that is given up goes when they close.
        // A program that ends before it has read what it is sent breaks the pipe instead.
        let closed = matches!(
            problem,
            Some(
                ClientInitializeError::ConnectionClosed(_)
                    | ClientInitializeError::TransportError { .. }
            )
        );
        (problem, process.has_ended() || closed)
    };
    let ended = process.stop(PATIENCE).await;
    let refused = matches!(problem, Some(ClientInitializeError::JsonRpcError(_)));
    let failure = match problem {
        _ if has_ended => said(confidential, Failure::new(how_it_ended(ended.status)), &ended),
        Some(error) => {
            Failure::new("it does not open an MCP session").detail(&error.to_string(), confidential)
        }
        None => {
            let limit = upstream.connect_timeout;
            said(confidential, Failure::new(format!("it was not ready within {limit:?}")), &ended)
        }
    };
    Err((failure, refused))
}

/// Opens a session with a server over HTTP. There it costs little to ask first whether it speaks the
/// revision without a handshake, in which it can tell of changes without a session of its own.
async fn dial(
    upstream: &Upstream,
    confidential: &Confidential,
    server: &HttpServer,
) -> Result<Connection, Failure> {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let closing = CancellationToken::new();
    let opening = async {
        let (client, inner) = (Client::default(), server.transport(confidential).await?);
        let transport = InOrder { inner, progress: Arc::clone(&client.progress) };
        let opened = serve_client_with_lifecycle_and_ct(client, transport, mode, closing.clone());
        opened.await.map_err(|error| {
            let failure = Failure::new("it does not open an MCP session");
            failure.detail(&why(&error), confidential)
        })
    };
    let limit = upstream.connect_timeout;
    let session = timeout(limit, opening)
        .await
        .unwrap_or_else(|_| Err(Failure::new(format!("it was not ready within {limit:?}"))))?;
    Ok(Connection::of(session, closing, None, Arc::default()))
}

/// Why no session was opened: of a transport what it says itself, and not which one it was.
fn why(error: &ClientInitializeError) -> String {
    let error = match error {
        ClientInitializeError::TransportError { error, .. } => error,
        // What it said to the first way is that it does not know it.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return why(fallback),
        other => return http::chain(other),
    };
    match error.error.downcast_ref::<StreamableHttpError<TransportError>>() {
        // It does not tell its cause by itself.
        Some(StreamableHttpError::Client(cause)) => http::chain(cause),
        _ => http::chain(error.error.as_ref()),
    }
}

fn said(confidential: &Confidential, failure: Failure, ended: &Ended) -> Failure {
    failure.detail(&ended.stderr.text(), confidential)
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
    /// Filled by the transport ([`InOrder`]).
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
}
