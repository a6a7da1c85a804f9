//! The lines to and from a worker: `jsonl`.

use serde_json::{Map, Value};
use toolcrib_tool::{
    ByteMasks, CallContext, Content, Data, InputRequest, StatusUpdate, canonical_json,
};

use super::{content, question};
use crate::output::masked_json::from_slice;
use crate::output::streams::masked;

/// What the call's person or client has answered to the worker's question.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answered<'c> {
    answer: Option<&'c Value>,
    remembered: Option<&'c Value>,
}

impl<'c> Answered<'c> {
    pub(super) fn of(cx: &'c CallContext) -> Self {
        Self { answer: cx.answer(), remembered: cx.remembered() }
    }
}

/// The line of one call. `arguments` is JSON text; a line end in it can only be between tokens.
pub(super) fn call(
    id: u64,
    tool: &str,
    arguments: &str,
    context: &Map<String, Value>,
    answered: Answered<'_>,
) -> Vec<u8> {
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
    for (key, value) in [("answer", answered.answer), ("remembered", answered.remembered)] {
        if let Some(value) = value {
            let value = Data::from_protected(value.clone()).to_json();
            line.extend_from_slice(format!(",\"{key}\":{value}").as_bytes());
        }
    }
    line.extend_from_slice(b"}\n");
    line
}

/// The line that cancels a call.
pub(super) fn cancel(id: u64) -> Vec<u8> {
    format!("{{\"cancel\":{id}}}\n").into_bytes()
}

/// A line of a worker about one call.
#[derive(Debug, PartialEq)]
pub(super) enum WorkerLine {
    /// The answer; nothing follows it.
    Answer(WorkerReply),
    /// For clients that watch the call, before its answer.
    Report(WorkerReport),
}

/// What a worker answers.
#[derive(Debug, PartialEq)]
pub(super) enum WorkerReply {
    Success {
        output: Option<String>,
        content: Vec<Content>,
        data: Option<Data>,
    },
    Failure {
        message: String,
        retryable: bool,
    },
    /// The call continues after somebody has answered this question.
    Question(Box<InputRequest>),
}

/// What a worker reports before its answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WorkerReport {
    /// How far it is, and what it does.
    pub(super) update: Option<StatusUpdate>,
    /// A piece of text.
    pub(super) chunk: Option<String>,
}

/// Parses a line: the call's number and what is said of it. Fails with a clause about the line that shows its beginning
/// with secrets masked.
pub(super) fn line(line: &[u8], masks: Option<&ByteMasks>) -> Result<(u64, WorkerLine), String> {
    parse(line).map_err(|problem| {
        let line = masked(line, masks);
        let start: String = String::from_utf8_lossy(&line).chars().take(200).collect();
        format!("wrote an invalid answer ({problem}): {start}")
    })
}

fn parse(line: &[u8]) -> Result<(u64, WorkerLine), String> {
    let whole = from_slice(line).map_err(|_| "it is not JSON; write logs to standard error")?;
    // Only data and what is remembered may contain numbers that the value type cannot hold.
    let exact =
        |name: &str| whole.is_rounded().then(|| whole.protected().get(name).cloned()).flatten();
    let (exact_data, exact_remembered) = (exact("data"), exact("remember"));
    let value = if whole.is_rounded() { whole.value().clone() } else { whole.into_protected() };
    let Value::Object(mut members) = value else { return Err("it is not an object".into()) };
    let Some(id) = members.get("id").and_then(Value::as_u64) else {
        return Err("it has no call `id`".into());
    };
    let mut taken = |name: &str| members.remove(name);
    let some = |value: Option<Value>| value.filter(|value| !value.is_null());
    if let Some(ask) = some(taken("ask")) {
        let remembered = exact_remembered.or_else(|| taken("remember"));
        let request = question::read(ask, remembered)?;
        return Ok((id, WorkerLine::Answer(WorkerReply::Question(Box::new(request)))));
    }
    if let Some(error) = some(taken("error")) {
        return failure(&error).map(|reply| (id, WorkerLine::Answer(reply)));
    }
    let rounded = taken("data").map(Data::from);
    let data = exact_data.map(Data::from_protected).or(rounded);
    let (output, content) = (taken("output"), some(taken("content")));
    if output.is_none() && content.is_none() && data.is_none() {
        return match report(&mut members)? {
            Some(report) => Ok((id, WorkerLine::Report(report))),
            None => Err("it has none of `output`, `content`, `data`, `error` and `ask`, and no \
                         `progress`, `message` or `chunk`"
                .into()),
        };
    }
    let output = match some(output) {
        None => None,
        Some(Value::String(output)) => Some(output),
        Some(_) => return Err("its `output` is not text".into()),
    };
    let content = content.map(content::read).transpose()?.unwrap_or_default();
    Ok((id, WorkerLine::Answer(WorkerReply::Success { output, content, data })))
}

fn failure(error: &Value) -> Result<WorkerReply, String> {
    if let Some(message) = error.as_str() {
        return Ok(WorkerReply::Failure { message: message.to_owned(), retryable: false });
    }
    let Some(message) = error.get("message").and_then(Value::as_str) else {
        return Err("its `error` is neither text nor an object with a `message`".into());
    };
    let retryable = error.get("retryable") == Some(&Value::Bool(true));
    Ok(WorkerReply::Failure { message: message.to_owned(), retryable })
}

