//! The fast path over two byte streams, one message per line.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use rmcp::model::ErrorData;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use toolcrib_json::Tape;
use toolcrib_tool::BoxFuture;

use super::answer::{CallAnswer, PlainAnswer, answer};
use super::answer_text::failed;
use super::request::{PlainMethod, PlainRequest};
use crate::McpServer;
use crate::session::connection::Connection;
use crate::transport::lines::Outbox;
use crate::transport::open_requests::{OpenRequests, in_use};

/// A tool whose call blocks its thread for longer runs in a separate task from the next call on.
const BLOCKING_LIMIT: Duration = Duration::from_millis(1);
/// The maximum number of such tools that are remembered.
const BLOCKING_TOOLS_MAX: usize = 1_000;

/// Answers the plain requests of one connection. Dropping it cancels the running calls.
///
/// A call that completes immediately is answered where its line is read. Any other call continues
/// in its own task, so that it does not delay the next line.
pub(crate) struct LineFastPath {
    server: McpServer,
    connection: Arc<Connection>,
    outbox: Outbox,
    open: OpenRequests,
    /// Cancelled when the connection ends for another reason than the end of input.
    ended: CancellationToken,
    tasks: JoinSet<EndedCall>,
    /// The calls in `tasks`, by their ids as JSON.
    running: HashMap<Box<str>, AbortHandle>,
    blocking_tools: HashSet<Box<str>>,
}

/// A call whose task has ended.
struct EndedCall {
    id: Box<str>,
    tool: Box<str>,
    is_light: bool,
}

impl LineFastPath {
    pub(crate) fn new(
        server: McpServer,
        connection: Arc<Connection>,
        outbox: Outbox,
        open: OpenRequests,
        ended: CancellationToken,
    ) -> Self {
        let (tasks, running, blocking_tools) = Default::default();
        Self { server, connection, outbox, open, ended, tasks, running, blocking_tools }
    }

    /// Answers a line or starts to; returns false if the protocol library has to.
    pub(crate) async fn answer(&mut self, line: &Tape<'_>) -> bool {
        self.forget_ended_calls();
        let Some(request) = PlainRequest::read(line) else { return self.cancel(line) };
        if self.open.contains(request.id()) {
            let answer = failed(request.id(), &in_use(request.id()));
            self.outbox.send(answer.text).await;
            return true;
        }
        match self.read(&request) {
            Some(PlainAnswer::List(pieces)) => self.outbox.send(pieces.concat()).await,
            Some(PlainAnswer::Call(call)) => self.call(&request, call).await,
            None => return false,
        }
        true
    }

    /// Waits until the running calls have been answered.
    pub(crate) async fn finish(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    fn read(&self, request: &PlainRequest<'_>) -> Option<PlainAnswer> {
        let client = self.connection.client_state.sender(request)?;
        answer(&self.server, request, client, |_, _| {
            // A client that has set a log level gets log messages of its calls, which the library
            // sends.
            self.connection.level().is_none()
        })
    }

    async fn call(&mut self, request: &PlainRequest<'_>, mut call: BoxFuture<'static, CallAnswer>) {
        let PlainMethod::Call { name, .. } = request.wanted else { return };
        let started = Instant::now();
        if !self.blocking_tools.contains(name) {
            let answer = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
            if started.elapsed() > BLOCKING_LIMIT && self.blocking_tools.len() < BLOCKING_TOOLS_MAX
            {
                self.blocking_tools.insert(name.into());
            }
            if let Poll::Ready(answer) = answer {
                return self.outbox.send(answer.text).await;
            }
        }
        let (id, tool): (Box<str>, Box<str>) = (request.id().into(), name.into());
        let (outbox, ended) = (self.outbox.clone(), self.ended.clone());
        let open = self.open.clone();
        open.open(&id);
        let task = self.tasks.spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = call => answer,
                () = ended.cancelled() => {
                    failed(&id, &ErrorData::internal_error("the request was cancelled", None))
                }
            };
            let is_light = started.elapsed() <= BLOCKING_LIMIT;
            // Before the client has the answer, and may use the id again.
            open.close(&id);
            outbox.send(answer.text).await;
            EndedCall { id, tool, is_light }
        });
        self.running.insert(request.id().into(), task);
    }

    /// Cancels the call that a cancellation notification names, if it is running here.
    fn cancel(&mut self, line: &Tape<'_>) -> bool {
        let message = line.root();
        let is_cancellation =
            message.get("method").is_some_and(|method| method.equals("notifications/cancelled"));
        let id = message.get("params").and_then(|params| params.get("requestId"));
        let Some(id) = id.filter(|_| is_cancellation && !self.running.is_empty()) else {
            return false;
        };
        // Ids of plain requests contain no escapes.
        let id = id.as_str().map_or(id.source().to_owned(), |text| format!("\"{text}\""));
        let is_running = self.running.remove(&*id).inspect(AbortHandle::abort).is_some();
        if is_running {
            self.open.close(&id);
        }
        is_running
    }

    fn forget_ended_calls(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            // A cancelled call has already been removed.
            let Ok((task, EndedCall { id, tool, is_light })) = ended else { continue };
            // A client that has its answer may have used the id again.
            if self.running.get(&id).is_some_and(|running| running.id() == task) {
                self.running.remove(&id);
            }
            if is_light {
                self.blocking_tools.remove(&tool);
            }
        }
    }
}
