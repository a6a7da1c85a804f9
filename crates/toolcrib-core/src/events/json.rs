//! Events as JSON for other programs, and back again for events from an overflow.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use toolcrib_tool::{CallId, Content, ErrorKind, Phase, StatusUpdate, ToolName};

use super::event::{Completion, Event, Occurrence, Payload, Subject};

impl Event {
    /// The event as a JSON object with stable names: `{sequence, event, payload}`, and for events
    /// of a call `call_id`, `tool`, `stage`, and `hidden` and `final_output` where they are true.
    /// Bytes are base64.
    ///
    /// ```json
    /// {"sequence": 4, "event": "call.output", "call_id": "call_1", "tool": "bash",
    ///  "stage": "output", "payload": {"type": "text", "text": "compiling"}}
    /// ```
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("sequence".into(), self.sequence().into());
        object.insert("event".into(), self.name().into());
        if let Some(call_id) = self.call_id() {
            object.insert("call_id".into(), call_id.as_str().into());
        }
        if let Some(tool) = self.tool() {
            object.insert("tool".into(), tool.into());
        }
        if let Some(stage) = self.stage() {
            object.insert("stage".into(), stage.as_str().into());
        }
        if self.hidden() {
            object.insert("hidden".into(), true.into());
        }
        if self.final_output() {
            object.insert("final_output".into(), true.into());
        }
        object.insert("payload".into(), payload_to_value(self.payload()));
        Value::Object(object)
    }
}

/// Serializes an event for an overflow.
pub(crate) fn encode(occurrence: &Arc<Occurrence>) -> Vec<u8> {
    let mut value = Event::new(0, Arc::clone(occurrence)).to_value();
    if let Some(subject) = &occurrence.subject {
        value["identity"] = (&*subject.identity).into();
    }
    value.to_string().into_bytes()
}

/// The reverse of [`encode`]. `None` for anything else.
pub(crate) fn decode(bytes: &[u8]) -> Option<Arc<Occurrence>> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let flag = |name: &str| value.get(name) == Some(&Value::Bool(true));
    let subject = match value.get("call_id") {
        None => None,
        Some(call_id) => Some(Arc::new(Subject {
            call_id: CallId::new(call_id.as_str()?),
            tool: ToolName::new(value.get("tool")?.as_str()?).ok()?,
            hidden: flag("hidden"),
            final_output: flag("final_output"),
            identity: value.get("identity")?.as_str()?.into(),
        })),
    };
    let payload = payload_from_value(value.get("event")?.as_str()?, value.get("payload")?)?;
    Some(Arc::new(Occurrence { subject, payload }))
}

fn payload_to_value(payload: &Payload) -> Value {
    match payload {
        Payload::Prepare { arguments } => {
            let mut object = Map::new();
            put(&mut object, "arguments", arguments.clone());
            Value::Object(object)
        }
        Payload::Status(status) => status_to_value(status),
        Payload::Suspended { reason } => json!({ "reason": reason }),
        Payload::Output(part) => serde_json::to_value(part).unwrap_or_default(),
        Payload::Completed(completion) => {
            let Completion { success, error, duration, cached, skipped, truncated, result } =
                completion;
            let mut object = Map::new();
            object.insert("success".into(), (*success).into());
            put(&mut object, "error", error.map(|kind| kind.as_str().into()));
            object.insert("duration_seconds".into(), duration.as_secs_f64().into());
            for (name, flag) in [("cached", cached), ("skipped", skipped), ("truncated", truncated)]
            {
                object.insert(name.into(), (*flag).into());
            }
            put(&mut object, "result", result.as_deref().cloned());
            Value::Object(object)
        }
        Payload::Paused { tool, identity } => json!({ "tool": tool, "identity": identity }),
        Payload::Lagged { lost } => json!({ "lost": lost }),
        Payload::Detached { unread } => json!({ "unread": unread }),
    }
}

fn payload_from_value(event: &str, value: &Value) -> Option<Payload> {
    let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    let flag = |name: &str| value.get(name)?.as_bool();
    Some(match event {
        "call.prepare" => Payload::Prepare { arguments: value.get("arguments").cloned() },
        "call.status" => Payload::Status(status_from_value(value)?),
        "call.suspended" => Payload::Suspended { reason: text("reason")? },
        "call.output" => Payload::Output(Content::deserialize(value).ok()?),
        "call.completed" => Payload::Completed(Completion {
            success: flag("success")?,
            error: match text("error") {
                None => None,
                Some(kind) => {
                    Some(ErrorKind::ALL.iter().copied().find(|known| known.as_str() == kind)?)
                }
            },
            duration: Duration::try_from_secs_f64(value.get("duration_seconds")?.as_f64()?).ok()?,
            cached: flag("cached")?,
            skipped: flag("skipped")?,
            truncated: flag("truncated")?,
            result: value.get("result").cloned().map(Arc::new),
        }),
        "task.paused" => Payload::Paused { tool: text("tool")?, identity: text("identity")? },
        "stream.lagged" => Payload::Lagged { lost: value.get("lost")?.as_u64()? },
        "stream.detached" => Payload::Detached { unread: value.get("unread")?.as_u64()? },
        _ => return None,
    })
}

