//! The requests of one client that have not been answered yet, by id.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use serde::Deserialize as _;
use toolcrib_json::{Cursor, Tape};

/// The ids of requests that have not been answered yet. Cloning it is cheap; clones are one set.
///
/// The protocol library answers only one of several requests with one id. The others are refused before
/// it sees them, so that each request is answered.
#[derive(Clone, Default)]
pub(crate) struct OpenRequests(Arc<Mutex<HashSet<Box<str>>>>);

impl OpenRequests {
    fn ids(&self) -> MutexGuard<'_, HashSet<Box<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request with this id is open. The id is spelled as [`id_text`] spells it.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.ids().contains(id)
    }

    /// Adds a request; false if one with this id is open.
    pub(crate) fn open(&self, id: &str) -> bool {
        let mut ids = self.ids();
        !ids.contains(id) && ids.insert(id.into())
    }

    /// Removes a request that is answered, or was cancelled and gets no answer.
    pub(crate) fn close(&self, id: &str) {
        self.ids().remove(id);
    }

    /// Adds the request that a message is; the error if one with its id is open. A message that
    /// cancels a request removes that. Other messages pass.
    pub(crate) fn note(&self, message: &Tape<'_>) -> Result<(), Vec<u8>> {
        let message = message.root();
        let Some(method) = message.get("method") else { return Ok(()) };
        if let Some(id) = message.get("id").and_then(request_id) {
            let text = id_text(&id);
            return if self.open(&text) { Ok(()) } else { Err(refusal(id)) };
        }
        if method.equals("notifications/cancelled")
            && let Some(id) = message.get("params").and_then(|params| params.get("requestId"))
            && let Some(id) = request_id(id)
        {
            self.close(&id_text(&id));
        }
        Ok(())
    }

    /// Removes the requests that these lines of the protocol library answer.
    pub(crate) fn note_answers(&self, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n') {
            // The library writes the members in this order.
            let Some(rest) = line.strip_prefix(br#"{"jsonrpc":"2.0","#) else { continue };
            if rest.starts_with(br#""error":"#) {
                // It answers a message that it could not read. Which one is not known, so that none is
                // refused because of it.
                self.ids().clear();
            } else if let Some(rest) = rest.strip_prefix(br#""id":"#) {
                let mut values =
                    serde_json::Deserializer::from_slice(rest).into_iter::<RequestId>();
                let Some(Ok(id)) = values.next() else { continue };
                let rest = &rest[values.byte_offset()..];
                if rest.starts_with(br#","result""#) || rest.starts_with(br#","error""#) {
                    self.close(&id_text(&id));
                }
            }
        }
    }
}

fn request_id(id: Cursor<'_>) -> Option<RequestId> {
    RequestId::deserialize(id).ok()
}

/// An id as JSON text.
pub(crate) fn id_text(id: &RequestId) -> String {
    // A number or a text always serializes.
    serde_json::to_string(id).unwrap_or_default()
}

/// The error for a request whose id, as JSON text, is in use.
pub(crate) fn in_use(id: &str) -> ErrorData {
    let text = format!(
        "the id {id} is in use by a request that is not answered yet: give each request its own id"
    );
    ErrorData::invalid_request(text, None)
}

/// The answer to such a request.
pub(crate) fn refusal(id: RequestId) -> Vec<u8> {
    let error = in_use(&id_text(&id));
    serde_json::to_vec(&JsonRpcError::new(Some(id), error)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(open: &OpenRequests, message: &str) -> bool {
        open.note(&toolcrib_json::parse(message).unwrap()).is_ok()
    }

    #[test]
    fn an_id_is_free_again_once_its_request_is_answered_or_cancelled() {
        let open = OpenRequests::default();
        for (request, end) in [
            (r#"{"id":7,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            (r#"{"id":1e1,"method":"a"}"#, r#"{"jsonrpc":"2.0","id":10,"error":{"code":1}}"#),
            (r#"{"method":"a","id":"\u0061\n"}"#, r#"{"jsonrpc":"2.0","id":"a\n","result":{}}"#),
            (r#"{"id":"x","method":"a"}"#, r#"{"jsonrpc":"2.0","error":{"code":-32600}}"#),
        ] {
            assert!(note(&open, request) && !note(&open, request), "{request}");
            open.note_answers(
                b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\"}\n",
            );
            open.note_answers(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n");
            assert!(!note(&open, request), "{request}");
            open.note_answers(format!("{{}}\n{end}\n").as_bytes());
            assert!(note(&open, request), "{request}");
            open.ids().clear();
        }
        assert!(note(&open, r#"{"id":7,"method":"ping"}"#));
        assert!(note(&open, r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#));
        assert!(note(&open, r#"{"id":7,"method":"ping"}"#));
    }

    #[test]
    fn messages_without_an_id_that_can_be_read_pass() {
        let open = OpenRequests::default();
        for message in [
            r#"{"method":"notifications/initialized"}"#,
            r#"{"id":1.5,"method":"ping"}"#,
            r#"{"id":null,"method":"ping"}"#,
            r#"{"id":1,"result":{}}"#,
            "[1]",
            "7",
        ] {
            assert!(note(&open, message) && note(&open, message), "{message}");
        }
        assert!(open.ids().is_empty());
    }
}
