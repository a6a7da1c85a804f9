//! A crib as the backend of the HTTP listener.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::audit::AuditSink as _;
use toolcrib_core::run::Journal;
use toolcrib_core::{Executor, Toolset, TurnOptions};
use toolcrib_http::reports::{NameStatus, Reloaded, ServerStatus};
use toolcrib_http::{AnswerStore, Backend, Health};
use toolcrib_manifest::live::FileStatus;
use toolcrib_mcp::McpSessions;
use toolcrib_mcp::upstream::UpstreamState;
use toolcrib_tool::ContextValues;

use crate::Toolcrib;
use crate::manifests::Reloader;
use crate::servers::operations;

impl Backend for Toolcrib {
    fn executor(&self) -> &Executor {
        Toolcrib::executor(self)
    }

    fn turn_options(&self, client: ContextValues) -> TurnOptions {
        Toolcrib::turn_options(self).values(client)
    }

    fn toolset(&self, name: &str) -> Option<Toolset> {
        Toolcrib::toolset(self, name).ok()
    }

    fn runs(&self) -> Option<Arc<dyn Journal>> {
        Toolcrib::runs(self).cloned()
    }

    #[cfg(feature = "agent")]
    fn agents(&self) -> Option<&dyn toolcrib_http::AgentRuns> {
        Some(self)
    }

    #[cfg(feature = "agent")]
    fn responses(&self) -> Option<&dyn toolcrib_http::Responses> {
        Some(self)
    }

    fn answers(&self) -> Option<Arc<dyn AnswerStore>> {
        self.answers.clone()
    }

    fn mcp_sessions(&self) -> McpSessions {
        self.mcp_sessions.as_ref().map(McpSessions::for_another_client).unwrap_or_default()
    }

    fn health(&self) -> Health {
        let snapshot = Toolcrib::executor(self).registry().snapshot();
        let files = self.manifests().map(Reloader::files).unwrap_or_default();
        let of_state = |state: &str| {
            files.iter().filter(|file: &&FileStatus| file.state.as_str() == state).count()
        };
        let upstreams = self.upstreams().status();
        let down = |state: &UpstreamState| matches!(state, UpstreamState::Down { .. });
        let entries = snapshot.entries();
        let names = self.declared_names();
        let names_after_restart = names.iter().filter(|one| one.after_restart.is_some()).count();
        Health {
            generation: snapshot.generation(),
            tools: snapshot.entries().filter(|entry| !entry.opt_in).count(),
            unavailable: entries.filter(|entry| entry.unavailable_reason().is_some()).count(),
            files_live: of_state("live"),
            files_stale: of_state("stale"),
            files_broken: of_state("broken"),
            directories_unreadable: self.manifests().map_or(0, |own| own.unreadable().len()),
            upstreams_connected: upstreams
                .iter()
                .filter(|own| own.state == UpstreamState::Connected)
                .count(),
            upstreams_down: upstreams.iter().filter(|own| down(&own.state)).count(),
            names_after_restart: snapshot.would_differ().len() + names_after_restart,
            audit_lost: self.audit_sinks().lost(),
            audit_down: self.audit_sinks().down(),
            state_down: usize::from(self.database().is_some_and(|own| own.trouble().is_some())),
            config_refused: usize::from(self.live_config().last().problem.is_some()),
            not_enforced: toolcrib_sandbox::jail::shortfalls().len(),
        }
    }

    fn status(&self) -> ServerStatus {
        operations::status(self)
    }

    fn reload(&self) -> Result<Reloaded, String> {
        Toolcrib::reload(self)
    }

    fn name_status(&self, name: &str) -> NameStatus {
        operations::name_status(self, name)
    }

    fn audit_tail(&self, records: usize) -> Option<io::Result<Vec<Value>>> {
        self.audit_sinks().file.as_ref().map(|file| file.tail(records))
    }

    fn restart_upstream(&self, name: &str) -> bool {
        Toolcrib::upstreams(self).restart(name)
    }

    fn upstreams(&self) -> Vec<(String, bool)> {
        let connected = |state: &UpstreamState| *state == UpstreamState::Connected;
        let upstreams = Toolcrib::upstreams(self).status();
        upstreams.into_iter().map(|own| (own.name, connected(&own.state))).collect()
    }
}
