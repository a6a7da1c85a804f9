//! Settings of the MCP server, over standard input and output and over HTTP.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_mcp::{McpOptions, TaskOptions};
use toolcrib_tool::units::{HumanDuration, OrNone, TimeLimit, or_none};

/// What MCP clients are offered.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Number of entries on a page of a list of tools, prompts or resources; `none` for a single page.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroUsize>")]
    pub page_size: Option<NonZeroUsize>,
    /// Calls that are answered with a task.
    pub tasks: Tasks,
    /// The client of `toolcrib mcp`, over standard input and output.
    pub stdio: Stdio,
}

/// The client of `toolcrib mcp`. It acts for the user who started the server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stdio {
    /// The rights of the client. With `call` alone it is never asked to approve a call: such calls
    /// wait for somebody else, as they do over HTTP for a client without the right.
    pub rights: StdioRights,
}

/// The rights of the client of `toolcrib mcp`: always `call`, and optionally `approve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<StdioRight>")]
pub struct StdioRights(Vec<StdioRight>);

/// A right of the client of `toolcrib mcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StdioRight {
    /// List, search, describe and call tools.
    Call,
    /// Approve calls, when the client's user is asked.
    Approve,
}

impl Default for Stdio {
    fn default() -> Self {
        Self { rights: StdioRights(vec![StdioRight::Call, StdioRight::Approve]) }
    }
}

impl StdioRights {
    /// Whether the client's user may be asked to approve calls.
    pub fn may_approve(&self) -> bool {
        self.0.contains(&StdioRight::Approve)
    }
}

impl Default for StdioRights {
    fn default() -> Self {
        Stdio::default().rights
    }
}

impl TryFrom<Vec<StdioRight>> for StdioRights {
    type Error = &'static str;

    fn try_from(rights: Vec<StdioRight>) -> Result<Self, Self::Error> {
        if rights.contains(&StdioRight::Call) {
            Ok(Self(rights))
        } else {
            Err("the client needs at least the right `call`: write [call] or [call, approve]")
        }
    }
}

/// Calls that are answered with a task, for clients that support tasks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tasks {
    /// How long a call may take before it becomes a task, unless its tool declares it; `none` for never, `0s` for at
    /// once.
    pub after: HumanDuration,
    /// How long a task is kept, from its start; `none` for as long as the server runs. A task that is still running
    /// then is ended.
    pub ttl: TimeLimit,
    /// Maximum number of tasks of one client, including finished ones; further calls are answered when they end. 0: no
    /// tasks.
    pub max: usize,
}

impl Default for Tasks {
    fn default() -> Self {
        let own = TaskOptions::default();
        Self { after: HumanDuration(Some(own.after)), ttl: TimeLimit(Some(own.ttl)), max: own.max }
    }
}

impl Mcp {
    /// The options of a server with these settings.
    pub fn options(&self) -> McpOptions {
        let tasks = TaskOptions {
            after: self.tasks.after.0.unwrap_or(Duration::MAX),
            ttl: self.tasks.ttl.0.unwrap_or(Duration::MAX),
            max: self.tasks.max,
        };
        McpOptions::default().tasks(tasks).page_size(self.page_size.map_or(0, NonZeroUsize::get))
    }
}
