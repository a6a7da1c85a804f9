//! Answers plain requests, independent of the transport.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use toolcrib_core::Turn;
use toolcrib_core::suspension::Answer;
use toolcrib_tool::{BoxFuture, ToolCall};
use tracing::Instrument as _;

use super::answer_text;
use super::request::{PlainMethod, PlainRequest};
use crate::McpServer;
use crate::call::client::Client;
use crate::call::revocation::RevokedOnDrop;
use crate::call::{self, trace};

/// The answer to a plain request.
pub(super) enum PlainAnswer {
    /// The text of a list, in pieces.
    List([Bytes; 3]),
    /// A call, which runs while the future is polled. Dropping the future cancels the call.
    Call(BoxFuture<'static, CallAnswer>),
}

/// The answer to a call.
pub(super) struct CallAnswer {
    pub(super) text: Vec<u8>,
    /// Whether the HTTP status of the answer is 400.
    pub(super) is_bad_request: bool,
}

/// Answers a request; `None` if the protocol library has to. `may_call` says which tools may be
/// called here.
pub(super) fn answer(
    server: &McpServer,
    request: &PlainRequest<'_>,
    client: Arc<Client>,
    may_call: impl FnOnce(&Turn, &str) -> bool,
) -> Option<PlainAnswer> {
    let turn = server.turn();
    match request.wanted {
        PlainMethod::List => {
            let page = server.tools(&turn).written(client.data_form)?;
            Some(PlainAnswer::List(answer_text::list(request.id(), page)))
        }
        // Clients of plain requests do not support tasks: the library refuses the call.
        PlainMethod::Call { name, .. } if server.is_task_only(&turn, name) => None,
        PlainMethod::Call { name, .. } if !may_call(&turn, name) => None,
        PlainMethod::Call { name, arguments } => {
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
    // Box first: a call's state is large and would be copied into the box.
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
                answer_text::call(&id, &turn, &result, client.data_form)
            }
            Answer::Suspended(suspension) => {
                let data_form = client.data_form;
                let settled =
                    Box::pin(call::answer_suspended(server, turn, client, suspension)).await;
                answer_text::settled(&id, settled, data_form)
            }
        }
    });
    Box::into_pin(call)
}
