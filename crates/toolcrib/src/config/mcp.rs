//! Settings of the MCP server, over standard input and output and over HTTP.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_manifest::units::HumanDuration;
use toolcrib_mcp::{McpOptions, TaskOptions};

/// What MCP clients are offered, and how.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// Entries of a page of a list of tools, prompts or resources; 0 for all in one page.
    pub page_size: usize,
    /// Calls that are answered with a task.
    pub tasks: Tasks,
}

/// Calls that are answered with a task, for clients that know tasks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tasks {
    /// How long a call may take before it becomes a task, unless its tool says otherwise; `none` for as
    /// long as it takes.
    pub after: HumanDuration,
    /// How long a task is kept, from its beginning on; `none` for as long as the server runs. What is
    /// still at work then is ended.
    pub ttl: HumanDuration,
    /// Tasks of one client at once, those that are done included; further calls are waited for. 0: no
    /// tasks.
    pub max: usize,
}

impl Default for Tasks {
    fn default() -> Self {
        let own = TaskOptions::default();
        Self {
            after: HumanDuration(Some(own.after)),
            ttl: HumanDuration(Some(own.ttl)),
            max: own.max,
        }
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
        McpOptions::default().tasks(tasks).page_size(self.page_size)
    }
}
