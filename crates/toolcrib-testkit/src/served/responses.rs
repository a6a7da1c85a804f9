//! A stream of events of the Responses API.

use std::collections::BTreeSet;

use serde_json::Value;

use super::events::named_events;
use super::items::{
    COMMON, Dialect, check_added, check_done, check_part, expect_count, expect_text, kind_of,
};
use super::resource::check_response;

/// What a stream came to.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedStream {
    /// The response in the last event.
    pub response: Value,
    /// The names of the events, in order.
    pub names: Vec<String>,
}

/// Checks a whole stream as it is sent, `[DONE]` included.
pub fn check_stream(dialect: Dialect, stream: &str) -> Result<CheckedStream, String> {
    check_events(dialect, &named_events(stream)?)
}

/// Checks the events of a whole response.
pub fn check_events(dialect: Dialect, events: &[Value]) -> Result<CheckedStream, String> {
    let mut checker = Checker {
        dialect,
        id: None,
        items: Vec::new(),
        ids: BTreeSet::new(),
        names: Vec::new(),
        had_error: false,
        last: None,
    };
    for (number, event) in events.iter().enumerate() {
        checker.event(number, event).map_err(|problem| format!("event {number}: {problem}"))?;
    }
    let response = checker.last.ok_or("the stream must have a last event with the response")?;
    Ok(CheckedStream { response, names: checker.names })
}

struct Checker {
    dialect: Dialect,
    /// The response's id.
    id: Option<String>,
    items: Vec<Item>,
    ids: BTreeSet<String>,
    names: Vec<String>,
    had_error: bool,
    /// The response of the last event.
    last: Option<Value>,
}

/// An item and the events about it.
struct Item {
    added: Value,
    events: Vec<Value>,
    done: Option<Value>,
}

impl Checker {
    fn event(&mut self, number: usize, event: &Value) -> Result<(), String> {
        if self.last.is_some() {
            return Err("nothing follows the last event".to_owned());
        }
        let name = expect_text(event, "type")?.to_owned();
        if expect_count(event, "sequence_number")? != number as u64 {
            return Err(format!("the number must be {number}: {event}"));
        }
        if self.had_error && name != "response.failed" {
            return Err("the response fails after an error".to_owned());
        }
        self.check_begin(&name)?;
        self.names.push(name.clone());
        match name.as_str() {
            "response.created"
            | "response.queued"
            | "response.in_progress"
            | "response.completed"
            | "response.incomplete"
            | "response.failed" => self.response(&name, &event["response"]),
            "response.output_item.added" => self.added(event),
            "response.output_item.done" => self.done(event),
            "error" => {
                self.had_error = true;
                for place in [event, &event["error"]] {
                    expect_text(place, "code")?;
                    expect_text(place, "message")?;
                }
                Ok(())
            }
            _ => self.about_item(event),
        }
    }

    /// The first two or three events say that the response has begun.
    fn check_begin(&self, name: &str) -> Result<(), String> {
        let before: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let is_allowed = match before.as_slice() {
            [] => name == "response.created",
            ["response.created"] => {
                matches!(name, "response.in_progress" | "response.queued")
            }
            ["response.created", "response.queued"] => name == "response.in_progress",
            _ => !matches!(name, "response.created" | "response.queued" | "response.in_progress"),
        };
        if is_allowed { Ok(()) } else { Err(format!("{name} cannot follow {before:?}")) }
    }

    fn response(&mut self, name: &str, response: &Value) -> Result<(), String> {
        check_response(self.dialect, response)?;
        let id = expect_text(response, "id")?;
        if self.id.get_or_insert_with(|| id.to_owned()) != id {
            return Err(format!("the response has changed its id to {id:?}"));
        }
        let status = expect_text(response, "status")?;
        let expected = match name {
            // A response that waits is created waiting.
            "response.created" if status == "queued" => "queued",
            "response.created" => "in_progress",
            other => other.trim_start_matches("response."),
        };
        if status != expected {
            return Err(format!("{name} has a response that is {status}"));
        }
        if matches!(status, "queued" | "in_progress") {
            return Ok(());
        }
        self.check_output(status, response)?;
        self.last = Some(response.clone());
        Ok(())
    }

