//! The streams of a scripted model.

use serde_json::{Value, json};
use toolcrib_wire::model::Wire;

use super::reply::Reply;

/// Characters of a delta.
const DELTA: usize = 7;
/// Tokens of every request.
const INPUT_TOKENS: u64 = 100;
/// Tokens of every answer.
const OUTPUT_TOKENS: u64 = 20;

/// The stream of the reply with this number.
pub(super) fn bytes(wire: Wire, reply: &Reply, number: usize) -> Vec<u8> {
    if let Some(body) = &reply.body {
        return body.clone();
    }
    match wire {
        Wire::Responses => responses(reply, number),
        Wire::Anthropic => anthropic(reply, number),
        _ => chat(reply, number),
    }
    .into_bytes()
}

fn deltas(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(DELTA).map(|piece| piece.iter().collect()).collect()
}

fn chat(reply: &Reply, number: usize) -> String {
    let mut stream = String::new();
    let mut chunk = |delta: Value, finish: Option<&str>| {
        let chunk = json!({
            "id": format!("chatcmpl_{number}"),
            "object": "chat.completion.chunk",
            "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        stream.extend(["data: ", &chunk.to_string(), "\n\n"]);
    };
    chunk(json!({"role": "assistant", "content": ""}), None);
    for delta in reply.reasoning.iter().flat_map(|text| deltas(text)) {
        chunk(json!({"reasoning_content": delta}), None);
    }
    for delta in reply.text.iter().flat_map(|text| deltas(text)) {
        chunk(json!({"content": delta}), None);
    }
    for (index, (name, arguments)) in reply.calls.iter().enumerate() {
        let id = Reply::call_id(number, index);
        let head = json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""}});
        chunk(json!({"tool_calls": [head]}), None);
        for delta in deltas(arguments) {
            let piece = json!({"index": index, "function": {"arguments": delta}});
            chunk(json!({"tool_calls": [piece]}), None);
        }
    }
    let finish = match (reply.is_cut_by_length, reply.calls.is_empty()) {
        (true, _) => "length",
        (false, true) => "stop",
        (false, false) => "tool_calls",
    };
    chunk(json!({}), Some(finish));
    let usage = json!({"id": format!("chatcmpl_{number}"), "choices": [],
        "usage": {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS}});
    stream.extend(["data: ", &usage.to_string(), "\n\ndata: [DONE]\n\n"]);
    stream
}

fn responses(reply: &Reply, number: usize) -> String {
    let mut events = Vec::new();
    let mut output = Vec::new();
    let mut say = |kind: &str, mut event: Value| {
        event["type"] = kind.into();
        event["sequence_number"] = events.len().into();
        events.push(format!("event: {kind}\ndata: {event}\n\n"));
    };
    let resource = |status: &str, output: &[Value]| {
        json!({"id": format!("resp_{number}"), "object": "response", "model": "scripted",
            "status": status, "output": output})
    };
    say("response.created", json!({"response": resource("in_progress", &[])}));
    if let Some(text) = &reply.reasoning {
        let item = json!({"id": format!("rs_{number}"), "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": Reply::signature(number)});
        let at = output.len();
        say(
            "response.output_item.added",
            json!({"output_index": at,
            "item": {"id": format!("rs_{number}"), "type": "reasoning", "summary": []}}),
        );
        for delta in deltas(text) {
            say(
                "response.reasoning_summary_text.delta",
                json!({"output_index": at, "summary_index": 0, "delta": delta}),
            );
        }
        say("response.output_item.done", json!({"output_index": at, "item": item}));
        output.push(item);
    }
    if let Some(text) = &reply.text {
        let at = output.len();
        let id = format!("msg_{number}");
        let item = json!({"id": id, "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]});
        say(
            "response.output_item.added",
            json!({"output_index": at,
            "item": {"id": id, "type": "message", "role": "assistant", "content": []}}),
        );
        for delta in deltas(text) {
            say(
                "response.output_text.delta",
                json!({"output_index": at, "content_index": 0, "item_id": id, "delta": delta}),
            );
        }
        say("response.output_item.done", json!({"output_index": at, "item": item}));
        output.push(item);
    }
    for (index, (name, arguments)) in reply.calls.iter().enumerate() {
        let at = output.len();
        let item = |arguments: &str| {
            json!({"id": format!("fc_{number}_{index}"), "type": "function_call", "name": name,
                "call_id": Reply::call_id(number, index), "arguments": arguments, "status": "completed"})
        };
        say("response.output_item.added", json!({"output_index": at, "item": item("")}));
        for delta in deltas(arguments) {
            say(
                "response.function_call_arguments.delta",
                json!({"output_index": at, "item_id": format!("fc_{number}_{index}"), "delta": delta}),
            );
        }
        say("response.output_item.done", json!({"output_index": at, "item": item(arguments)}));
        output.push(item(arguments));
    }
    let (kind, status) = if reply.is_cut_by_length {
        ("response.incomplete", "incomplete")
    } else {
        ("response.completed", "completed")
    };
    let mut last = resource(status, &output);
    last["usage"] = json!({"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS});
    if reply.is_cut_by_length {
        last["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    say(kind, json!({"response": last}));
    events.concat()
}

fn anthropic(reply: &Reply, number: usize) -> String {
    let mut stream = String::new();
    let mut say = |kind: &str, mut event: Value| {
        event["type"] = kind.into();
        stream.extend(["event: ", kind, "\ndata: ", &event.to_string(), "\n\n"]);
    };
    say(
        "message_start",
        json!({"message": {"id": format!("msg_{number}"), "type": "message",
        "role": "assistant", "model": "scripted", "content": [],
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1}}}),
    );
    say("ping", json!({}));
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        say("content_block_start", json!({"index": index, "content_block": start}));
        for delta in deltas {
            say("content_block_delta", json!({"index": index, "delta": delta}));
        }
        say("content_block_stop", json!({"index": index}));
        index += 1;
    };
    if let Some(text) = &reply.reasoning {
        let thinking = |delta| json!({"type": "thinking_delta", "thinking": delta});
        let mut pieces: Vec<_> = deltas(text).into_iter().map(thinking).collect();
        pieces.push(json!({"type": "signature_delta", "signature": Reply::signature(number)}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), pieces);
    }
    if let Some(text) = &reply.text {
        let piece = |delta| json!({"type": "text_delta", "text": delta});
        let pieces = deltas(text).into_iter().map(piece).collect();
        block(json!({"type": "text", "text": ""}), pieces);
    }
    for (at, (name, arguments)) in reply.calls.iter().enumerate() {
        let piece = |delta| json!({"type": "input_json_delta", "partial_json": delta});
        let pieces = deltas(arguments).into_iter().map(piece).collect();
        let start = json!({"type": "tool_use", "id": Reply::call_id(number, at), "name": name, "input": {}});
        block(start, pieces);
    }
    let stop = match (reply.is_cut_by_length, reply.calls.is_empty()) {
        (true, _) => "max_tokens",
        (false, true) => "end_turn",
        (false, false) => "tool_use",
    };
    say(
        "message_delta",
        json!({"delta": {"stop_reason": stop},
        "usage": {"output_tokens": OUTPUT_TOKENS}}),
    );
    say("message_stop", json!({}));
    stream
}
