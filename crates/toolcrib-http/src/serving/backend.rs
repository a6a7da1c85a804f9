//! What the listener is in front of.

use std::io;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolcrib_core::run::RunStore;
use toolcrib_core::{Executor, Toolset, TurnOptions};
use toolcrib_tool::ContextValues;

use toolcrib_mcp::McpSessions;

use crate::AnswerStore;
use crate::api::reports::{NameStatus, Released, Reloaded, ServerStatus};

/// A program whose tools are served: an executor, and what its host knows of it.
///
/// The facade's `Toolcrib` is one. An [`Executor`] alone is one, too, without anything to operate.
pub trait Backend: Send + Sync + 'static {
    /// Who runs the calls.
    fn executor(&self) -> &Executor;

    /// What the turns of a client's requests are opened with: the host's own context under the
    /// client's values, services, and whatever else the host attaches.
    fn turn_options(&self, client: ContextValues) -> TurnOptions {
        TurnOptions::default().values(client)
    }

    /// A toolset by its name. Default: there is none.
    fn toolset(&self, _name: &str) -> Option<Toolset> {
        None
    }

    /// Where runs are kept, if anywhere. Default: nowhere; then calls that would wait fail.
    fn runs(&self) -> Option<Arc<dyn RunStore>> {
        None
    }

    /// Where answers to requests with an `Idempotency-Key` outlive this program, if anywhere. Default:
    /// nowhere; then they are kept in memory.
    fn answers(&self) -> Option<Arc<dyn AnswerStore>> {
        None
    }

    /// The bounds of each client's MCP sessions. Default: [those of the MCP server](McpSessions::default).
    fn mcp_sessions(&self) -> McpSessions {
        McpSessions::default()
    }

    /// How it stands, in numbers. Asked for by anybody, so it should be cheap and name nothing.
    fn health(&self) -> Health {
        Health { tools: self.executor().registry().snapshot().entries().len(), ..Health::default() }
    }

    /// How it stands, for operators: files, upstream servers, what a restart would change.
    fn status(&self) -> ServerStatus {
        let generation = self.executor().registry().snapshot().generation();
        ServerStatus { pid: std::process::id(), generation, ..ServerStatus::default() }
    }

    /// Reads the declarations of tools again, and says what has changed. May block. Fails with what
    /// kept it from doing so.
    fn reload(&self) -> Result<Reloaded, String> {
        Err("this server has nothing to read again".to_owned())
    }

    /// Who owns a tool's name here and now, who else declares it, and what a restart would change.
    fn name_status(&self, name: &str) -> NameStatus {
        let snapshot = self.executor().registry().snapshot();
        let owner = snapshot.get(name).map(|entry| entry.source.to_string());
        NameStatus { name: name.to_owned(), owner, ..NameStatus::default() }
    }

    /// Ends the reservation of a name that its owner gave up, so that whoever declares it next gets it;
    /// says whether there was one. Fails with what kept it from doing so.
    fn release_name(&self, name: &str) -> Result<Released, String> {
        let registry = self.executor().registry();
        let released = registry.release(name).map_err(|error| error.to_string())?;
        let snapshot = registry.snapshot();
        let owner = snapshot.get(name).map(|entry| entry.source.to_string());
        Ok(Released { released, owner })
    }

    /// The last records of the audit log, the oldest first, at most so many; `None` if there is no
    /// log. May block.
    fn audit_tail(&self, _records: usize) -> Option<io::Result<Vec<Value>>> {
        None
    }

    /// The other MCP servers behind it, each with whether it is connected.
    fn upstreams(&self) -> Vec<(String, bool)> {
        Vec::new()
    }
}

impl Backend for Executor {
    fn executor(&self) -> &Executor {
        self
    }
}

/// How a server stands, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// The number of the registry's snapshot; it rises with every change.
    pub generation: u64,
    /// Tools that own their name, those that cannot be called here included.
    pub tools: usize,
    /// Tools among them that cannot be called here.
    pub unavailable: usize,
    /// Manifests that are in use as they stand.
    pub files_live: usize,
    /// Manifests that cannot be used; what they said last still holds.
    pub files_stale: usize,
    /// Manifests that never could be used.
    pub files_broken: usize,
    /// Directories of manifests that cannot be read.
    pub directories_unreadable: usize,
    /// MCP servers behind this one that are connected.
    pub upstreams_connected: usize,
    /// MCP servers behind this one that cannot be used now.
    pub upstreams_down: usize,
    /// Names that a restart would give to others.
    pub names_after_restart: usize,
    /// Audit records that could not be written.
    pub audit_lost: u64,
    /// 1 while the config that was read last cannot be used, so that the one before is in effect; else 0.
    pub config_refused: usize,
    /// Things that this machine cannot enforce of the profiles of programs, as far as that was looked
    /// for at the start. What they are is in the server's log and status, and `toolcrib doctor` says it.
    pub not_enforced: usize,
}

impl Health {
    /// Whether something needs an operator. Calls are answered all the same.
    pub fn is_degraded(&self) -> bool {
        let Self { files_stale, files_broken, directories_unreadable, .. } = self;
        let Self { upstreams_down, names_after_restart, audit_lost, config_refused, .. } = self;
        let Self { not_enforced, .. } = self;
        let counts = [
            files_stale,
            files_broken,
            directories_unreadable,
            upstreams_down,
            names_after_restart,
            config_refused,
            not_enforced,
        ];
        counts.iter().any(|count| **count > 0) || *audit_lost > 0
    }
}
