//! The audit log: who called what, whether it was allowed, and the outcome.
//!
//! Every call that ends produces one [`AuditRecord`], even if it was answered from the cache or
//! refused. An [`AuditSink`] takes it without delaying or failing the call, and counts the records
//! that it loses.

mod brief;
mod delivery;
mod masked;
mod timestamp;
pub(crate) mod trail;

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use toolcrib_tool::{Arguments, ContextValues, ErrorKind};

use crate::identity::fingerprint::Fingerprint;

pub use delivery::{AuditDelivery, AuditSendError, AuditTransport, DeliveryState};
pub use timestamp::rfc3339;
pub use trail::AuditTrail;

/// Receives audit records.
///
/// ```
/// use std::sync::Mutex;
/// use std::time::SystemTime;
/// use toolcrib_core::audit::{AuditRecord, AuditSink};
///
/// #[derive(Default)]
/// struct Kept(Mutex<Vec<String>>);
///
/// impl AuditSink for Kept {
///     fn record(&self, record: &AuditRecord) {
///         self.0.lock().unwrap().push(record.to_json());
///     }
/// }
///
/// let sink = Kept::default();
/// sink.record(&AuditRecord::new(SystemTime::UNIX_EPOCH, "call_1", "calculator"));
/// let lines = sink.0.lock().unwrap();
/// assert!(lines[0].starts_with(r#"{"v":1,"time":"1970-01-01T00:00:00.000Z","call_id":"call_1""#));
/// ```
pub trait AuditSink: Send + Sync + 'static {
    /// Receives one record. It is called inline at the end of every call: it must not wait, and it
    /// cannot fail the call.
    fn record(&self, record: &AuditRecord);

    /// How many records were lost. Default: 0.
    fn lost(&self) -> u64 {
        0
    }

    /// Where records go, such as a path or an address, for status reports. Default: `audit log`.
    fn name(&self) -> String {
        "audit log".to_owned()
    }

    /// Why records cannot be written or sent now, if they cannot. Default: `None`.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Waits until everything recorded so far is written or sent, or lost and counted; a place that may
    /// be unavailable for long is waited for only briefly. Blocks the thread. Default: returns at once.
    fn flush(&self) {}

    /// Called when the server ends: as [`flush`](Self::flush), and what cannot be sent soon is given up, counted as
    /// lost, and its number logged. Default: flushes.
    fn finish(&self) {
        self.flush();
    }
}

/// How arguments are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AuditArguments {
    /// Their hash. Equal arguments have equal hashes, so guessable arguments can be recognized.
    #[default]
    Hash,
    /// The arguments with sensitive values redacted and secrets masked.
    Redacted,
}

/// The decision on a call before it ran. Default: allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// It ran without a question.
    #[default]
    Allowed,
    /// A rule allowed it.
    AllowedBy {
        /// The rule, for example `policy rule 3`.
        by: String,
    },
    /// It was approved.
    Approved {
        /// Who approved it: the name of a client, `operator`, `owner` (of the server's socket),
        /// `the terminal`, or the host's name for its approver.
        by: String,
        /// The rule that asked; absent if an earlier approval in the session applied.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Whether the approver changed the arguments.
        changed: bool,
        /// The [digest](crate::approval::ApprovalRequest::digest) of what the approver was shown.
        #[serde(skip_serializing_if = "Option::is_none")]
        shown: Option<String>,
    },
    /// It waits for approval.
    Waiting,
    /// It was denied.
    Denied {
        /// The rule and the reason.
        reason: String,
        /// Who denied it, named as in [`Approved`](Self::Approved); absent if a rule did.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The [digest](crate::approval::ApprovalRequest::digest) of what the denier was shown.
        #[serde(skip_serializing_if = "Option::is_none")]
        shown: Option<String>,
    },
    /// It was cancelled while it waited.
    Cancelled {
        /// Who cancelled it, named as in [`Approved`](Self::Approved).
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The [digest](crate::approval::ApprovalRequest::digest) of what approvers were shown.
        #[serde(skip_serializing_if = "Option::is_none")]
        shown: Option<String>,
    },
    /// It was refused or ended before a decision: unknown, invalid, paused.
    Undecided,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditOutcome {
    /// It succeeded.
    Success,
    /// It failed.
    Failure(ErrorKind),
    /// It waits for a decision, for its client or for external work. When it ends later, that
    /// produces another record.
    Waiting,
    /// It was ended because its client lost the right to make it.
    Revoked,
}

impl AuditOutcome {
    /// `success`, `waiting`, `revoked` or the error kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure(kind) => kind.as_str(),
            Self::Waiting => "waiting",
            Self::Revoked => "revoked",
        }
    }
}

impl Serialize for AuditOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The version of the audit record format. Adding fields does not change it; removing a field or
/// changing its meaning does.
const FORMAT: u32 = 1;

/// The audit record of one call. Field names are stable; absent fields are omitted. The JSON begins
/// with `"v"`, the format version: 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditRecord {
    #[serde(rename = "v")]
    format: u32,
    /// When the call ended; RFC 3339 in UTC, with milliseconds.
    #[serde(serialize_with = "timestamp::serialize")]
    pub time: SystemTime,
    /// The caller's id of the call.
    pub call_id: String,
    /// The tool's name, or [`UNKNOWN_TOOLS`](crate::UNKNOWN_TOOLS).
    pub tool: String,
    /// The context value `tenant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Value>,
    /// The context value `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Value>,
    /// The client that called: its name in `tokens`, `operator`, `owner` (of the server's socket), or the
    /// host's name for it ([`TurnOptions::client`](crate::TurnOptions::client)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The source that declares the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The tool's own version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The [`Fingerprint`] of the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The hash of the arguments ([`arguments_hash`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_hash: Option<String>,
    /// The arguments, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The decision.
    pub decision: Decision,
    /// The outcome: `success`, `waiting`, `revoked` or the error kind.
    pub outcome: AuditOutcome,
    /// Whether it was answered from an earlier call.
    pub cached: bool,
    /// Whether it was answered from the same concurrent call.
    pub skipped: bool,
    /// The duration in milliseconds.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub duration: Duration,
}

