//! The places in which a crib keeps what outlives a call: stores and the audit log.

use std::sync::Arc;

#[cfg(all(unix, feature = "manifests"))]
use toolcrib_core::audit::AuditArguments;
use toolcrib_core::audit::AuditTrail;
use toolcrib_core::run::Journal;
use toolcrib_core::spill::SpillStore;
use toolcrib_core::suspension::SuspensionStore;

use super::{Outputs, ToolcribBuilder};
#[cfg(all(unix, feature = "manifests"))]
use crate::stores::AuditSinks;

impl ToolcribBuilder {
    /// Sets the store for calls that wait for approval, for a client, or for an answer. Default:
    /// none; such calls fail.
    #[must_use]
    pub fn suspensions(mut self, store: Arc<dyn SuspensionStore>) -> Self {
        self.executor = self.executor.suspensions(store);
        self
    }

    /// Makes calls fail that would have to wait, even if a store was set: for programs that end
    /// after one call.
    #[must_use]
    pub fn without_suspensions(mut self) -> Self {
        self.executor = self.executor.without_suspensions();
        self
    }

    /// Sets the journals of runs ([`Toolcrib::runs`](crate::Toolcrib::runs)). Default: none.
    #[must_use]
    pub fn runs(mut self, store: Arc<dyn Journal>) -> Self {
        self.runs = Some(store);
        self
    }

    /// Sets the store in which tasks of MCP clients outlive the server
    /// ([`Toolcrib::task_store`](crate::Toolcrib::task_store)). Default: none.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn task_store(mut self, store: Arc<dyn toolcrib_mcp::TaskStore>) -> Self {
        self.tasks = Some(store);
        self
    }

    /// Sets the store in which answers to requests with an `Idempotency-Key` outlive the server. Default: none; then
    /// they are kept in memory.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn answers(mut self, store: Arc<dyn toolcrib_http::AnswerStore>) -> Self {
        self.answers = Some(store);
        self
    }

    /// Sets the store for truncated outputs. Default: in memory, 64 MiB for an hour.
    ///
    /// The tool `read_output` reads them, unless the host has registered its own tool of that name,
    /// which then has to read them.
    #[must_use]
    pub fn spill(mut self, store: Arc<dyn SpillStore>) -> Self {
        self.outputs = Outputs::Store(store);
        self
    }

    /// Disables the store for outputs: truncated text is lost, and there is no `read_output`.
    #[must_use]
    pub fn no_spill(mut self) -> Self {
        self.outputs = Outputs::Nowhere;
        self
    }

    /// Sets the audit log, which records every call. Default: none.
    #[must_use]
    pub fn audit(mut self, trail: AuditTrail) -> Self {
        self.executor = self.executor.audit(trail);
        self
    }

    /// Sends audit records to an OpenTelemetry collector as well, beside the places of the config. It is flushed when the
    /// crib is shut down. [`resources`](Self::resources) fails if the config has `audit.otlp: true` and this was not called
    /// before.
    #[cfg(all(unix, feature = "manifests"))]
    #[must_use]
    pub fn audit_collector(mut self, collector: Arc<dyn toolcrib_core::audit::AuditSink>) -> Self {
        self.audit_sinks.collector = Some(collector);
        self
    }

    /// Sets the audit log to places that the crib flushes when it is shut down.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn audit_sinks(self, sinks: AuditSinks, arguments: AuditArguments) -> Self {
        let trail = AuditTrail::new(Arc::new(sinks.clone())).with_arguments(arguments);
        Self { audit_sinks: sinks, ..self.audit(trail) }
    }

    /// Sets the database whose state the crib reports.
    #[cfg(all(unix, feature = "manifests"))]
    pub(crate) fn database(mut self, database: crate::stores::Database) -> Self {
        self.database = Some(database);
        self
    }
}
