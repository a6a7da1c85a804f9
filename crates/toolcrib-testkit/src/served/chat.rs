//! Chat completions, in chunks and at once.

use serde_json::{Value, json};

use super::events::plain_events;
use super::items::{expect_count, expect_list, expect_text};

/// Checks a whole stream of chunks as it is sent, `[DONE]` included, and puts the message together that it tells.
/// `include_usage` is what the client has asked for.
pub fn check_chunks(stream: &str, include_usage: bool) -> Result<Value, String> {
    let (chunks, is_done) = plain_events(stream)?;
    if !is_done {
        return Err("the stream must end with `data: [DONE]`".to_owned());
    }
    let mut message = Message::default();
    let mut finish = None;
    let mut usage = None;
    for (number, chunk) in chunks.iter().enumerate() {
        let at = |problem: String| format!("chunk {number}: {problem}");
        check_envelope(chunk, "chat.completion.chunk", &chunks[0]).map_err(at)?;
        if usage.is_some() {
            return Err(at("nothing follows the tokens".to_owned()));
        }
        let choices = expect_list(chunk, "choices").map_err(at)?;
        if include_usage != chunk.get("usage").is_some() {
            return Err(at("`usage` is in every chunk exactly if it was asked for".to_owned()));
        }
        let [choice] = choices else {
            if !choices.is_empty() || finish.is_none() {
                return Err(at("there is one choice until the answer is finished".to_owned()));
            }
            usage = Some(chunk["usage"].clone());
            continue;
        };
        if finish.is_some() {
            return Err(at("nothing follows the reason why the answer ended".to_owned()));
        }
        if choice["index"] != 0 {
            return Err(at("the choice is the first".to_owned()));
        }
        message.add(number, &choice["delta"]).map_err(at)?;
        finish = choice["finish_reason"].as_str().map(str::to_owned);
    }
    let finish = finish.ok_or("the answer must have a reason why it ended")?;
    if include_usage {
        let usage = usage.ok_or("the tokens must be in the last chunk")?;
        check_usage(&usage)?;
    }
    check_reason(&finish, !message.calls.is_empty())?;
    Ok(message.to_value(&finish))
}

/// Checks a completion that was not streamed, and gives its message as [`check_chunks`] does.
pub fn check_completion(completion: &Value) -> Result<Value, String> {
    check_envelope(completion, "chat.completion", completion)?;
    let [choice] = expect_list(completion, "choices")? else {
        return Err("there must be one choice".to_owned());
    };
    let message = &choice["message"];
    if message["role"] != "assistant" || message.get("content").is_none() {
        return Err(format!("the message must have a role and content: {message}"));
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        expect_text(call, "id")?;
        let kind = expect_text(call, "type")?;
        expect_text(&call[kind], "name")?;
    }
    let finish = expect_text(choice, "finish_reason")?;
    check_reason(finish, calls.is_some())?;
    if !completion["usage"].is_null() {
        check_usage(&completion["usage"])?;
    }
    Ok(json!({
        "content": message["content"].as_str().unwrap_or_default(),
        "refusal": message["refusal"].as_str().unwrap_or_default(),
        "tool_calls": calls.cloned().unwrap_or_default(),
        "finish_reason": finish,
    }))
}

fn check_envelope(value: &Value, object: &str, first: &Value) -> Result<(), String> {
    if value["object"] != object {
        return Err(format!("`object` must be {object:?}"));
    }
    for name in ["id", "model"] {
        if expect_text(value, name)?.is_empty() || value[name] != first[name] {
            return Err(format!("`{name}` must be the same in all chunks"));
        }
    }
    if expect_count(value, "created")? != expect_count(first, "created")? {
        return Err("`created` must be the same in all chunks".to_owned());
    }
    Ok(())
}

fn check_usage(usage: &Value) -> Result<(), String> {
    if usage.is_null() {
        return Ok(());
    }
    let prompt = expect_count(usage, "prompt_tokens")?;
    let answer = expect_count(usage, "completion_tokens")?;
    if expect_count(usage, "total_tokens")? != prompt + answer {
        return Err("`total_tokens` must be the sum of the other two".to_owned());
    }
    Ok(())
}

fn check_reason(reason: &str, has_calls: bool) -> Result<(), String> {
    match reason {
        "tool_calls" if !has_calls => Err("there are no calls to wait for".to_owned()),
        "stop" if has_calls => Err("an answer with calls ends with tool_calls".to_owned()),
        "stop" | "length" | "tool_calls" | "content_filter" => Ok(()),
        other => Err(format!("there is no reason {other:?}")),
    }
}

/// The message that the deltas make.
#[derive(Default)]
struct Message {
    content: String,
    refusal: String,
    calls: Vec<Value>,
}

impl Message {
    fn add(&mut self, number: usize, delta: &Value) -> Result<(), String> {
        if (number == 0) != (delta["role"] == "assistant") {
            return Err("the role is in the first chunk and in no other".to_owned());
        }
        self.content.push_str(delta["content"].as_str().unwrap_or_default());
        self.refusal.push_str(delta["refusal"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(expect_count(call, "index")?).unwrap_or(usize::MAX);
            if index == self.calls.len() {
                expect_text(call, "id")?;
                let kind = expect_text(call, "type")?;
                expect_text(&call[kind], "name")?;
                let mut call = call.clone();
                call.as_object_mut().map(|call| call.remove("index"));
                self.calls.push(call);
                continue;
            }
            let begun = self.calls.get_mut(index).ok_or("calls begin in order")?;
            if call.get("id").is_some() {
                return Err("the id comes once".to_owned());
            }
            let kind = begun["type"].as_str().unwrap_or_default().to_owned();
            let key = if kind == "custom" { "input" } else { "arguments" };
            let piece = expect_text(&call[&kind], key)?;
            let whole = expect_text(&begun[&kind], key)?.to_owned() + piece;
            begun[&kind][key] = whole.into();
        }
        Ok(())
    }

    fn to_value(&self, finish: &str) -> Value {
        json!({
            "content": self.content,
            "refusal": self.refusal,
            "tool_calls": self.calls,
            "finish_reason": finish,
        })
    }
}
