//! What providers demand of requests: calls and their results in pairs, everything that the model said unchanged, and no
//! change of what was sent before.

use std::collections::BTreeMap;

use serde_json::Value;
use toolcrib_wire::model::Wire;

use super::ReceivedRequest;
use super::reply::Reply;

/// Checks the requests of one conversation.
#[derive(Debug)]
pub(super) struct Checker {
    path: &'static str,
    /// The replies that the client has, or may have.
    replies: Vec<Sent>,
    before: Option<Parts>,
    /// Whether the model may have said more than it knows.
    accepts_others: bool,
    /// Whether the beginning of the conversation may become shorter.
    accepts_compaction: bool,
    /// Whether requests need not belong to one conversation.
    accepts_several: bool,
}

/// What of a reply has to come back.
#[derive(Debug, Clone)]
struct Sent {
    calls: Vec<Call>,
    reasoning: Option<String>,
    may_be_lost: bool,
}

/// A call: id, name and arguments.
#[derive(Debug, Clone, PartialEq)]
struct Call(String, String, Value);

/// A request, taken apart.
#[derive(Debug, Clone, PartialEq)]
struct Parts {
    /// Everything but the conversation and the choice of tools.
    head: BTreeMap<String, Value>,
    items: Vec<Value>,
}

/// What of a conversation refers to the model's replies, in order.
#[derive(Debug, Default)]
struct Echo {
    calls: Vec<Call>,
    reasoning: Vec<String>,
    unanswered: Vec<String>,
}

impl Checker {
    pub(super) fn new(wire: Wire) -> Self {
        let path = match wire {
            Wire::Responses => "/v1/responses",
            Wire::Anthropic => "/v1/messages",
            _ => "/v1/chat/completions",
        };
        Self {
            path,
            replies: Vec::new(),
            before: None,
            accepts_others: false,
            accepts_compaction: false,
            accepts_several: false,
        }
    }

    /// Accepts what other models have said.
    pub(super) fn accept_other_models(&mut self) {
        self.accepts_others = true;
    }

    /// Accepts a conversation whose beginning becomes shorter.
    pub(super) fn accept_compaction(&mut self) {
        self.accepts_compaction = true;
    }

    /// Accepts requests of several conversations, in which others have spoken as well.
    pub(super) fn accept_several(&mut self) {
        (self.accepts_several, self.accepts_others) = (true, true);
    }

    /// Forgets all replies.
    pub(super) fn forget(&mut self) {
        self.replies.clear();
    }

    /// Remembers a reply.
    pub(super) fn replied(&mut self, reply: &Reply, number: usize) {
        if reply.is_lost() || reply.body.is_some() {
            return;
        }
        let call = |(index, (name, arguments)): (usize, &(String, String))| {
            Call(Reply::call_id(number, index), name.clone(), arguments_value(arguments))
        };
        self.replies.push(Sent {
            calls: reply.calls.iter().enumerate().map(call).collect(),
            reasoning: reply.reasoning.as_ref().map(|text| match self.path {
                "/v1/chat/completions" => text.clone(),
                _ => Reply::signature(number),
            }),
            may_be_lost: reply.may_be_lost(),
        });
    }

    /// Checks the next request.
    pub(super) fn check(&mut self, wire: Wire, request: &ReceivedRequest) -> Result<(), String> {
        if request.path != self.path {
            return Err(format!("the path is {}, not {}", request.path, self.path));
        }
        let parts = parts(&request.body)?;
        if let Some(before) = self.before.as_ref().filter(|_| !self.accepts_several) {
            if parts.head != before.head {
                return Err("what comes before the conversation has changed".to_owned());
            }
            if !self.accepts_compaction && !parts.items.starts_with(&before.items) {
                return Err("an item that was sent before has changed or is missing".to_owned());
            }
        }
        let echo = Echo::of(wire, &parts.items)?;
        if let Some(id) = echo.unanswered.first() {
            return Err(format!("the call {id} has no result"));
        }
        if !self.accepts_others && !self.matches(&echo) {
            // The client may have lost the last reply.
            let last = self.replies.pop_if(|last| last.may_be_lost);
            if last.is_none() || !self.matches(&echo) {
                return Err(format!(
                    "calls or reasoning did not come back as they were sent: {:?} {:?}",
                    echo.calls, echo.reasoning
                ));
            }
        }
        if let Some(last) = self.replies.last_mut() {
            last.may_be_lost =
                last.may_be_lost && last.calls.is_empty() && last.reasoning.is_none();
        }
        self.before = Some(parts);
        Ok(())
    }

    fn matches(&self, echo: &Echo) -> bool {
        let calls: Vec<_> = self.replies.iter().flat_map(|reply| &reply.calls).collect();
        let reasoning: Vec<_> =
            self.replies.iter().filter_map(|reply| reply.reasoning.as_ref()).collect();
        self.is_all_or_end(&calls, &echo.calls) && self.is_all_or_end(&reasoning, &echo.reasoning)
    }

