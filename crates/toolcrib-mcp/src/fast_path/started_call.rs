//! A call that has begun before the protocol library knows of it, and is handed over to it if it does
//! not end at once.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use toolcrib_core::suspension::Answer;
use toolcrib_core::{RemoteTrace, Turn};
use toolcrib_tool::{BoxFuture, ToolCall};
use tracing::Instrument as _;

use crate::McpServer;
use crate::call::trace;
use crate::session::connection::Connection;

/// A call under way. Dropping it withdraws the call.
pub(crate) struct Begun {
    pub(crate) turn: Turn,
    // Dropped before the work.
    _ending: Ending,
    work: BoxFuture<'static, Answer>,
}

/// Tells the calls of a turn, when they are dropped, that their client was revoked, if it was: it has to
/// be dropped before they are.
pub(crate) struct Ending {
    server: McpServer,
    turn: Turn,
}

impl Ending {
    pub(crate) fn new(server: &McpServer, turn: &Turn) -> Self {
        Self { server: server.clone(), turn: turn.clone() }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.server.is_revoked() {
            self.turn.revoke();
        }
    }
}

impl Begun {
    /// Opens a turn and makes a call of it, as part of the trace that its client names; nothing runs
    /// before it is waited for.
    pub(crate) fn new(server: &McpServer, call: ToolCall, trace: Option<RemoteTrace<'_>>) -> Self {
        let turn = server.turn();
        let own = turn.clone();
        // The room first: a call's state is large, and would be copied there.
        let room = Box::new_uninit();
        let work = Box::into_pin(Box::write(room, async move { own.start(call).await }));
        let work: BoxFuture<'static, Answer> = match trace::span(trace) {
            Some(span) => Box::pin(work.instrument(span)),
            None => work,
        };
        Self { _ending: Ending::new(server, &turn), turn, work }
    }

    /// Works on it as far as that goes without waiting.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Answer> {
        match self.work.as_mut().poll(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    /// Its answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.work.as_mut().await
    }

    /// The call, of which `answer` has become known meanwhile.
    pub(crate) fn answered(self, answer: Answer) -> Self {
        Self { work: Box::pin(std::future::ready(answer)), ..self }
    }

    /// The call that was handed over with a request, if one was: beside its text over HTTP, or to the
    /// client's connection.
    pub(crate) fn of_request(
        context: &RequestContext<RoleServer>,
        connection: Option<&Connection>,
    ) -> Option<Self> {
        match context.extensions.get::<Parts>() {
            Some(parts) => parts.extensions.get::<HandedOver>()?.take(),
            None => connection?.standing.take(&context.id),
        }
    }
}

/// A call on its way to the handler of the request, beside the request's text.
#[derive(Clone)]
pub(crate) struct HandedOver(Arc<Mutex<Option<Begun>>>);

impl HandedOver {
    pub(crate) fn new(begun: Begun) -> Self {
        Self(Arc::new(Mutex::new(Some(begun))))
    }

    fn take(&self) -> Option<Begun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandedOver")
    }
}
