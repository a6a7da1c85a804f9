//! Errors for input that is not a message at all.

use std::fmt::Display;

use memchr::memchr2_iter;
use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use serde_json::Value;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The error for an unreadable message, and the request to answer.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The request's id, if it could be found.
    id: Option<RequestId>,
    pub(crate) error: ErrorData,
}

/// Why these bytes are not unambiguous JSON; `None` if they are, whatever the protocol library
/// makes of them.
///
/// Ambiguous JSON, for example with a duplicate key, is refused like invalid JSON. Its request is
/// answered if it has an id, so that the client does not wait.
pub(crate) fn unreadable(bytes: &[u8]) -> Option<Unreadable> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(parse_error(format_args!("it is not UTF-8: {error}"))),
    };
    match toolcrib_json::parse(text) {
        Ok(_) => too_deep(text),
        Err(error) => Some(match serde_json::from_str::<Value>(text) {
            Err(_) => parse_error(error),
            Ok(message) => Unreadable {
                id: request_id(&message),
                error: ErrorData::invalid_request(
                    format!("this is not an unambiguous JSON message: {error}"),
                    None,
                ),
            },
        }),
    }
}

/// The id of a request, if an answer can carry it.
fn request_id(message: &Value) -> Option<RequestId> {
    message.get("method")?;
    match message.get("id")? {
        Value::String(id) => Some(RequestId::String(id.as_str().into())),
        Value::Number(id) => id.as_i64().map(RequestId::Number),
        _ => None,
    }
}

/// The error for JSON that is nested more deeply than the protocol library reads.
pub(crate) fn too_deep(text: &str) -> Option<Unreadable> {
    let mut opened = memchr2_iter(b'{', b'[', text.as_bytes());
    opened.nth(toolcrib_json::MAX_DEPTH - 1)?;
    serde_json::from_str::<Value>(text).err().map(parse_error)
}

/// The error for a message longer than `limit` bytes.
pub(crate) fn too_long(limit: usize) -> Unreadable {
    parse_error(format_args!("it is longer than {limit} bytes: send a smaller message"))
}

fn parse_error(why: impl Display) -> Unreadable {
    let error = ErrorData::parse_error(format!("this is not a JSON message: {why}"), None);
    Unreadable { id: None, error }
}

impl From<ErrorData> for Unreadable {
    /// An error without a known request.
    fn from(error: ErrorData) -> Self {
        Self { id: None, error }
    }
}

impl Unreadable {
    /// The answer. Without a known id it carries none, as the MCP specification requires.
    pub(crate) fn answer(self) -> Vec<u8> {
        // A number and two strings always serialise.
        serde_json::to_vec(&JsonRpcError::new(self.id, self.error)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn unreadable_input_is_reported_with_its_position() {
        for (bytes, why) in [
            (&b"{"[..], "the text ends"),
            (b"", "the text ends"),
            (b"{} {}", "at byte 3"),
            (b"{\"a\":\"\xc3\x28\"}", "not UTF-8"),
            ("[".repeat(129).as_bytes(), "levels of nesting"),
            (format!("{}{}", "[".repeat(128), "]".repeat(128)).as_bytes(), "recursion limit"),
            (br#"{"a":"\ud800"}"#, "at byte"),
        ] {
            let error = unreadable(bytes).unwrap_or_else(|| panic!("{bytes:?}"));
            assert_eq!(error.error.code, ErrorCode::PARSE_ERROR);
            assert!(error.error.message.contains(why), "{}", error.error.message);
        }
    }

    #[test]
    fn a_request_with_a_duplicate_key_is_refused_under_its_id() {
        for (text, id) in [
            (r#"{"id":7,"method":"tools/call","params":{"arguments":{"a":1,"a":2}}}"#, json!(7)),
            (r#"{"id":"x","method":"ping","method":"ping"}"#, json!("x")),
            (r#"{"id":7,"result":{"a":1,"a":2}}"#, json!(null)),
        ] {
            let error = unreadable(text.as_bytes()).unwrap();
            let answer: Value = serde_json::from_slice(&error.answer()).unwrap();
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&id, &json!(-32600)),
                "{answer}"
            );
        }
    }

    #[test]
    fn any_json_is_readable_even_if_it_is_not_a_message() {
        let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
        let wide = "[{}]".repeat(200).replace("][", ",");
        for bytes in [deep.as_bytes(), wide.as_bytes(), b"7", b" [] ", b"\xef\xbb\xbf{}", b"{}\r\n"]
        {
            assert!(unreadable(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn an_error_without_an_id_is_one_line() {
        let answer: Value = serde_json::from_slice(&too_long(7).answer()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&().into(), &(-32700).into()));
    }
}
