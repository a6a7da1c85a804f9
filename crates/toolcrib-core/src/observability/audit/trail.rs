//! Creating audit records.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolcrib_tool::{ContextValues, ToolDefinition, ToolEntry, ToolError};

use super::{AuditArguments, AuditOutcome, AuditRecord, AuditSink, Decision, arguments_hash};
use crate::UNKNOWN_TOOLS;
use crate::identity::fingerprint::Fingerprint;
use crate::output::masking::Mask;
use crate::output::sensitive_arguments::redact_text;

/// The audit trail of an executor: what it records about calls, and where.
///
/// ```
/// use std::sync::Arc;
/// use std::time::SystemTime;
/// use toolcrib_core::audit::{AuditArguments, AuditRecord, AuditSink, AuditTrail};
///
/// struct Console;
/// impl AuditSink for Console {
///     fn record(&self, record: &AuditRecord) {
///         println!("{}", record.to_json());
///     }
/// }
///
/// let trail = AuditTrail::new(Arc::new(Console))
///     .with_arguments(AuditArguments::Redacted)
///     .with_clock(|| SystemTime::UNIX_EPOCH);
/// assert_eq!(trail.lost(), 0);
/// ```
pub struct AuditTrail {
    sink: Arc<dyn AuditSink>,
    arguments: AuditArguments,
    clock: Box<dyn Fn() -> SystemTime + Send + Sync>,
}

impl AuditTrail {
    /// Records to `sink`, with hashed arguments and the system clock.
    pub fn new(sink: Arc<dyn AuditSink>) -> Self {
        Self { sink, arguments: AuditArguments::default(), clock: Box::new(SystemTime::now) }
    }

    /// Sets how arguments are recorded.
    #[must_use]
    pub fn with_arguments(mut self, arguments: AuditArguments) -> Self {
        self.arguments = arguments;
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// How many records the sink has lost.
    pub fn lost(&self) -> u64 {
        self.sink.lost()
    }

    /// The recorded form of a call's arguments, computed before they are moved into the tool: from
    /// the model's text, or from what was approved in its place.
    pub(crate) fn arguments(
        &self,
        definition: Option<&ToolDefinition>,
        text: &str,
        mask: &Mask,
    ) -> AuditedArguments {
        match self.arguments {
            AuditArguments::Hash => AuditedArguments::Hash(arguments_hash(text)),
            AuditArguments::Redacted => {
                AuditedArguments::Redacted(redact_text(definition, text, mask))
            }
        }
    }

    /// Records a call that has ended.
    pub(crate) fn record(&self, call: Audited<'_>) {
        let tool = call.tool.map_or(UNKNOWN_TOOLS, |(entry, _)| entry.name());
        let mut record =
            AuditRecord::new((self.clock)(), call.id, tool).with_caller(call.values, call.session);
        record.client = call.client.map(str::to_owned);
        if let Some((entry, fingerprint)) = call.tool {
            record.source = Some(entry.source.to_string());
            record.version = entry.definition.version().map(str::to_owned);
            record.definition = Some(fingerprint.to_string());
        }
        match call.arguments {
            AuditedArguments::Hash(hash) => record.arguments_hash = Some(hash),
            AuditedArguments::Redacted(arguments) => record.arguments = Some(arguments),
        }
        record.decision = call.decision;
        let End { outcome, cached, skipped, duration, .. } = call.end;
        record.outcome = outcome;
        record.cached = cached;
        record.skipped = skipped;
        record.duration = duration;
        self.sink.record(&record.masked(call.mask));
    }
}

/// A finished call, as the pipeline knows it.
#[derive(Debug)]
pub(crate) struct Audited<'a> {
    /// The tool and its fingerprint; `None` for an unknown name.
    pub(crate) tool: Option<(&'a ToolEntry, Fingerprint)>,
    pub(crate) values: &'a ContextValues,
    pub(crate) client: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) arguments: AuditedArguments,
    pub(crate) decision: Decision,
    /// The caller's id.
    pub(crate) id: &'a str,
    pub(crate) end: End<'a>,
    pub(crate) mask: &'a Mask,
}

