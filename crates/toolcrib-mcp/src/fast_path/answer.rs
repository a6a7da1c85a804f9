//! The answer to a plain request, whatever brought the request here.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::Turn;
use toolcrib_core::suspension::Answer;
use toolcrib_tool::{BoxFuture, ToolCall};
use tracing::Instrument as _;

use super::answer_text;
use super::request::{PlainRequest, Wanted};
use crate::McpServer;
use crate::call::client::Client;
use crate::call::revocation::RevokedOnDrop;
use crate::call::{self, trace};

/// What a plain request is answered with.
pub(super) enum PlainAnswer {
    /// The text of a list, in pieces.
    List([Bytes; 3]),
    /// A call, which runs while the future is polled. Dropping the future cancels the call.
    Call(BoxFuture<'static, CallAnswer>),
}

/// The answer to a call.
pub(super) struct CallAnswer {
    pub(super) text: Vec<u8>,
    /// Whether the status of the answer is 400 over HTTP.
    pub(super) is_bad_request: bool,
}

/// Answers a request; `None` if the protocol library has to. `may_call` says which tools may be called here.
pub(super) fn answer(
    server: &McpServer,
    request: &PlainRequest<'_>,
    client: Arc<Client>,
    may_call: impl FnOnce(&Turn, &str) -> bool,
) -> Option<PlainAnswer> {
    let turn = server.turn();
    match request.wanted {
        Wanted::List => {
            let page = server.tools(&turn).written(client.takes)?;
            Some(PlainAnswer::List(answer_text::list(request.id(), page)))
        }
        // Clients of plain requests take no tasks: the library refuses the call.
        Wanted::Call { name, .. } if server.is_task_only(&turn, name) => None,
        Wanted::Call { name, .. } if !may_call(&turn, name) => None,
        Wanted::Call { name, arguments } => {
            let call = request.call(name, arguments);
            let call = called(server.clone(), turn, request.id().into(), client, call);
            Some(PlainAnswer::Call(match trace::span(request.trace()) {
                Some(span) => Box::pin(call.instrument(span)),
                None => call,
            }))
        }
    }
}

fn called(
    server: McpServer,
    turn: Turn,
    id: Box<str>,
    client: Arc<Client>,
    call: ToolCall,
) -> BoxFuture<'static, CallAnswer> {
    // The room first: a call's state is large, and would be copied there.
    let room = Box::new_uninit();
    let call = Box::write(room, async move {
        let answer = {
            let work = pin!(turn.start(call));
            let _revoked = RevokedOnDrop::new(&server, &turn);
            work.await
        };
        match answer {
            Answer::Done(result) => {
                server.note_links(&result);
                answer_text::call(&id, &turn, &result, client.takes)
            }
            Answer::Suspended(suspension) => {
                let takes = client.takes;
                let settled = Box::pin(call::settle(server, turn, client, suspension)).await;
                answer_text::settled(&id, settled, takes)
            }
        }
    });
    Box::into_pin(call)
}
