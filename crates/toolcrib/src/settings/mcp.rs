//! Settings of the MCP server, over standard input and output and over HTTP.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_mcp::{McpOptions, TaskOptions};
use toolcrib_tool::units::{HumanDuration, OrNone, TimeLimit, or_none};

/// What MCP clients are offered, and how.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// How many entries a page of a list of tools, prompts or resources has; `none` for all in one page.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroUsize>")]
    pub page_size: Option<NonZeroUsize>,
    /// Calls that are answered with a task.
    pub tasks: Tasks,
    /// The client of `toolcrib mcp`, over standard input and output.
    pub stdio: Stdio,
}

/// The client of `toolcrib mcp`. It acts for whoever started the server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Stdio {
    /// What the client may do. With `call` alone it is never asked to approve a call: such calls
    /// wait for somebody else, as those of a client without the right do over HTTP.
    pub rights: StdioRights,
}

/// The rights of the client of `toolcrib mcp`: always `call`, and `approve` or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<StdioRight>")]
pub struct StdioRights(Vec<StdioRight>);

/// One of the things that the client of `toolcrib mcp` may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StdioRight {
    /// List, search, describe and call tools.
    Call,
    /// Approve calls, when its user is asked.
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

/// Calls that are answered with a task, for clients that know tasks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tasks {
    /// How long a call may take before it becomes a task, unless its tool says otherwise; `none` for as
    /// long as it takes, `0s` for at once.
    pub after: HumanDuration,
    /// How long a task is kept, from its beginning on; `none` for as long as the server runs. What is
    /// still at work then is ended.
    pub ttl: TimeLimit,
    /// Tasks of one client at once, those that are done included; further calls are waited for. 0: no
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
    /// A server's options with these settings.
    pub fn options(&self) -> McpOptions {
        let tasks = TaskOptions {
            after: self.tasks.after.0.unwrap_or(Duration::MAX),
            ttl: self.tasks.ttl.0.unwrap_or(Duration::MAX),
            max: self.tasks.max,
        };
        McpOptions::default().tasks(tasks).page_size(self.page_size.map_or(0, NonZeroUsize::get))
    }
}
