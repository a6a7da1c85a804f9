//! One connection to a server, from start to end.

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

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationCapability,
    FormElicitationCapability, Implementation, InitializeRequestParams, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, QuitReason, RequestContext,
    RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolcrib_net::TransportError;
use toolcrib_sandbox::{ChildExit, ChildProcess, Places, Status, spawn};

use super::settings::{StdioServer, Transport, Upstream};
use crate::transport::exact_numbers::{ProtectedLines, RestoredLines};
use crate::upstream::connection::failure::Failure;
use crate::upstream::connection::http::HttpServer;
use crate::upstream::connection::link::LiveConnection;
use crate::upstream::connection::long_lines::LongLines;
use crate::upstream::connection::subscriptions::{listen, subscription};
use crate::upstream::restart::ProgramFiles;
use crate::upstream::review::confidential::Confidential;
use crate::upstream::tool::progress::{OrderedProgress, Progress};
use crate::upstream::tool::questions::{QuestionRouter, Reference};

/// How long a program may take to exit after its input is closed, before it gets SIGTERM. With the
/// grace period after that, a server is gone within a second.
const EXIT_WAIT: Duration = Duration::from_millis(200);

/// An open session.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) live: Arc<LiveConnection>,
    /// Notified when the server reports that its tools, resources or prompts have changed.
    pub(crate) changed: Arc<Notify>,
    session: JoinHandle<Result<QuitReason, JoinError>>,
    /// The task that subscribes to changes, where that is needed; it ends with the connection.
    _listening: JoinSet<()>,
    closing: CancellationToken,
    process: Option<ChildProcess>,
    /// The protected paths as they were when the program was started.
    protected_at_start: Arc<Places>,
    /// The files that decide what the program runs, as they were then.
    pub(crate) files_at_start: ProgramFiles,
    is_over: bool,
}

