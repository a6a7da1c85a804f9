//! Masking audit records.

use super::{AuditRecord, Decision};
use crate::output::masking::Mask;

impl AuditRecord {
    /// The record without secrets, which is the only form that reaches a sink. Each field is named, so a new one does
    /// not compile until it is masked here. Digests, times and fixed words hold no secret.
    pub(super) fn masked(self, mask: &Mask) -> Self {
        let Self {
            format,
            time,
            call_id,
            tool,
            tenant,
            user,
            client,
            session,
            source,
            version,
            definition,
            arguments_hash,
            arguments,
            decision,
            outcome,
            cached,
            skipped,
            duration,
        } = self;
        Self {
            format,
            time,
            call_id: mask.owned(call_id),
            tool: mask.owned(tool),
            tenant: tenant.map(|tenant| mask.value(tenant)),
            user: user.map(|user| mask.value(user)),
            client: client.map(|client| mask.owned(client)),
            session: session.map(|session| mask.owned(session)),
            source: source.map(|source| mask.owned(source)),
            version: version.map(|version| mask.owned(version)),
            definition,
            arguments_hash,
            arguments: arguments.map(|arguments| mask.value(arguments)),
            decision: decision.masked(mask),
            outcome,
            cached,
            skipped,
            duration,
        }
    }
}

impl Decision {
    fn masked(self, mask: &Mask) -> Self {
        match self {
            Self::Allowed | Self::Waiting | Self::Undecided => self,
            Self::AllowedBy { by } => Self::AllowedBy { by: mask.owned(by) },
            Self::Approved { by, rule, changed, shown } => {
                let rule = rule.map(|rule| mask.owned(rule));
                Self::Approved { by: mask.owned(by), rule, changed, shown }
            }
            Self::Denied { reason, by, shown } => {
                let by = by.map(|by| mask.owned(by));
                Self::Denied { reason: mask.owned(reason), by, shown }
            }
            Self::Cancelled { by, shown } => {
                Self::Cancelled { by: by.map(|by| mask.owned(by)), shown }
            }
        }
    }
}