    /// The output is what the events have said, and nothing is left open.
    fn check_output(&self, status: &str, response: &Value) -> Result<(), String> {
        let output = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
        if output.len() != self.items.len() {
            let (told, listed) = (self.items.len(), output.len());
            return Err(format!("{told} items were told, and {listed} are in the output"));
        }
        for (index, (item, listed)) in self.items.iter().zip(output).enumerate() {
            let done = item.done.as_ref().ok_or_else(|| format!("item {index} is not done"))?;
            if done != listed {
                return Err(format!(
                    "item {index} is {done} in its event and {listed} in the output"
                ));
            }
            if done["status"] != "incomplete" {
                continue;
            }
            if status == "completed" {
                return Err(format!("a response that is completed has the incomplete item {done}"));
            }
            if done["type"] == "message" && index + 1 != output.len() {
                return Err(format!("an incomplete message must be the last item: {done}"));
            }
        }
        Ok(())
    }

    fn added(&mut self, event: &Value) -> Result<(), String> {
        let index = expect_count(event, "output_index")?;
        if index != self.items.len() as u64 {
            return Err(format!("the item must be at {}: {event}", self.items.len()));
        }
        let item = &event["item"];
        check_added(self.dialect, item)?;
        let id = expect_text(item, "id")?;
        if !self.ids.insert(id.to_owned()) {
            return Err(format!("a second item has the id {id:?}"));
        }
        self.items.push(Item { added: item.clone(), events: Vec::new(), done: None });
        Ok(())
    }

    fn item(&mut self, event: &Value) -> Result<&mut Item, String> {
        let index = expect_count(event, "output_index")?;
        let found = usize::try_from(index).ok().and_then(|index| self.items.get_mut(index));
        let item = found.ok_or_else(|| format!("the item was not added: {event}"))?;
        match item.done {
            Some(_) => Err(format!("the item was done before: {event}")),
            None => Ok(item),
        }
    }

    fn about_item(&mut self, event: &Value) -> Result<(), String> {
        let item = self.item(event)?;
        if event["item_id"] != item.added["id"] {
            return Err(format!("the id is not that of the item at this place: {event}"));
        }
        item.events.push(event.clone());
        Ok(())
    }

    fn done(&mut self, event: &Value) -> Result<(), String> {
        let dialect = self.dialect;
        let item = self.item(event)?;
        let done = &event["item"];
        check_done(dialect, done)?;
        for name in ["id", "type", "call_id", "name", "role", "server_label"] {
            if done.get(name) != item.added.get(name) {
                return Err(format!("`{name}` has changed since the item was added: {done}"));
            }
        }
        let kind = kind_of(dialect, done)?;
        check_life(dialect, kind, &item.events, done)?;
        item.done = Some(done.clone());
        Ok(())
    }
}

/// How often an event comes in the life of an item.
#[derive(Clone, Copy, PartialEq)]
enum Times {
    Once,
    Perhaps,
    Any,
    /// Once if the item has this status, otherwise never.
    If(&'static str),
    /// Once unless the item was cut.
    Whole,
}

fn life(kind: &str) -> &'static [(&'static str, Times)] {
    use Times::{Any, If, Once, Perhaps, Whole};
    match kind {
        "function_call" => &[
            ("response.function_call_arguments.delta", Any),
            ("response.function_call_arguments.done", Whole),
        ],
        "custom_tool_call" => &[
            ("response.custom_tool_call_input.delta", Any),
            ("response.custom_tool_call_input.done", Whole),
        ],
        "file_search_call" => &[
            ("response.file_search_call.in_progress", Once),
            ("response.file_search_call.searching", Perhaps),
            ("response.file_search_call.completed", If("completed")),
        ],
        "web_search_call" => &[
            ("response.web_search_call.in_progress", Once),
            ("response.web_search_call.searching", Perhaps),
            ("response.web_search_call.completed", If("completed")),
        ],
        "code_interpreter_call" => &[
            ("response.code_interpreter_call.in_progress", Once),
            ("response.code_interpreter_call_code.delta", Any),
            ("response.code_interpreter_call_code.done", Whole),
            ("response.code_interpreter_call.interpreting", Perhaps),
            ("response.code_interpreter_call.completed", If("completed")),
        ],
        "image_generation_call" => &[
            ("response.image_generation_call.in_progress", Once),
            ("response.image_generation_call.generating", Perhaps),
            ("response.image_generation_call.partial_image", Any),
            ("response.image_generation_call.completed", If("completed")),
        ],
        "mcp_call" => &[
            ("response.mcp_call.in_progress", Once),
            ("response.mcp_call_arguments.delta", Any),
            ("response.mcp_call_arguments.done", Whole),
            ("response.mcp_call.completed", If("completed")),
            ("response.mcp_call.failed", If("failed")),
        ],
        "mcp_list_tools" => &[
            ("response.mcp_list_tools.in_progress", Once),
            ("response.mcp_list_tools.completed", Once),
        ],
        _ => &[],
    }
}

