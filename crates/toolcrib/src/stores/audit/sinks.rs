//! All places of the audit log.

use std::fmt;
use std::sync::Arc;

use toolcrib_core::audit::{AuditRecord, AuditSink};

use super::{FileAudit, SyslogAudit};

/// The file, syslog and the collector, as far as they are configured. Each record goes to all of them; a failure of one
/// does not affect the others.
#[derive(Clone, Default)]
pub(crate) struct AuditSinks {
    pub(crate) file: Option<Arc<FileAudit>>,
    pub(crate) syslog: Option<Arc<SyslogAudit>>,
    /// An OpenTelemetry collector.
    pub(crate) collector: Option<Arc<dyn AuditSink>>,
}

impl AuditSinks {
    #[cfg(feature = "manifests")]
    pub(crate) fn is_empty(&self) -> bool {
        self.places().is_empty()
    }

    pub(crate) fn places(&self) -> Vec<&dyn AuditSink> {
        let file = self.file.as_deref().map(|own| own as &dyn AuditSink);
        let syslog = self.syslog.as_deref().map(|own| own as &dyn AuditSink);
        file.into_iter().chain(syslog).chain(self.collector.as_deref()).collect()
    }

    /// How many places cannot be written or sent to now.
    #[cfg(feature = "http")]
    pub(crate) fn down(&self) -> usize {
        self.places().iter().filter(|place| place.problem().is_some()).count()
    }
}

impl AuditSink for AuditSinks {
    fn record(&self, record: &AuditRecord) {
        for place in self.places() {
            place.record(record);
        }
    }

    fn lost(&self) -> u64 {
        self.places().iter().map(|place| place.lost()).sum()
    }

    /// For syslog and the collector at most two seconds.
    fn flush(&self) {
        for place in self.places() {
            place.flush();
        }
    }

    fn finish(&self) {
        for place in self.places() {
            place.finish();
        }
    }
}

impl fmt::Debug for AuditSinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.places().iter().map(|place| place.name())).finish()
    }
}