/// How a call has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) outcome: AuditOutcome,
    /// The error that its caller gets, if any.
    pub(crate) error: Option<&'a ToolError>,
    /// Answered from an earlier call.
    pub(crate) cached: bool,
    /// Answered from the same concurrent call.
    pub(crate) skipped: bool,
    pub(crate) duration: Duration,
}

impl<'a> End<'a> {
    /// The end of a failed call.
    pub(crate) fn failed(error: &'a ToolError, duration: Duration) -> Self {
        let outcome = AuditOutcome::Failure(error.kind());
        Self { outcome, error: Some(error), cached: false, skipped: false, duration }
    }

    /// Marks the call as revoked if its client lost the right to make it.
    pub(crate) fn revoked_if(mut self, revoked: bool) -> Self {
        if revoked {
            self.outcome = AuditOutcome::Revoked;
        }
        self
    }
}

/// What is said of arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AuditedArguments {
    Hash(String),
    Redacted(Value),
}

impl fmt::Debug for AuditTrail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditTrail").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use toolcrib_tool::{ErrorKind, Layer, Source, tool_fn};

    use super::*;

    #[derive(Default)]
    struct TestSink(Mutex<Vec<AuditRecord>>);

    impl AuditSink for TestSink {
        fn record(&self, record: &AuditRecord) {
            self.0.lock().unwrap().push(record.clone());
        }
    }

    fn entry(description: &str) -> ToolEntry {
        let definition = ToolDefinition::builder("login")
            .description(description)
            .version("1.2")
            .input_schema(json!({"properties": {"user": {}, "pin": {"writeOnly": true}}}))
            .build()
            .unwrap();
        let body = tool_fn(|_: Value, _| async { "in" });
        ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Native, "bank"))
    }

    fn recorded(arguments: AuditArguments, entry: Option<&ToolEntry>, text: &str) -> AuditRecord {
        let kept = Arc::new(TestSink::default());
        let sink = Arc::clone(&kept) as Arc<dyn AuditSink>;
        let trail = AuditTrail::new(sink)
            .with_arguments(arguments)
            .with_clock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1));
        let mask = Mask::new(["hunter22".to_owned()]).unwrap();
        let error = ToolError::new(ErrorKind::Denied, "no");
        let end = End { skipped: true, ..End::failed(&error, Duration::from_millis(3)) };
        trail.record(Audited {
            tool: entry.map(|entry| (entry, Fingerprint::of_definition(entry))),
            values: &ContextValues::new().with("user", "ada hunter22").with("project_id", "p"),
            client: Some("hunter22"),
            session: Some("s-hunter22"),
            arguments: trail.arguments(entry.map(|entry| &*entry.definition), text, &mask),
            decision: Decision::Denied { reason: "not hunter22".into(), by: None, shown: None },
            id: "c-hunter22",
            end,
            mask: &mask,
        });
        kept.0.lock().unwrap().remove(0)
    }

    #[test]
    fn a_record_says_who_what_and_how_it_ended() {
        let text = r#"{"user": "hunter22", "pin": 1234}"#;
        let record = recorded(AuditArguments::Redacted, Some(&entry("Log in.")), text);
        let shown: Value = serde_json::from_str(&record.to_json()).unwrap();
        let definition = Fingerprint::of_definition(&entry("Log in.")).to_string();
        assert_eq!(
            shown,
            json!({
                "v": 1, "time": "1970-01-01T00:00:01.000Z", "call_id": "c-[masked]", "tool": "login",
                "user": "ada [masked]", "client": "[masked]", "session": "s-[masked]", "source": "native bank", "version": "1.2",
                "definition": definition,
                "arguments": {"user": "[masked]", "pin": "[redacted]"},
                "decision": {"verdict": "denied", "reason": "not [masked]"}, "outcome": "denied",
                "cached": false, "skipped": true, "duration_ms": 3.0,
            })
        );
    }

    #[test]
    fn without_a_tool_there_is_one_label_and_nothing_of_the_arguments() {
        let text = r#"{"pin": 1234}"#;
        let record = recorded(AuditArguments::Hash, None, text);
        assert_eq!((record.tool.as_str(), record.source), (UNKNOWN_TOOLS, None));
        assert_eq!(record.arguments_hash, Some(arguments_hash(text)));
        let record = recorded(AuditArguments::Redacted, None, text);
        assert_eq!(record.arguments, Some(json!({"pin": "[redacted]"})));
    }
}
