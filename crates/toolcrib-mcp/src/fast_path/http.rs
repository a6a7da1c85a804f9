//! The fast path over HTTP, outside sessions.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use rmcp::model::ClientCapabilities;
use toolcrib_wire::McpData;

use super::answer::{PlainAnswer, answer};
use super::http_head::{accepts_answers, is_for_one_of, sender};
use super::request::PlainRequest;
use crate::McpServer;
use crate::call::client::Client;
use crate::transport::http::{McpBody, bare_text};

/// Answers plain HTTP requests that belong to no session.
pub(crate) struct HttpFastPath {
    server: McpServer,
    /// Empty allows every host.
    allowed_hosts: Vec<String>,
    /// A client of a revision with a handshake, which says nothing about itself outside a session.
    unknown_client: Arc<Client>,
}

impl HttpFastPath {
    pub(crate) fn new(server: McpServer, allowed_hosts: Vec<String>) -> Self {
        let client = Client::alone(ClientCapabilities::default(), McpData::Objects);
        Self { server, allowed_hosts, unknown_client: Arc::new(client) }
    }

    /// Answers a JSON POST without a session; `None` if the protocol library has to. Dropping the
    /// future cancels the call.
    pub(crate) async fn answer(&self, head: &Parts, body: &[u8]) -> Option<Response<McpBody>> {
        let call = match self.read(head, body)? {
            PlainAnswer::Call(call) => call,
            PlainAnswer::List(pieces) => {
                let length: usize = pieces.iter().map(Bytes::len).sum();
                let pieces = pieces.map(|piece| Ok(Frame::data(piece)));
                let mut response = json(StreamBody::new(stream::iter(pieces)).boxed());
                response.headers_mut().insert(CONTENT_LENGTH, length.into());
                return Some(response);
            }
        };
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            () = self.server.closing().cancelled() => {
                let text = "the server was closed, and the call was cancelled".to_owned();
                return Some(bare_text(StatusCode::INTERNAL_SERVER_ERROR, text));
            }
        };
        let mut response = json(Full::from(answer.text).boxed());
        if answer.is_bad_request {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        Some(response)
    }

    /// Separate, so that the parsed request is dropped before the call is awaited.
    fn read(&self, head: &Parts, body: &[u8]) -> Option<PlainAnswer> {
        let headers = &head.headers;
        if !is_for_one_of(&self.allowed_hosts, headers) || !accepts_answers(headers) {
            return None;
        }
        let tape = toolcrib_json::parse(std::str::from_utf8(body).ok()?).ok()?;
        let request = PlainRequest::read(&tape)?;
        let client = sender(headers, &request, &self.unknown_client)?;
        let repeats = client.has_input_required();
        answer(&self.server, &request, client, |turn, name| {
            // Arguments that are repeated in headers have to be compared, which the library does.
            !(repeats && self.server.tools(turn).repeats_arguments(name))
        })
    }
}

fn json(body: McpBody) -> Response<McpBody> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
