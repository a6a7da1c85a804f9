//! Answers that are too large.

use toolcrib_wire::model::{DecoderSettings, ModelErrorKind, Wire};

use super::{decode, settings};

fn chunk(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{{delta}}}}}]}}\n\n")
}

fn refused(stream: &str, settings: DecoderSettings) -> String {
    let error = decode(Wire::Chat, [stream.as_bytes()], settings).1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::TooLarge, "{error}");
    error.message
}

#[test]
fn every_dimension_of_an_answer_is_bounded() {
    let text = chunk("\"content\":\"0123456789\"").repeat(20);
    let arguments = chunk(
        r#""tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"0123456789"}}]"#,
    );
    let calls: String = (0..9)
        .map(|n| {
            chunk(&format!(
                r#""tool_calls":[{{"index":{n},"id":"c{n}","function":{{"name":"n"}}}}]"#
            ))
        })
        .collect();

    let mut small = settings();
    small.limits.stream_bytes = 200;
    assert_eq!(refused(&text, small), "the stream has more than 200 bytes");
    let mut small = settings();
    small.limits.event_bytes = 20;
    assert_eq!(refused(&text, small), "an event has more than 20 bytes");
    let mut small = settings();
    small.limits.events = 5;
    assert_eq!(refused(&text, small), "the stream has more than 5 events");
    let mut small = settings();
    small.limits.kept_bytes = 100;
    assert_eq!(refused(&text, small.clone()), "its texts and calls have more than 100 bytes");
    assert_eq!(
        refused(&arguments.repeat(20), small),
        "its texts and calls have more than 100 bytes"
    );
    let mut small = settings();
    small.limits.argument_bytes = 15;
    assert_eq!(
        refused(&arguments.repeat(2), small),
        "the arguments of call 0 have more than 15 bytes"
    );
    let mut small = settings();
    small.limits.items = 8;
    assert_eq!(refused(&calls, small), "it has more than 8 calls");
}

/// Deltas of one byte: what is kept stays the size of the arguments, whatever the stream's own size is.
#[test]
fn arguments_in_deltas_of_one_byte_fit_a_budget_of_their_own_size() {
    let size = 20_000;
    let mut settings = settings();
    settings.limits.kept_bytes = size + 16;
    let mut stream =
        chunk(r#""tool_calls":[{"index":0,"id":"a","function":{"name":"n","arguments":"\""}}]"#);
    for _ in 0..size - 2 {
        stream.push_str(&chunk(r#""tool_calls":[{"index":0,"function":{"arguments":"x"}}]"#));
    }
    stream.push_str("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"\"}}]},\"finish_reason\":\"stop\"}]}\n\n");
    let (events, answer) = decode(Wire::Chat, [stream.as_bytes()], settings);
    assert_eq!(answer.unwrap().calls().next().unwrap().arguments.len(), size);
    assert_eq!(events.len(), 1 + 1 + size + 2, "started, call, pieces, finished and stopped");
}