impl AuditRecord {
    /// A record of a success; set the other fields as known.
    pub fn new(time: SystemTime, call_id: impl Into<String>, tool: impl Into<String>) -> Self {
        Self {
            format: FORMAT,
            time,
            call_id: call_id.into(),
            tool: tool.into(),
            tenant: None,
            user: None,
            client: None,
            session: None,
            source: None,
            version: None,
            definition: None,
            arguments_hash: None,
            arguments: None,
            decision: Decision::Allowed,
            outcome: AuditOutcome::Success,
            cached: false,
            skipped: false,
            duration: Duration::ZERO,
        }
    }

    /// Sets the caller: tenant and user from the host's values, and the session.
    #[must_use]
    pub fn with_caller(mut self, values: &ContextValues, session: Option<&str>) -> Self {
        self.tenant = values.tenant().cloned();
        self.user = values.user().cloned();
        self.session = session.map(str::to_owned);
        self
    }

    /// The record as one line of JSON, without a line end. Control characters and the line separators of Unicode
    /// are escaped, so that no reader takes a part of it for another record.
    pub fn to_json(&self) -> String {
        // Strings, numbers and JSON values with string keys always serialise.
        let json = serde_json::to_string(self).unwrap_or_default();
        if json.is_ascii() && !json.contains('\u{7f}') {
            return json;
        }
        let mut escaped = String::with_capacity(json.len());
        for c in json.chars() {
            // Outside strings JSON has none of them.
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            } else {
                escaped.push(c);
            }
        }
        escaped
    }
}

/// The hash of arguments as a model sent them: their [`Fingerprint`], so that notation and order do
/// not matter. Text that is not JSON is hashed as it is.
///
/// ```
/// use toolcrib_core::audit::arguments_hash;
///
/// assert_eq!(arguments_hash(r#"{"a":1,"b":2}"#), arguments_hash(r#"{ "b": 2, "a": 1 }"#));
/// assert_ne!(arguments_hash(r#"{"a":1}"#), arguments_hash(r#"{"a":"1"}"#));
/// ```
pub fn arguments_hash(text: &str) -> String {
    let text = if text.trim().is_empty() { "{}" } else { text };
    Fingerprint::of_arguments(&Arguments::from_validated(text.to_owned())).to_string()
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    // Three digits after the point: calls from a cache take microseconds.
    let microseconds = u32::try_from(duration.as_micros()).map_or(f64::from(u32::MAX), f64::from);
    serializer.serialize_f64(microseconds / 1000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_full_record_has_stable_names() {
        let values = ContextValues::new().with("tenant", "t").with("user", "ada");
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let mut record = AuditRecord::new(time, "c", "bash").with_caller(&values, Some("s"));
        record.source = Some("manifest tools.yaml:3".into());
        record.version = Some("1.2".into());
        record.definition = Some("abc".into());
        record.arguments_hash = Some("def".into());
        record.arguments = Some(json!({"command": "ls"}));
        record.decision =
            Decision::Denied { reason: "policy rule 3".into(), by: None, shown: None };
        record.outcome = AuditOutcome::Failure(ErrorKind::Denied);
        record.duration = Duration::from_micros(1500);
        assert_eq!(
            serde_json::from_str::<Value>(&record.to_json()).unwrap(),
            json!({
                "v": 1, "time": "2023-11-14T22:13:20.123Z", "call_id": "c", "tool": "bash",
                "tenant": "t", "user": "ada", "session": "s", "source": "manifest tools.yaml:3",
                "version": "1.2", "definition": "abc", "arguments_hash": "def",
                "arguments": {"command": "ls"},
                "decision": {"verdict": "denied", "reason": "policy rule 3"},
                "outcome": "denied", "cached": false, "skipped": false, "duration_ms": 1.5,
            })
        );
    }

    #[test]
    fn a_record_is_one_line_whatever_is_in_it() {
        let mut record = AuditRecord::new(SystemTime::UNIX_EPOCH, "a\nb\u{2028}", "t");
        record.decision =
            Decision::Approved { by: "ada\r\n".into(), rule: None, changed: true, shown: None };
        let line = record.to_json();
        assert!(!line.contains(['\n', '\r', '\u{2028}']), "{line}");
        let all: String = (0..=0x9f).filter_map(char::from_u32).chain(['\u{2029}', 'é']).collect();
        let others = AuditRecord::new(SystemTime::UNIX_EPOCH, &*all, "t").to_json();
        assert!(!others.contains(|c: char| c.is_control() || c == '\u{2029}'), "{others}");
        assert_eq!(serde_json::from_str::<Value>(&others).unwrap()["call_id"], all.as_str());
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["decision"]["verdict"], "approved");
        assert_eq!(read["call_id"], "a\nb\u{2028}");
    }

    #[test]
    fn empty_arguments_are_an_empty_object() {
        assert_eq!(arguments_hash(" "), arguments_hash("{}"));
        assert_eq!(arguments_hash("{bad").len(), 64);
    }
}
