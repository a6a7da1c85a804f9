//! Records that are too large for a receiver: first without their arguments, then with short texts.

use serde_json::Value;

use super::{AuditRecord, Decision};
use crate::identity::fingerprint::Fingerprint;

/// The characters of the longest text that stays whole.
const WHOLE_CHARS: usize = 256;
/// The characters of a longer one that stay.
const FIRST_CHARS: usize = 64;

impl AuditRecord {
    /// The record with a note in the place of its arguments, which `receiver` cannot take because of their size. `None`
    /// if it has none.
    pub fn without_arguments(&self, receiver: &str) -> Option<Self> {
        let bytes = self.arguments.as_ref()?.to_string().len();
        let note = format!("[{bytes} bytes, too large for {receiver}]");
        Some(Self { arguments: Some(note.into()), ..self.clone() })
    }

    /// The record [without arguments](Self::without_arguments) and with the beginnings and
    /// [fingerprints](Fingerprint::of_json) of long texts in their place: no text of a call can keep its record from a
    /// receiver.
    #[must_use]
    pub fn in_brief(&self, receiver: &str) -> Self {
        let record = self.without_arguments(receiver).unwrap_or_else(|| self.clone());
        Self {
            call_id: brief(record.call_id),
            tool: brief(record.tool),
            tenant: record.tenant.map(brief_value),
            user: record.user.map(brief_value),
            client: record.client.map(brief),
            session: record.session.map(brief),
            source: record.source.map(brief),
            version: record.version.map(brief),
            decision: record.decision.in_brief(),
            ..record
        }
    }
}

impl Decision {
    fn in_brief(self) -> Self {
        match self {
            Self::AllowedBy { by } => Self::AllowedBy { by: brief(by) },
            Self::Approved { by, rule, changed, shown } => {
                Self::Approved { by: brief(by), rule: rule.map(brief), changed, shown }
            }
            Self::Denied { reason, by, shown } => {
                Self::Denied { reason: brief(reason), by: by.map(brief), shown }
            }
            Self::Cancelled { by, shown } => Self::Cancelled { by: by.map(brief), shown },
            Self::Allowed | Self::Waiting | Self::Undecided => self,
        }
    }
}

/// A text, or the beginning of a long one with its size and fingerprint.
fn brief(text: String) -> String {
    if text.chars().nth(WHOLE_CHARS).is_none() {
        return text;
    }
    let first: String = text.chars().take(FIRST_CHARS).collect();
    let bytes = text.len();
    format!("{first}… ({bytes} bytes, {})", Fingerprint::of_json(&Value::from(text)))
}

fn brief_value(value: Value) -> Value {
    match value {
        Value::String(text) => brief(text).into(),
        Value::Array(_) | Value::Object(_) => brief(value.to_string()).into(),
        small => small,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn no_text_of_a_call_makes_its_record_too_large() {
        let long = || "ü".repeat(100_000);
        let mut record = AuditRecord::new(SystemTime::UNIX_EPOCH, long(), "bash");
        (record.session, record.client) = (Some(long()), Some("ada".to_owned()));
        (record.user, record.tenant) = (Some(long().into()), Some(vec![long()].into()));
        record.arguments = Some(vec![long()].into());
        record.decision = Decision::Denied { reason: long(), by: Some(long()), shown: None };
        let brief = record.in_brief("syslog");
        assert!(brief.to_json().len() < 4_096, "{}", brief.to_json());
        assert_eq!((brief.tool.as_str(), brief.client.as_deref()), ("bash", Some("ada")));
        let digest = Fingerprint::of_json(&Value::from(long())).to_string();
        assert!(brief.call_id.starts_with("üüü") && brief.call_id.contains(&digest));
        assert_ne!(
            brief.call_id,
            AuditRecord::new(record.time, "ü".repeat(99_999), "").in_brief("").call_id
        );
    }
}
