//! Talking to running servers: a socket for each in the [place](ControlPlace) of its config, for its
//! owner alone.
//!
//! A connection carries requests and answers, a line of JSON each:
//!
//! ```json
//! {"command": "release", "name": "ping"}
//! {"ok": true, "released": true}
//! {"command": "nonsense"}
//! {"ok": false, "error": "…"}
//! ```
//!
//! | command | answer |
//! |---|---|
//! | `status` | who the server is, its files and upstream servers with their state, the generation, what a restart would change |
//! | `reload` | reads all manifests and their surroundings again; what became of each file and upstream server that changed |
//! | `stats` | counts and durations of every tool |
//! | `release` + `name` | ends the reservation of a name; whether there was one |
//! | `why` + `name` | who owns a name here and now, who waits for it; `besides` are files that declare a prompt, a resource or another MCP server of the name |

mod answer;
mod client;
mod names;
mod place;
mod server;
mod upstreams;

use serde::{Deserialize, Serialize};

#[cfg(feature = "http")]
pub(crate) use answer::answer;
pub use client::{RunningServer, running_servers};
pub use place::{ControlPlace, NoControlPlace};
pub use server::ControlSocket;

/// What a server is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlRequest {
    /// What is to be done.
    pub command: ControlCommand,
    /// The name, for those that are about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a server can be asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ControlCommand {
    /// Say how it stands.
    Status,
    /// Read the manifests again.
    Reload,
    /// Say what the tools have done.
    Stats,
    /// End the reservation of a name.
    Release,
    /// Say who owns a name.
    Why,
}

impl ControlRequest {
    /// A request that needs no name.
    pub fn new(command: ControlCommand) -> Self {
        Self { command, name: None }
    }

    /// A request about a name.
    pub fn about(command: ControlCommand, name: impl Into<String>) -> Self {
        Self { command, name: Some(name.into()) }
    }
}

/// No request is longer than this.
const LINE_MAX_BYTES: u64 = 64 * 1024;
