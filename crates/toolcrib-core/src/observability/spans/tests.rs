//! What a subscriber sees of a call.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

type Fields = BTreeMap<String, String>;

/// Keeps everything at or above a level.
#[derive(Clone)]
struct Capture {
    level: Level,
    seen: Arc<Mutex<Vec<(String, Fields)>>>,
}

impl Capture {
    fn at(level: Level) -> Self {
        Self { level, seen: Arc::default() }
    }

    fn keep(&self, name: String, fill: impl FnOnce(&mut Read)) {
        let mut read = Read(Fields::new());
        fill(&mut read);
        self.seen.lock().unwrap().push((name, read.0));
    }

    fn during(&self, work: impl FnOnce()) -> Vec<(String, Fields)> {
        tracing::subscriber::with_default(self.clone(), work);
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

struct Read(Fields);

impl Visit for Read {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= &self.level
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.keep(format!("span {}", span.metadata().name()), |read| span.record(read));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.keep("record".into(), |read| values.record(read));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.keep(format!("{}", event.metadata().level()), |read| event.record(read));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

const KNOWN: SpanCall<'_> = SpanCall { name: "bash", known: true, id: "call_1", mask: None };

#[test]
fn a_call_has_the_names_of_the_convention() {
    let seen = Capture::at(Level::DEBUG).during(|| {
        let span = span(KNOWN);
        started(KNOWN, || json!({"command": "ls"}));
        ended(&span, KNOWN, Duration::from_millis(5), None);
    });
    let [(name, span), (start_level, start), (done_level, done)] = seen.as_slice() else {
        panic!("{seen:?}")
    };
    assert_eq!(name, "span execute_tool");
    for (field, value) in [
        ("otel.name", "execute_tool bash"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "bash"),
        ("gen_ai.tool.call.id", "call_1"),
        ("gen_ai.tool.type", "function"),
    ] {
        assert_eq!(span[field], value, "{field}");
    }
    assert!(!span.contains_key("error.type"));
    assert_eq!((start_level.as_str(), done_level.as_str()), ("INFO", "INFO"));
    assert_eq!(start["message"], "execute_start");
    assert_eq!((start["component"].as_str(), start["tool"].as_str()), ("AgentTool", "bash"));
    assert_eq!(start["arguments"], r#"{"command":"ls"}"#);
    assert_eq!((done["message"].as_str(), done["duration"].as_str()), ("execute_done", "5ms"));
}

#[test]
fn every_kind_of_failure_has_its_level() {
    let errors = [
        ErrorKind::Panic,
        ErrorKind::Timeout,
        ErrorKind::Unavailable,
        ErrorKind::InvalidOutput,
        ErrorKind::Internal,
    ];
    let mistakes_of_the_model = [
        ErrorKind::NotFound,
        ErrorKind::InvalidJson,
        ErrorKind::InvalidArgs,
        ErrorKind::Constraint,
        ErrorKind::Denied,
        ErrorKind::RequiresApproval,
        ErrorKind::Cancelled,
    ];
    for kind in ErrorKind::ALL {
        let error = ToolError::new(*kind, "cause").with_source(std::io::Error::other("why"));
        let seen = Capture::at(Level::INFO).during(|| {
            let span = span(KNOWN);
            ended(&span, KNOWN, Duration::ZERO, Some(&error));
        });
        let (level, done) = seen.last().unwrap();
        let expected = if errors.contains(kind) {
            "ERROR"
        } else if mistakes_of_the_model.contains(kind) {
            "INFO"
        } else {
            "WARN"
        };
        assert_eq!(level, expected, "{kind}");
        assert_eq!(done["error.type"], kind.as_str());
        assert_eq!((done["error"].as_str(), done["source"].as_str()), ("cause", "why"));
        let recorded = seen.iter().filter(|(name, _)| name == "record");
        let recorded: Fields = recorded.flat_map(|(_, fields)| fields.clone()).collect();
        assert_eq!(recorded["error.type"], kind.as_str());
    }
}

#[test]
fn secrets_in_ids_and_in_names_of_no_tool_are_masked() {
    let mask = LiveMask::new(crate::output::masking::Mask::new(["hunter22".to_owned()]).unwrap());
    let call =
        SpanCall { name: "get_hunter22", known: false, id: "call_hunter22", mask: Some(&mask) };
    let seen = Capture::at(Level::DEBUG).during(|| {
        let span = span(call);
        started(call, || Value::Null);
        ended(&span, call, Duration::ZERO, Some(&ToolError::new(ErrorKind::NotFound, "no")));
    });
    assert!(!format!("{seen:?}").contains("hunter22"), "{seen:?}");
    assert!(seen.last().unwrap().1["requested"].contains("get_[masked]"), "{seen:?}");
}

#[test]
fn names_of_no_tool_have_one_label() {
    let name = format!("made_up_{}", "x".repeat(100));
    let call = SpanCall { name: &name, known: false, id: "1", mask: None };
    let seen = Capture::at(Level::DEBUG).during(|| {
        let span = span(call);
        ended(&span, call, Duration::ZERO, Some(&ToolError::new(ErrorKind::NotFound, "no")));
    });
    assert_eq!(seen[0].1["gen_ai.tool.name"], UNKNOWN_TOOLS);
    assert_eq!(seen[0].1["otel.name"], format!("execute_tool {UNKNOWN_TOOLS}"));
    let done = &seen.last().unwrap().1;
    assert_eq!((done["tool"].as_str(), done["requested"].len()), (UNKNOWN_TOOLS, SHOWN_NAME));
}

#[test]
fn arguments_are_made_only_for_those_who_read_them() {
    let made = Cell::new(0);
    let start = || {
        started(KNOWN, || {
            made.set(made.get() + 1);
            json!({})
        });
    };
    assert!(Capture::at(Level::WARN).during(start).is_empty());
    assert_eq!(made.get(), 0);
    assert_eq!(Capture::at(Level::INFO).during(start).len(), 1);
    assert_eq!(made.get(), 1);
}