fn status_to_value(status: &StatusUpdate) -> Value {
    let members = |map: &Map<String, Value>| (!map.is_empty()).then(|| Value::Object(map.clone()));
    let mut object = Map::new();
    object.insert("phase".into(), status.phase.as_str().into());
    put(&mut object, "tip", status.tip.clone().map(Value::from));
    put(&mut object, "params", members(&status.params));
    put(&mut object, "result", status.result.clone());
    put(&mut object, "error", status.error.clone().map(Value::from));
    put(&mut object, "metadata", members(&status.metadata));
    Value::Object(object)
}

fn status_from_value(value: &Value) -> Option<StatusUpdate> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let members =
        |name: &str| value.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let phase = value.get("phase")?.as_str()?;
    let mut status = StatusUpdate::new(
        [Phase::Wait, Phase::Doing, Phase::Success, Phase::Error]
            .into_iter()
            .find(|known| known.as_str() == phase)?,
    );
    status.tip = text("tip");
    status.params = members("params");
    status.result = value.get("result").cloned();
    status.error = text("error");
    status.metadata = members("metadata");
    Some(status)
}

/// Leaves out absent members, so that clients need not distinguish `null` from absent.
fn put(object: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::{Content, Link};

    use super::*;

    fn subject(hidden: bool, final_output: bool) -> Arc<Subject> {
        let (call_id, tool) = (CallId::new("call \"1\""), ToolName::new("bash").unwrap());
        Arc::new(Subject { call_id, tool, hidden, final_output, identity: "ada".into() })
    }

    fn every_payload() -> Vec<Payload> {
        let completion = Completion {
            success: false,
            error: Some(ErrorKind::RateLimited),
            duration: Duration::new(12, 345_678_901),
            cached: false,
            skipped: true,
            truncated: true,
            result: Some(Arc::new(json!({"output": "x", "cut": true}))),
        };
        let mime_type = "image/png".to_owned();
        let uri = "file:a".to_owned();
        vec![
            Payload::Prepare { arguments: None },
            Payload::Prepare { arguments: Some(json!({"a": [1, null, "é\n"]})) },
            Payload::Status(StatusUpdate::wait()),
            Payload::Status(
                StatusUpdate::error("broke")
                    .with_tip("half way")
                    .with_param("a", json!({"b": 1}))
                    .with_result(Value::Null)
                    .with_metadata("m", 2.5),
            ),
            Payload::Suspended { reason: "approval".to_owned() },
            Payload::Output(Content::text("line\u{2028}\n")),
            Payload::Output(Content::Image { data: vec![0, 255, 7], mime_type: mime_type.clone() }),
            Payload::Output(Content::Audio { data: vec![], mime_type: mime_type.clone() }),
            Payload::Output(Link::new(uri.as_str(), "a").into()),
            Payload::Output(Content::TextFile {
                uri: uri.clone(),
                text: "t".to_owned(),
                mime_type: None,
            }),
            Payload::Output(Content::Blob { uri, data: vec![1], mime_type }),
            Payload::Completed(completion.clone()),
            Payload::Completed(Completion {
                success: true,
                error: None,
                result: None,
                ..completion
            }),
            Payload::Paused { tool: "bash".to_owned(), identity: "ada".to_owned() },
            Payload::Lagged { lost: 7 },
            Payload::Detached { unread: 3 },
        ]
    }

    #[test]
    fn every_event_survives_an_overflow() {
        for payload in every_payload() {
            for subject in [None, Some(subject(true, false)), Some(subject(false, true))] {
                let occurrence = Arc::new(Occurrence { subject, payload: payload.clone() });
                assert_eq!(decode(&encode(&occurrence)).as_ref(), Some(&occurrence));
            }
        }
        for torn in [&b"{}"[..], b"", b"{\"event\":\"call.output\",\"payload\":{\"type\":\"x\"}}"] {
            assert_eq!(decode(torn), None);
        }
    }

    #[test]
    fn the_json_of_an_event_is_stable() {
        let event =
            |subject, payload| Event::new(4, Arc::new(Occurrence { subject, payload })).to_value();
        assert_eq!(
            event(Some(subject(false, true)), Payload::Output(Content::text("hi"))),
            json!({
                "sequence": 4, "event": "call.output", "call_id": "call \"1\"", "tool": "bash",
                "stage": "output", "final_output": true, "payload": {"type": "text", "text": "hi"},
            })
        );
        assert_eq!(
            event(None, Payload::Paused { tool: "bash".to_owned(), identity: "ada".to_owned() }),
            json!({
                "sequence": 4, "event": "task.paused",
                "payload": {"tool": "bash", "identity": "ada"},
            })
        );
        let completion = Completion {
            success: false,
            error: Some(ErrorKind::Timeout),
            duration: Duration::from_millis(1500),
            cached: false,
            skipped: false,
            truncated: true,
            result: Some(Arc::new(json!({"output": "half"}))),
        };
        assert_eq!(
            event(Some(subject(true, false)), Payload::Completed(completion)),
            json!({
                "sequence": 4, "event": "call.completed", "call_id": "call \"1\"", "tool": "bash",
                "stage": "completed", "hidden": true,
                "payload": {
                    "success": false, "error": "timeout", "duration_seconds": 1.5,
                    "cached": false, "skipped": false, "truncated": true,
                    "result": {"output": "half"},
                },
            })
        );
    }
}
