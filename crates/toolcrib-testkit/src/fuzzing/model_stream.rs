//! Any bytes as a streamed answer of a model.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;
use toolcrib_tool::ToolResult;
use toolcrib_wire::model::{
    Answer, Conversation, DecoderSettings, Item, ModelError, ModelEvent, ModelItem, RequestHead,
    StreamDecoder, ToolChoice, View, Wire,
};

/// Any bytes as a stream of chat completions. Promises:
///
/// - Events and answer do not depend on where the bytes are cut, and are those of the same events as a naive reader of
///   server-sent events finds them.
/// - More bytes only add events.
/// - Every call has a name and an id of its own; every item is stored and read back.
/// - The answer and results for its calls make a valid request, which contains every raw call.
pub fn chat_stream(data: &[u8]) {
    model_stream(Wire::Chat, data);
}

/// Any bytes as a stream of Responses, with the promises of [`chat_stream`].
pub fn responses_stream(data: &[u8]) {
    model_stream(Wire::Responses, data);
}

/// Any bytes as a stream of Anthropic's messages, with the promises of [`chat_stream`].
pub fn anthropic_stream(data: &[u8]) {
    model_stream(Wire::Anthropic, data);
}

fn model_stream(wire: Wire, data: &[u8]) {
    let (events, answer) = decode(wire, [data]);
    for size in [1, 2, 3 + data.len() % 61] {
        let (cut_events, cut_answer) = decode(wire, data.chunks(size));
        assert_eq!(events, cut_events, "in pieces of {size}");
        assert_eq!(answer, cut_answer, "in pieces of {size}");
    }
    let naive = decode(wire, [&*plain(data)]);
    assert_eq!(naive, (events.clone(), answer.clone()), "of the same events");
    let mut decoder = StreamDecoder::new(wire, DecoderSettings::new("fuzz/m"));
    let mut beginning = Vec::new();
    if decoder.push(&data[..data.len() / 2], &mut beginning).is_ok() {
        assert!(events.starts_with(&beginning), "more bytes only add events");
    }
    if let Ok(answer) = answer {
        assert_answer(wire, answer);
    }
}

fn decode<'a>(
    wire: Wire,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ModelEvent>, Result<Answer, ModelError>) {
    let mut decoder = StreamDecoder::new(wire, DecoderSettings::new("fuzz/m"));
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut events) {
            return (events, Err(error));
        }
    }
    let answer = decoder.finish(&mut events);
    (events, answer)
}

/// The same events with one line feed after each line and without anything that a reader skips.
fn plain(data: &[u8]) -> Vec<u8> {
    let mark = "\u{feff}".as_bytes();
    let (mut plain, data) = match data.strip_prefix(mark) {
        Some(rest) => (mark.to_vec(), rest),
        None => (Vec::new(), data),
    };
    let mut lines = vec![Vec::new()];
    let mut bytes = data.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if_eq(&&b'\n');
                lines.push(Vec::new());
            }
            b'\n' => lines.push(Vec::new()),
            _ => lines.last_mut().expect("there is always a line").push(*byte),
        }
    }
    // The last line did not end.
    let unfinished = lines.pop().unwrap_or_default();
    for line in lines {
        if line.is_empty() || line == b"data" || line.starts_with(b"data:") {
            plain.extend_from_slice(&line);
            plain.push(b'\n');
        }
    }
    plain.extend(unfinished);
    plain
}

fn assert_answer(wire: Wire, answer: Answer) {
    let stored = serde_json::to_string(&answer.items).expect("items are stored");
    let read: Vec<ModelItem> = serde_json::from_str(&stored).expect("stored items are read");
    assert_eq!(read, answer.items);
    let mut ids = HashSet::new();
    let mut results = Vec::new();
    for call in answer.calls() {
        assert!(!call.name.is_empty() && ids.insert(call.id.clone()), "{call:?}");
        let done = ToolResult::success(call.id.clone(), "tool", "done".into(), Duration::ZERO);
        results.push(Item::from(done));
    }
    let raws: Vec<String> = answer.items.iter().map(|item| item.raw().to_owned()).collect();
    let head = RequestHead::new("m", "fuzz/m");
    let mut conversation = Conversation::new(wire, &head).expect("a plain head");
    let items: Vec<Item> = answer.items.into_iter().map(Item::from).collect();
    conversation.push(&items).expect("an answer is taken back");
    conversation.push(&results).expect("its results are taken");
    let body = conversation.request(&ToolChoice::Auto).expect("every call has its result");
    serde_json::from_str::<Value>(&body).expect("a request is JSON");
    for (item, raw) in items.iter().zip(raws) {
        if let Item::Model(item) = item
            && matches!(item.view(), View::Call(_))
        {
            assert!(body.contains(&raw), "{raw} goes back unchanged");
        }
    }
}
