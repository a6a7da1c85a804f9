//! Why what a client sent is no message at all, not even a wrong one.

use std::fmt::Display;

use memchr::memchr2_iter;
use rmcp::model::{ErrorData, JsonRpcError};
use serde_json::Value;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The error for bytes that nobody can read as JSON; `None` for those that the protocol library can,
/// whatever it makes of them.
pub(crate) fn unreadable(bytes: &[u8]) -> Option<ErrorData> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(parse_error(format_args!("it is not UTF-8: {error}"))),
    };
    match toolcrib_json::parse(text) {
        Ok(_) => too_deep(text),
        // What could be understood in two ways is refused here only.
        Err(error) => serde_json::from_str::<Value>(text).err().map(|_| parse_error(error)),
    }
}

/// The error for JSON that has one level more than the protocol library reads.
pub(crate) fn too_deep(text: &str) -> Option<ErrorData> {
    let mut opened = memchr2_iter(b'{', b'[', text.as_bytes());
    opened.nth(toolcrib_json::MAX_DEPTH - 1)?;
    serde_json::from_str::<Value>(text).err().map(parse_error)
}

/// The error for what is longer than `limit` bytes.
pub(crate) fn too_long(limit: usize) -> ErrorData {
    parse_error(format_args!("it is longer than {limit} bytes: send less at once"))
}

fn parse_error(why: impl Display) -> ErrorData {
    ErrorData::parse_error(format!("this is no JSON message: {why}"), None)
}

/// The answer to what belongs to no request that could be read.
pub(crate) fn answer(error: ErrorData) -> Vec<u8> {
    // A number and two texts always serialise.
    serde_json::to_vec(&JsonRpcError::new(None, error)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorCode;

    use super::*;

    #[test]
    fn what_nobody_can_read_is_said_to_be_so_and_where() {
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
            assert_eq!(error.code, ErrorCode::PARSE_ERROR);
            assert!(error.message.contains(why), "{}", error.message);
        }
    }

    #[test]
    fn what_is_json_is_readable_though_it_may_be_no_message() {
        let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
        let wide = "[{}]".repeat(200).replace("][", ",");
        for bytes in [
            deep.as_bytes(),
            wide.as_bytes(),
            b"7",
            b" [] ",
            br#"{"a":1,"a":2}"#,
            b"\xef\xbb\xbf{}",
            b"{}\r\n",
        ] {
            assert!(unreadable(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn the_answer_is_one_line_for_no_request() {
        let answer: Value = serde_json::from_slice(&answer(too_long(7))).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&().into(), &(-32700).into()));
    }
}
