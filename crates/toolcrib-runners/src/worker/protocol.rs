//! The lines to and from a worker: `jsonl`.

use serde_json::{Map, Value};
use toolcrib_tool::{ByteMasks, Data, canonical_json};

use crate::output::masked_json::from_slice;
use crate::output::streams::masked;

/// The line of one call. `arguments` is JSON text; a line end in it can only be between tokens.
pub(super) fn call(id: u64, tool: &str, arguments: &str, context: &Map<String, Value>) -> Vec<u8> {
    let mut line = Vec::with_capacity(arguments.len() + tool.len() + 64);
    line.extend_from_slice(b"{\"id\":");
    line.extend_from_slice(id.to_string().as_bytes());
    // A tool's name contains no character that JSON escapes.
    line.extend_from_slice(b",\"tool\":\"");
    line.extend_from_slice(tool.as_bytes());
    line.extend_from_slice(b"\",\"arguments\":");
    let start = line.len();
    line.extend_from_slice(arguments.as_bytes());
    for byte in &mut line[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.extend_from_slice(b",\"context\":");
    if context.is_empty() {
        line.extend_from_slice(b"{}");
    } else {
        line.extend_from_slice(canonical_json(&Value::Object(context.clone())).as_bytes());
    }
    line.extend_from_slice(b"}\n");
    line
}

/// The line that cancels a call.
pub(super) fn cancel(id: u64) -> Vec<u8> {
    format!("{{\"cancel\":{id}}}\n").into_bytes()
}

/// What a worker answers.
#[derive(Debug, PartialEq)]
pub(super) enum WorkerReply {
    Success { output: Option<String>, data: Option<Data> },
    Failure { message: String, retryable: bool },
}

/// Parses an answer: the call's number and the reply. Fails with a clause about the line that shows its beginning with
/// secrets masked.
pub(super) fn answer(line: &[u8], masks: Option<&ByteMasks>) -> Result<(u64, WorkerReply), String> {
    let not_one = |problem: &str| {
        let line = masked(line, masks);
        let start: String = String::from_utf8_lossy(&line).chars().take(200).collect();
        format!("wrote an invalid answer ({problem}): {start}")
    };
    let whole =
        from_slice(line).map_err(|_| not_one("it is not JSON; write logs to standard error"))?;
    // Only the data may contain numbers that the value type cannot hold.
    let exact = whole.is_rounded().then(|| whole.protected().get("data").cloned()).flatten();
    let value = if whole.is_rounded() { whole.value().clone() } else { whole.into_protected() };
    let Value::Object(mut members) = value else { return Err(not_one("it is not an object")) };
    let Some(id) = members.get("id").and_then(Value::as_u64) else {
        return Err(not_one("it has no call `id`"));
    };
    let rounded = members.remove("data").map(Data::from);
    let data = exact.map(Data::from_protected).or(rounded);
    let reply = match (members.remove("error"), members.remove("output"), data) {
        (None | Some(Value::Null), None, None) => {
            return Err(not_one("it has none of `output`, `data` and `error`"));
        }
        (None | Some(Value::Null), None | Some(Value::Null), data) => {
            WorkerReply::Success { output: None, data }
        }
        (None | Some(Value::Null), Some(Value::String(output)), data) => {
            WorkerReply::Success { output: Some(output), data }
        }
        (None | Some(Value::Null), Some(_), _) => return Err(not_one("its `output` is not text")),
        (Some(Value::String(message)), ..) => WorkerReply::Failure { message, retryable: false },
        (Some(error), ..) => {
            let message = error.get("message").and_then(Value::as_str);
            let Some(message) = message else {
                return Err(not_one("its `error` is neither text nor an object with a `message`"));
            };
            let retryable = error.get("retryable") == Some(&Value::Bool(true));
            WorkerReply::Failure { message: message.to_owned(), retryable }
        }
    };
    Ok((id, reply))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_one_line_whatever_its_arguments_hold() {
        let context = json!({"user": "a\nb"}).as_object().unwrap().clone();
        let line = call(7, "geo", "{\"a\":\r\n \"x\\ny\"}", &context);
        assert_eq!(memchr::memchr(b'\n', &line), Some(line.len() - 1));
        assert_eq!(
            serde_json::from_slice::<Value>(&line).unwrap(),
            json!({"id": 7, "tool": "geo", "arguments": {"a": "x\ny"}, "context": {"user": "a\nb"}})
        );
        assert_eq!(cancel(7), b"{\"cancel\":7}\n");
    }

    #[test]
    fn valid_answers_are_read_and_invalid_ones_are_named() {
        let read = |line: &str| answer(line.as_bytes(), None);
        let success = |output: Option<&str>, data: Option<Value>| {
            let data = data.map(Data::from);
            (3, WorkerReply::Success { output: output.map(str::to_owned), data })
        };
        assert_eq!(read(r#"{"id":3,"output":"a"}"#).unwrap(), success(Some("a"), None));
        assert_eq!(read(r#"{"data":[1],"id":3,"x":1}"#).unwrap(), success(None, Some(json!([1]))));
        assert_eq!(
            read(r#"{"id":3,"output":"a","data":null,"error":null}"#).unwrap(),
            success(Some("a"), Some(Value::Null))
        );
        let failure = |retryable| (3, WorkerReply::Failure { message: "no".into(), retryable });
        assert_eq!(read(r#"{"id":3,"error":"no"}"#).unwrap(), failure(false));
        assert_eq!(
            read(r#"{"id":3,"error":{"message":"no","retryable":true}}"#).unwrap(),
            failure(true)
        );
        for (line, problem) in [
            ("loading…", "it is not JSON; write logs to standard error"),
            ("[3]", "it is not an object"),
            (r#"{"id":"3","output":""}"#, "it has no call `id`"),
            (r#"{"id":3}"#, "it has none of `output`, `data` and `error`"),
            (r#"{"id":3,"output":5}"#, "its `output` is not text"),
            (
                r#"{"id":3,"error":{}}"#,
                "its `error` is neither text nor an object with a `message`",
            ),
        ] {
            let said = read(line).unwrap_err();
            assert!(said.contains(problem) && said.ends_with(line), "{said}");
        }
    }
}
