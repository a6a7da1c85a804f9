//! The interface to the program whose tools are served.

use std::io;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolcrib_core::run::Journal;
use toolcrib_core::{Executor, Toolset, TurnOptions};
use toolcrib_tool::ContextValues;

use toolcrib_mcp::McpSessions;

use crate::AnswerStore;
use crate::api::reports::{NameStatus, ReleasedName, Reloaded, ServerStatus};
use crate::serving::agents::AgentRuns;
use crate::serving::responses::Responses;

/// A program whose tools are served: an executor, and what its host knows about it.
///
/// The facade's `Toolcrib` implements it. An [`Executor`] alone implements it as well, without
/// operations.
pub trait Backend: Send + Sync + 'static {
    /// The executor that runs the calls.
    fn executor(&self) -> &Executor;

    /// The options of a client's turns: the host's own context, overridden by the client's values,
    /// and the host's services.
    fn turn_options(&self, client: ContextValues) -> TurnOptions {
        TurnOptions::default().values(client)
    }

    /// Looks up a toolset by name. Default: there are none.
    fn toolset(&self, _name: &str) -> Option<Toolset> {
        None
    }

    /// The store of runs, if there is one. Default: none; calls that would wait fail instead.
    fn runs(&self) -> Option<Arc<dyn Journal>> {
        None
    }

    /// The runs of agents, if there can be any. Default: none.
    fn agents(&self) -> Option<&dyn AgentRuns> {
        None
    }

    /// What answers requests of the Responses API, if there can be any. Default: nothing.
    fn responses(&self) -> Option<&dyn Responses> {
        None
    }

    /// The persistent store of answers to requests with an `Idempotency-Key`, if there is one.
    /// Default: none; answers are kept in memory.
    fn answers(&self) -> Option<Arc<dyn AnswerStore>> {
        None
    }

    /// The limits of each client's MCP sessions. Default: [those of the MCP
    /// server](McpSessions::default).
    fn mcp_sessions(&self) -> McpSessions {
        McpSessions::default()
    }

    /// Health in numbers. It is served to everybody, so it should be cheap and contain no names.
    fn health(&self) -> Health {
        Health { tools: self.executor().registry().snapshot().entries().len(), ..Health::default() }
    }

    /// The status for operators: files, upstream servers, what a restart would change.
    fn status(&self) -> ServerStatus {
        let generation = self.executor().registry().snapshot().generation();
        ServerStatus { pid: std::process::id(), generation, ..ServerStatus::default() }
    }

    /// Reloads the declarations of tools and returns the changes. May block. Fails with the reason.
    fn reload(&self) -> Result<Reloaded, String> {
        Err("this server has nothing to reload".to_owned())
    }

    /// The owner of a tool name, its other declarations, and what a restart would change.
    fn name_status(&self, name: &str) -> NameStatus {
        let snapshot = self.executor().registry().snapshot();
        let owner = snapshot.get(name).map(|entry| entry.source.to_string());
        NameStatus { name: name.to_owned(), owner, ..NameStatus::default() }
    }

    /// Ends the reservation of a name that its owner gave up, so that the next declaration gets it.
    /// Returns whether there was a reservation, and fails with the reason.
    fn release_name(&self, name: &str) -> Result<ReleasedName, String> {
        let registry = self.executor().registry();
        let released = registry.release(name).map_err(|error| error.to_string())?;
        let snapshot = registry.snapshot();
        let owner = snapshot.get(name).map(|entry| entry.source.to_string());
        Ok(ReleasedName { released, owner })
    }

    /// The last records of the audit log, oldest first, at most this many; `None` if there is no
    /// log. May block.
    fn audit_tail(&self, _records: usize) -> Option<io::Result<Vec<Value>>> {
        None
    }

    /// Restarts an upstream MCP server. Returns false if there is none of this name that can be
    /// restarted.
    fn restart_upstream(&self, _name: &str) -> bool {
        false
    }

    /// The upstream MCP servers, each with whether it is connected.
    fn upstreams(&self) -> Vec<(String, bool)> {
        Vec::new()
    }
}

impl Backend for Executor {
    fn executor(&self) -> &Executor {
        self
    }
}

/// The health of a server in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// The generation of the registry, which rises with every change.
    pub generation: u64,
    /// Tools that own their name, including those that cannot be called here.
    pub tools: usize,
    /// Tools that cannot be called here.
    pub unavailable: usize,
    /// Manifests that are in use in their current form.
    pub files_live: usize,
    /// Invalid manifests whose last valid version is in use.
    pub files_stale: usize,
    /// Invalid manifests that were never valid.
    pub files_broken: usize,
    /// Manifest directories that cannot be read.
    pub directories_unreadable: usize,
    /// Upstream MCP servers that are connected.
    pub upstreams_connected: usize,
    /// Upstream MCP servers that cannot be used now.
    pub upstreams_down: usize,
    /// Names that would have another owner after a restart.
    pub names_after_restart: usize,
    /// Audit records that could not be written or sent.
    pub audit_lost: u64,
    /// Places of the audit log, a file or syslog, to which records cannot be written or sent now.
    pub audit_down: usize,
    /// 1 if state cannot be stored now, for example because the disk is full; else 0.
    pub state_down: usize,
    /// 1 if the latest configuration is invalid, so that the previous one is in effect; else 0.
    pub config_refused: usize,
    /// Parts of confinement profiles that this machine cannot enforce, as far as the start has
    /// checked. The server's log and status and `toolcrib doctor` name them.
    pub not_enforced: usize,
}

impl Health {
    /// Whether something needs an operator's attention. Calls are answered anyway.
    pub fn is_degraded(&self) -> bool {
        let Self { files_stale, files_broken, directories_unreadable, .. } = self;
        let Self { upstreams_down, names_after_restart, audit_lost, config_refused, .. } = self;
        let Self { not_enforced, audit_down, state_down, .. } = self;
        let counts = [
            files_stale,
            files_broken,
            directories_unreadable,
            upstreams_down,
            names_after_restart,
            config_refused,
            not_enforced,
            audit_down,
            state_down,
        ];
        counts.iter().any(|count| **count > 0) || *audit_lost > 0
    }
}