/// Reads a line that is not an answer; `None` if it reports nothing.
fn report(members: &mut Map<String, Value>) -> Result<Option<WorkerReport>, String> {
    let mut taken = |name: &str| members.remove(name).filter(|value| !value.is_null());
    let mut number = |name: &str| match taken(name) {
        Some(value) if !value.is_number() => Err(format!("its `{name}` is not a number")),
        value => Ok(value),
    };
    let (progress, total) = (number("progress")?, number("total")?);
    let mut text = |name: &str| match taken(name) {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its `{name}` is not text")),
        None => Ok(None),
    };
    let (message, chunk) = (text("message")?, text("chunk")?);
    let update = (progress.is_some() || message.is_some()).then(|| {
        let mut update = StatusUpdate::doing();
        update.tip = message;
        let numbers = [("progress", progress), ("total", total)];
        for (name, value) in numbers.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            update = update.with_param(name, value);
        }
        update
    });
    let says_something = update.is_some() || chunk.is_some();
    Ok(says_something.then_some(WorkerReport { update, chunk }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_one_line_whatever_its_arguments_hold() {
        let context = json!({"user": "a\nb"}).as_object().unwrap().clone();
        let line = call(7, "geo", "{\"a\":\r\n \"x\\ny\"}", &context, Answered::default());
        assert_eq!(memchr::memchr(b'\n', &line), Some(line.len() - 1));
        assert_eq!(
            serde_json::from_slice::<Value>(&line).unwrap(),
            json!({"id": 7, "tool": "geo", "arguments": {"a": "x\ny"}, "context": {"user": "a\nb"}})
        );
        assert_eq!(cancel(7), b"{\"cancel\":7}\n");

        let (answer, remembered) = (json!({"town": "a\nb"}), json!(1));
        let answered = Answered { answer: Some(&answer), remembered: Some(&remembered) };
        let line = call(8, "geo", "{}", &Map::new(), answered);
        assert_eq!(memchr::memchr(b'\n', &line), Some(line.len() - 1));
        let line: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((&line["answer"], &line["remembered"]), (&answer, &remembered));
    }

    #[test]
    fn valid_answers_are_read_and_invalid_ones_are_named() {
        let read = |text: &str| line(text.as_bytes(), None);
        let success = |output: Option<&str>, data: Option<Value>| {
            let (output, data) = (output.map(str::to_owned), data.map(Data::from));
            (3, WorkerLine::Answer(WorkerReply::Success { output, content: vec![], data }))
        };
        assert_eq!(read(r#"{"id":3,"output":"a"}"#).unwrap(), success(Some("a"), None));
        assert_eq!(read(r#"{"data":[1],"id":3,"x":1}"#).unwrap(), success(None, Some(json!([1]))));
        assert_eq!(
            read(r#"{"id":3,"output":"a","data":null,"error":null}"#).unwrap(),
            success(Some("a"), Some(Value::Null))
        );
        let failure = |retryable| {
            (3, WorkerLine::Answer(WorkerReply::Failure { message: "no".into(), retryable }))
        };
        assert_eq!(read(r#"{"id":3,"error":"no"}"#).unwrap(), failure(false));
        assert_eq!(
            read(r#"{"id":3,"error":{"message":"no","retryable":true}}"#).unwrap(),
            failure(true)
        );
        for (line, problem) in [
            ("loading…", "it is not JSON; write logs to standard error"),
            ("[3]", "it is not an object"),
            (r#"{"id":"3","output":""}"#, "it has no call `id`"),
            (r#"{"id":3}"#, "it has none of `output`, `content`, `data`, `error` and `ask`"),
            (r#"{"id":3,"progress":"half"}"#, "its `progress` is not a number"),
            (r#"{"id":3,"chunk":7}"#, "its `chunk` is not text"),
            (r#"{"id":3,"content":"text"}"#, "its `content` is not a list of MCP content blocks"),
            (r#"{"id":3,"ask":"who?"}"#, "its `ask` is neither an object"),
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
    #[test]
    fn lines_before_an_answer_say_how_far_it_is() {
        let read = |text: &str| match line(text.as_bytes(), None).unwrap() {
            (3, WorkerLine::Report(report)) => report,
            other => panic!("{other:?}"),
        };
        let report = read(r#"{"id":3,"progress":0.4,"total":1,"message":"halfway","chunk":"a"}"#);
        let update = StatusUpdate::doing().with_tip("halfway");
        let update = update.with_param("progress", 0.4).with_param("total", 1);
        assert_eq!(report, WorkerReport { update: Some(update), chunk: Some("a".into()) });
        assert_eq!(
            read(r#"{"id":3,"chunk":"a"}"#),
            WorkerReport { update: None, chunk: Some("a".into()) }
        );
        // Beside an answer it is the answer that counts.
        let answer = line(br#"{"id":3,"output":"a","progress":1,"message":"done"}"#, None).unwrap();
        assert!(
            matches!(answer, (3, WorkerLine::Answer(WorkerReply::Success { .. }))),
            "{answer:?}"
        );
    }
}
