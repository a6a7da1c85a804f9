//! Plain messages over HTTP.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use toolcrib_core::suspension::Answer;
use toolcrib_wire::McpData;

use super::head::{self, Hosts};
use super::message::{Message, Wanted};
use crate::McpServer;
use crate::fast_path::answer_text;
use crate::fast_path::started_call::{Begun, HandedOver};
use crate::transport::http::{McpBody, bare_text};

/// Room for most answers, in bytes.
const ORDINARY: usize = 512;

/// Answers plain messages that belong to no session.
pub(crate) struct PlainHttp {
    server: McpServer,
    hosts: Hosts,
}

/// What is to be done about a plain message.
enum Work {
    Listed([Bytes; 3]),
    Call { id: Box<str>, begun: Begun, takes: McpData },
}

impl PlainHttp {
    pub(crate) fn new(server: McpServer, allowed_hosts: &[String]) -> Self {
        Self { server, hosts: Hosts::new(allowed_hosts) }
    }

    /// Answers a POST of JSON that names no session; `None` if the protocol library has to, which finds in
    /// `parts` the call that has been started.
    ///
    /// Dropping the future withdraws the call.
    pub(crate) async fn answer(
        &self,
        parts: &mut Parts,
        body: &[u8],
    ) -> Option<Response<McpBody>> {
        let headers = &parts.headers;
        if !self.hosts.admit(headers) || !head::accepts_answers(headers) {
            return None;
        }
        let (id, mut begun, takes) = match self.work(parts, body)? {
            Work::Listed(pieces) => return Some(json(Pieces(pieces.into()).boxed())),
            Work::Call { id, begun, takes } => (id, begun, takes),
        };
        // Who waits for nothing needs nobody to wait with.
        let at_once = poll_fn(|cx| Poll::Ready(begun.poll(cx))).await;
        let answer = if let Some(answer) = at_once {
            answer
        } else {
            tokio::select! {
                biased;
                () = self.server.closing().cancelled() => return Some(ended()),
                answer = begun.answer() => answer,
            }
        };
        match answer {
            Answer::Done(result) => {
                let mut text = Vec::with_capacity(ORDINARY);
                self.server.note_links(&result);
                answer_text::call(&mut text, &id, &begun.turn, &result, takes);
                Some(json(Full::from(text).boxed()))
            }
            waiting @ Answer::Suspended(_) => {
                parts.extensions.insert(HandedOver::new(begun.answered(waiting)));
                None
            }
        }
    }

    /// Apart from the answer, so that what is read is let go before a call is waited for.
    fn work(&self, parts: &Parts, body: &[u8]) -> Option<Work> {
        let tape = toolcrib_json::parse(std::str::from_utf8(body).ok()?).ok()?;
        let message = Message::of(&tape)?;
        let takes = head::takes(&parts.headers, &message)?;
        match message.wanted {
            Wanted::List => {
                let page = self.server.tools(&self.server.turn()).written(takes)?;
                Some(Work::Listed(answer_text::list(message.id(), page)))
            }
            Wanted::Call { name, arguments } => {
                let begun =
                    Begun::new(&self.server, message.call(name, arguments), message.trace());
                // Arguments that are repeated in headers have to be compared. Of a client that takes no
                // tasks: it is refused.
                if (takes == McpData::Any && self.server.tools(&begun.turn).repeats_arguments(name))
                    || self.server.is_task_only(&begun.turn, name)
                {
                    return None;
                }
                Some(Work::Call { id: message.id().into(), begun, takes })
            }
        }
    }
}

/// The server ends, and its calls with it.
fn ended() -> Response<McpBody> {
    let text = "the server has ended, and the call with it".to_owned();
    bare_text(StatusCode::INTERNAL_SERVER_ERROR, text)
}

fn json(body: McpBody) -> Response<McpBody> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A body of several pieces, none of which is copied.
struct Pieces(VecDeque<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}