/// The events between the two about the item, and what they make of it.
fn check_life(dialect: Dialect, kind: &str, events: &[Value], done: &Value) -> Result<(), String> {
    match kind {
        "message" => return check_parts(events, done, "content", "content_index"),
        "reasoning" => return check_parts(events, done, "summary", "summary_index"),
        _ => {}
    }
    let is_cut = done["status"] == "incomplete";
    let mut rest = events.iter().peekable();
    let mut written = String::new();
    for (name, times) in life(kind) {
        let name = match dialect {
            Dialect::Open if !COMMON.contains(&kind) => {
                format!("toolcrib:{}", name.trim_start_matches("response."))
            }
            _ => (*name).to_owned(),
        };
        let mut count = 0;
        while let Some(event) = rest.next_if(|event| event["type"] == name.as_str()) {
            count += 1;
            if let Some(delta) = event["delta"].as_str() {
                written.push_str(delta);
            }
            check_whole(event, done, &written)?;
        }
        let is_right = match times {
            Times::Once => count == 1,
            Times::Perhaps => count <= 1,
            Times::Any => true,
            Times::If(status) => count == usize::from(done["status"] == *status),
            Times::Whole => count == 1 || count == 0 && is_cut,
        };
        if !is_right {
            return Err(format!("{name} came {count} times for {done}"));
        }
    }
    match rest.next() {
        None => Ok(()),
        Some(event) => Err(format!("{event} has no place in the life of {done}")),
    }
}

/// The whole text in an event, if it has one: that of its deltas and of the item.
fn check_whole(event: &Value, done: &Value, written: &str) -> Result<(), String> {
    for key in ["arguments", "input", "code"] {
        let Some(whole) = event[key].as_str() else { continue };
        if whole != written {
            return Err(format!("the whole {whole:?} is not that of its pieces, {written:?}"));
        }
        if done[key] != whole {
            return Err(format!("the whole {whole:?} is not that of the item: {done}"));
        }
        if event["type"] == "response.function_call_arguments.done" && event["name"] != done["name"]
        {
            return Err(format!("the name of the function is missing: {event}"));
        }
    }
    Ok(())
}

/// The parts of a message or of reasoning: each is added, written, whole and done, one after the other.
fn check_parts(events: &[Value], done: &Value, list: &str, index: &str) -> Result<(), String> {
    let parts = done[list].as_array().map(Vec::as_slice).unwrap_or_default();
    let part_name = if list == "content" { "content_part" } else { "reasoning_summary_part" };
    let mut rest = events.iter().peekable();
    for (number, part) in parts.iter().enumerate() {
        check_part(part)?;
        let mut next = |name: &str| {
            let event = rest.next_if(|event| event["type"] == name);
            event.filter(|event| event[index] == number as u64)
        };
        let (kind, key) = match part["type"].as_str() {
            Some("refusal") => ("refusal", "refusal"),
            Some("summary_text") => ("reasoning_summary_text", "text"),
            _ => ("output_text", "text"),
        };
        let missing = |name: &str| format!("{name} is missing for part {number} of {done}");
        let name = format!("response.{part_name}.added");
        let added = next(&name).ok_or_else(|| missing(&name))?;
        if added["part"]["type"] != part["type"] || added["part"][key] != "" {
            return Err(format!("a part is empty when it is added: {added}"));
        }
        let (mut written, mut annotations) = (String::new(), Vec::new());
        loop {
            if let Some(event) = next(&format!("response.{kind}.delta")) {
                written.push_str(expect_text(event, "delta")?);
            } else if let Some(event) = next("response.output_text.annotation.added") {
                if event["annotation_index"] != annotations.len() as u64 {
                    return Err(format!("annotations are numbered from 0: {event}"));
                }
                annotations.push(event["annotation"].clone());
            } else {
                break;
            }
        }
        let name = format!("response.{kind}.done");
        let whole = next(&name).ok_or_else(|| missing(&name))?;
        let name = format!("response.{part_name}.done");
        let ended = next(&name).ok_or_else(|| missing(&name))?;
        let is_same = whole[key] == written.as_str()
            && ended["part"] == *part
            && part[key] == written.as_str()
            && (kind != "output_text" || part["annotations"] == Value::from(annotations));
        if !is_same {
            return Err(format!("part {number} of {done} is not what its events say: {written:?}"));
        }
    }
    match rest.next() {
        None => Ok(()),
        Some(event) => Err(format!("{event} belongs to no part of {done}")),
    }
}