impl Connection {
    /// Connects. On failure nothing is left running.
    pub(crate) async fn open(
        upstream: &Upstream,
        confidential: &Confidential,
    ) -> Result<Self, Failure> {
        match &upstream.transport {
            Transport::Stdio(server) => {
                // Nearly every program supports `initialize`; the others report an error.
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
            Transport::Http(server) => connect_http(upstream, confidential, server).await,
        }
    }

    fn of(
        session: RunningService<RoleClient, SessionClient>,
        closing: CancellationToken,
        process: Option<ChildProcess>,
        protected_at_start: Arc<Places>,
    ) -> Self {
        let peer = session.peer().clone();
        let SessionClient { changed, progress, questions } = session.service();
        let (changed, progress) = (Arc::clone(changed), Arc::clone(progress));
        let questions = Arc::clone(questions);
        let mut listening = JoinSet::new();
        if let Some(filter) = subscription(&peer) {
            listening.spawn(listen(peer.clone(), filter, Arc::clone(&changed)));
        }
        Self {
            live: Arc::new(LiveConnection { peer, progress, questions }),
            changed,
            session: tokio::spawn(session.waiting()),
            _listening: listening,
            closing,
            process,
            protected_at_start,
            files_at_start: ProgramFiles::default(),
            is_over: false,
        }
    }

    /// Completes when the program could change files that decide what runs here: it has to be
    /// restarted.
    pub(crate) fn needs_restart(&self, upstream: &Upstream) -> impl Future<Output = ()> + use<> {
        let server = match &upstream.transport {
            Transport::Stdio(server) => Some(server.clone()),
            Transport::Http(_) => None,
        };
        let protected_at_start = Arc::clone(&self.protected_at_start);
        async move {
            match server {
                Some(server) => server.needs_restart(&protected_at_start).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Completes when the connection is lost. Can be awaited again.
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

    /// Closes the connection and ends the server's process tree. The failure contains the server's
    /// last output.
    pub(crate) async fn close(self, confidential: &Confidential) -> Failure {
        self.closing.cancel();
        let by_itself = self.is_over;
        let Some(process) = self.process else {
            // The server is told that the session ends; it may ignore that.
            let mut session = self.session;
            if !by_itself {
                let _ = timeout(EXIT_WAIT, &mut session).await;
            }
            return Failure::new("it closed the connection");
        };
        let ended = process.stop(EXIT_WAIT).await;
        let reason = if by_itself { how_it_ended(ended.status) } else { "it was ended".to_owned() };
        with_output(confidential, Failure::new(reason), &ended)
    }
}

/// Starts a program and opens a session with it. A failure says whether the server rejected this
/// kind of handshake.
async fn start(
    upstream: &Upstream,
    confidential: &Confidential,
    server: &StdioServer,
    mode: ClientLifecycleMode,
) -> Result<Connection, (Failure, bool)> {
    if let Some(reason) = server.refusal() {
        return Err((Failure::new(reason), false));
    }
    // Taken before the program starts: what is added or changed in between counts as new.
    let (protected_at_start, files_at_start) = (server.places(), server.files());
    // Standard error is cut while it is read, so confidential values are hidden before that.
    let command = server.command().filter_output(confidential.byte_masks());
    let kept = spawn(&command).await.map_err(|error| {
        let failure = Failure::new("it cannot be started");
        (failure.detail(&error.to_string(), confidential), false)
    })?;
    let process = kept.process;
    let closing = CancellationToken::new();
    let (problem, has_ended) = {
        let client = SessionClient::new(&upstream.name);
        let read = ProtectedLines::new(LongLines::new(kept.output));
        let transport = AsyncRwTransport::new_client(read, RestoredLines::new(kept.input));
        let transport =
            OrderedProgress { inner: transport, progress: Arc::clone(&client.progress) };
        let mut opening =
            pin!(serve_client_with_lifecycle_and_ct(client, transport, mode, closing.clone()));
        let problem = match timeout(upstream.connect_timeout, &mut opening).await {
            Ok(Ok(session)) => {
                let opened = Connection::of(session, closing, Some(process), protected_at_start);
                return Ok(Connection { files_at_start, ..opened });
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        // Check the status while the pipes are open: a program that is given up exits when they
        // close. A program that exits before it has read its input breaks the pipe instead.
        let closed = matches!(
            problem,
            Some(
                ClientInitializeError::ConnectionClosed(_)
                    | ClientInitializeError::TransportError { .. }
            )
        );
        (problem, process.has_ended() || closed)
    };
    let ended = process.stop(EXIT_WAIT).await;
    let refused = matches!(problem, Some(ClientInitializeError::JsonRpcError(_)));
    let failure = match problem {
        _ if has_ended => {
            with_output(confidential, Failure::new(how_it_ended(ended.status)), &ended)
        }
        Some(error) => {
            Failure::new("it does not open an MCP session").detail(&error.to_string(), confidential)
        }
        None => {
            let limit = upstream.connect_timeout;
            with_output(
                confidential,
                Failure::new(format!("it was not ready within {limit:?}")),
                &ended,
            )
        }
    };
    Err((failure, refused))
}

/// Opens a session with a server over HTTP. A request there is cheap, so the revision without a
/// handshake is tried first: with it the server can report changes without a session.
async fn connect_http(
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
        let inner = server.transport(confidential).await?;
        let client = SessionClient::new(&upstream.name);
        let transport = OrderedProgress { inner, progress: Arc::clone(&client.progress) };
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

/// Why no session was opened. For a transport error, only its own message without the transport's
/// type.
fn why(error: &ClientInitializeError) -> String {
    let error = match error {
        ClientInitializeError::TransportError { error, .. } => error,
        // The server's reply to the first attempt was that it does not know it.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return why(fallback),
        other => return http::chain(other),
    };
    match error.error.downcast_ref::<StreamableHttpError<TransportError>>() {
        // This error type does not show its cause.
        Some(StreamableHttpError::Client(cause)) => http::chain(cause),
        _ => http::chain(error.error.as_ref()),
    }
}

fn with_output(confidential: &Confidential, failure: Failure, ended: &ChildExit) -> Failure {
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

/// The client side of a session: handles notifications from the server.
#[derive(Debug)]
struct SessionClient {
    changed: Arc<Notify>,
    /// Filled by the transport ([`OrderedProgress`]).
    progress: Arc<Progress>,
    questions: Arc<QuestionRouter>,
}

impl SessionClient {
    fn new(upstream: &str) -> Self {
        Self {
            changed: Arc::default(),
            progress: Arc::default(),
            questions: Arc::new(QuestionRouter::new(upstream)),
        }
    }
}

impl ClientHandler for SessionClient {
    /// Offers the server that the user of a call answers its forms; no files, and no model.
    fn get_info(&self) -> InitializeRequestParams {
        let name = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        capabilities.elicitation = Some(forms);
        InitializeRequestParams::new(capabilities, name)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let reference = Reference::of(&context.meta.0.0);
        tokio::select! {
            answer = self.questions.ask(&request, &reference) => Ok(answer),
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the question was withdrawn", None))
            }
        }
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