    /// Whether everything came back, or its end where the beginning may be missing.
    fn is_all_or_end<T: PartialEq>(&self, sent: &[&T], back: &[T]) -> bool {
        let missing = sent.len().checked_sub(back.len());
        let Some(missing) = missing.filter(|missing| *missing == 0 || self.accepts_compaction)
        else {
            return false;
        };
        sent.iter().skip(missing).copied().eq(back)
    }
}

fn parts(body: &Value) -> Result<Parts, String> {
    let Some(body) = body.as_object() else { return Err("the body is not an object".to_owned()) };
    let mut head: BTreeMap<String, Value> =
        body.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    head.remove("tool_choice");
    let items = head.remove("messages").or_else(|| head.remove("input"));
    let Some(Value::Array(items)) = items else {
        return Err("there is no conversation".to_owned());
    };
    if head.get("stream") != Some(&Value::Bool(true)) {
        return Err("the server only streams".to_owned());
    }
    Ok(Parts { head, items })
}

fn arguments_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, String> {
    value[key].as_str().ok_or_else(|| format!("`{key}` is missing in {value}"))
}

/// How many replies a request has, by the ids of their calls.
pub(super) fn replies_in(wire: Wire, body: &Value) -> usize {
    let echo = parts(body).and_then(|parts| Echo::of(wire, &parts.items)).unwrap_or_default();
    let number = |call: &Call| call.0.split('_').nth(1)?.parse().ok();
    echo.calls.iter().filter_map(number).max().unwrap_or(0)
}

impl Echo {
    fn of(wire: Wire, items: &[Value]) -> Result<Self, String> {
        match wire {
            Wire::Responses => of_responses(items),
            Wire::Anthropic => of_anthropic(items),
            _ => of_chat(items),
        }
    }

    fn call(&mut self, id: &str, name: &str, arguments: Value) {
        self.unanswered.push(id.to_owned());
        self.calls.push(Call(id.to_owned(), name.to_owned(), arguments));
    }

    fn result(&mut self, id: &str) -> Result<(), String> {
        let at = self.unanswered.iter().position(|open| open == id);
        let at = at.ok_or_else(|| format!("the result for {id} belongs to no open call"))?;
        self.unanswered.remove(at);
        Ok(())
    }

    /// Nothing may come between calls and their results.
    fn nothing_open(&self) -> Result<(), String> {
        match self.unanswered.first() {
            None => Ok(()),
            Some(id) => Err(format!("something comes before the result of {id}")),
        }
    }
}

fn of_chat(messages: &[Value]) -> Result<Echo, String> {
    let mut echo = Echo::default();
    for message in messages {
        match text(message, "role")? {
            "tool" => echo.result(text(message, "tool_call_id")?)?,
            role => {
                echo.nothing_open()?;
                if role != "assistant" {
                    continue;
                }
                if let Some(reasoning) = message["reasoning_content"].as_str() {
                    echo.reasoning.push(reasoning.to_owned());
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let arguments = arguments_value(text(function, "arguments")?);
                    echo.call(text(call, "id")?, text(function, "name")?, arguments);
                }
            }
        }
    }
    Ok(echo)
}

fn of_responses(items: &[Value]) -> Result<Echo, String> {
    let mut echo = Echo::default();
    for item in items {
        match item["type"].as_str().unwrap_or("message") {
            "function_call_output" => echo.result(text(item, "call_id")?)?,
            "function_call" => {
                let arguments = arguments_value(text(item, "arguments")?);
                echo.call(text(item, "call_id")?, text(item, "name")?, arguments);
            }
            "reasoning" => {
                echo.nothing_open()?;
                echo.reasoning.push(text(item, "encrypted_content")?.to_owned());
            }
            _ => echo.nothing_open()?,
        }
    }
    Ok(echo)
}

fn of_anthropic(messages: &[Value]) -> Result<Echo, String> {
    let mut echo = Echo::default();
    for message in messages {
        let is_model = text(message, "role")? == "assistant";
        if is_model {
            echo.nothing_open()?;
        }
        let Some(blocks) = message["content"].as_array() else {
            return Err("the content of a message is not a list".to_owned());
        };
        for block in blocks {
            match (text(block, "type")?, is_model) {
                ("tool_result", false) => echo.result(text(block, "tool_use_id")?)?,
                ("tool_use", true) => {
                    echo.call(text(block, "id")?, text(block, "name")?, block["input"].clone());
                }
                ("thinking", true) => {
                    echo.reasoning.push(text(block, "signature")?.to_owned());
                }
                ("text" | "image" | "document", _) => {
                    if text(block, "type")? == "text" && text(block, "text")?.trim().is_empty() {
                        return Err("a text block is empty".to_owned());
                    }
                }
                (kind, _) => return Err(format!("a {kind} block is in the wrong message")),
            }
        }
        if !is_model {
            echo.nothing_open()?;
        }
    }
    Ok(echo)
}
