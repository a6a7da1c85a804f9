//! What viewers of a run see.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolcrib_core::events::Event;
use toolcrib_core::run::{RunId, Seq};
use toolcrib_tool::{CallId, StatusUpdate};
use toolcrib_wire::model::{ModelEvent, ModelItem, View};

use crate::JournalEntry;

/// What happens in a run, for viewers. Secrets are masked, and arguments that tools declare sensitive are hidden: what the
/// model writes of a call of such a tool does not stream.
///
/// What is recorded is final. What streams is for display: after [`ModelLost`](JournalEntry::ModelLost), the text,
/// reasoning and calls that were shown since the request do not count, and the answer begins again.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A row was written to the journal.
    Recorded {
        /// The run.
        run: &'a RunId,
        /// The number of the row.
        seq: Seq,
        /// What it says to [readers](crate::JournalRow::for_readers).
        entry: &'a JournalEntry,
    },
    /// The model is answering.
    Model {
        /// The run.
        run: &'a RunId,
        /// The step of the answer.
        event: ModelEvent,
    },
    /// The model is writing the arguments of a call, and the tool has a preview of it. The call may still be lost.
    Preview {
        /// The run.
        run: &'a RunId,
        /// The call.
        call: &'a CallId,
        /// The tool's own name.
        tool: &'a str,
        /// What to show.
        status: Box<StatusUpdate>,
    },
    /// A running call reports its status or a part of its output. The calls of a round follow one after the other, and
    /// hidden tools report nothing.
    Call {
        /// The run.
        run: &'a RunId,
        /// What it reports.
        event: &'a Event,
    },
    /// A call of a tool for polling waits, so that the tool is not asked too often.
    PollWait {
        /// The run.
        run: &'a RunId,
        /// The tool.
        tool: &'a str,
        /// How long.
        wait: Duration,
    },
    /// The model will be asked again.
    Retry {
        /// The run.
        run: &'a RunId,
        /// In how long.
        wait: Duration,
    },
}

/// Receives the events of runs. It must return quickly, because the run waits for it.
pub type EventListener = dyn Fn(&AgentEvent<'_>) + Send + Sync;

/// Says what a client was shown of a run so far.
pub type EventCounter = dyn Fn() -> crate::entry::ShownEvents + Send + Sync;

impl AgentEvent<'_> {
    /// The run, which may be a sub-agent's.
    pub fn run(&self) -> &RunId {
        match self {
            Self::Recorded { run, .. }
            | Self::Model { run, .. }
            | Self::Preview { run, .. }
            | Self::Call { run, .. }
            | Self::PollWait { run, .. }
            | Self::Retry { run, .. } => run,
        }
    }

    /// The event as JSON: `type`, `run`, and what belongs to the type. What is recorded has a `seq` and a type that
    /// begins with `run.`; all others are for display. `None` if it shows nothing.
    pub fn to_value(&self) -> Option<Value> {
        let (run, kind, members) = match self {
            Self::Recorded { run, seq, entry } => {
                let mut members = entry_members(entry)?;
                members.insert("seq".to_owned(), json!(seq));
                (run, format!("run.{}", entry.kind()), members)
            }
            Self::Model { run, event } => {
                let (kind, members) = streamed(event)?;
                (run, kind.to_owned(), members)
            }
            Self::Preview { run, call, tool, status } => {
                let members = json!({"id": call.as_str(), "tool": tool, "tip": status.tip, "params": status.params});
                (run, "model.preview".to_owned(), object(members))
            }
            Self::Call { run, event } => {
                let members = json!({
                    "call_id": event.call_id().map(CallId::as_str),
                    "tool": event.tool(),
                    "payload": event.to_value()["payload"],
                });
                (run, event.name().to_owned(), object(members))
            }
            Self::PollWait { run, tool, wait } => {
                let members = json!({"tool": tool, "wait_ms": millis(*wait)});
                (run, "call.poll_wait".to_owned(), object(members))
            }
            Self::Retry { run, wait } => {
                (run, "model.retry".to_owned(), object(json!({"wait_ms": millis(*wait)})))
            }
        };
        let mut event = object(json!({"type": kind, "run": run.as_str()}));
        event.extend(members);
        Some(Value::Object(event))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn streamed(event: &ModelEvent) -> Option<(&'static str, Map<String, Value>)> {
    let (kind, members) = match event {
        ModelEvent::Started { model, .. } => ("model.started", json!({"model": model})),
        ModelEvent::Text { delta } => ("model.text", json!({"delta": delta})),
        ModelEvent::Reasoning { delta } => ("model.reasoning", json!({"delta": delta})),
        ModelEvent::Refusal { delta } => ("model.refusal", json!({"delta": delta})),
        ModelEvent::CallStarted { call, id, name } => {
            ("model.call", json!({"call": call, "id": id.as_str(), "tool": name}))
        }
        ModelEvent::Arguments { call, delta } => {
            ("model.arguments", json!({"call": call, "delta": delta}))
        }
        _ => return None,
    };
    Some((kind, object(members)))
}

/// What an entry says. What a model said is shown by its meaning, without the provider's own JSON.
fn entry_members(entry: &JournalEntry) -> Option<Map<String, Value>> {
    Some(match entry {
        JournalEntry::ModelAnswered { items, usage, cost, stop, names, .. } => {
            let said: Vec<Value> = items.iter().map(|item| item_value(item, names)).collect();
            object(json!({"items": said, "usage": usage, "cost_nanodollars": cost, "stop": stop}))
        }
        JournalEntry::CallEnded { result } => {
            let result: Value = serde_json::from_str(&result.to_json()).ok()?;
            object(json!({"result": result}))
        }
        JournalEntry::CallFinished { result, repetition } => {
            let result: Value = serde_json::from_str(&result.to_json()).ok()?;
            object(json!({"result": result, "repetition": repetition}))
        }
        JournalEntry::CallSuspended { suspension } => object(json!({
            "id": suspension.id().as_str(),
            "call_id": suspension.call_id(),
            "tool": suspension.tool(),
            "arguments": suspension.shown().arguments,
            "plan": suspension.shown().plan,
            "waits_for": serde_json::to_value(suspension.waiting()).ok()?["for"],
            "expires_at": suspension.expires_at().unix_millis(),
        })),
        other => match serde_json::to_value(other).ok()? {
            Value::Object(entry) => entry.into_iter().next().map(|(_, value)| object(value))?,
            _ => Map::new(),
        },
    })
}

fn item_value(item: &ModelItem, names: &std::collections::BTreeMap<String, String>) -> Value {
    match item.view() {
        View::Message { text, phase, is_refusal } => {
            json!({"type": "message", "text": text, "phase": phase, "refusal": is_refusal})
        }
        View::Reasoning { text } => json!({"type": "reasoning", "text": text}),
        View::Call(call) => json!({
            "type": "call",
            "id": call.id.as_str(),
            "tool": names.get(&call.name).unwrap_or(&call.name),
            "arguments": call.arguments,
        }),
        View::Other { kind } => json!({"type": "other", "kind": kind}),
        _ => Value::Null,
    }
}
