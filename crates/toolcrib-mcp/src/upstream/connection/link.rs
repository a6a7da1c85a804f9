//! What the tools of an upstream and their keeper share: the connection of the moment.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use rmcp::{Peer, RoleClient};
use tokio::sync::Notify;
use toolcrib_tool::ToolError;

use crate::upstream::tool::progress::Progress;

/// The way from tools to their server, across reconnects.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) upstream: String,
    live: ArcSwapOption<Live>,
    down: Mutex<String>,
    /// Told when a call was given up before its answer came: the server may hang.
    pub(crate) given_up: Notify,
}

/// An open connection, as calls need it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) progress: Arc<Progress>,
}

impl Link {
    pub(crate) fn new(upstream: &str) -> Self {
        Self {
            upstream: upstream.to_owned(),
            live: ArcSwapOption::empty(),
            down: Mutex::new("it has not been connected to yet".to_owned()),
            given_up: Notify::new(),
        }
    }

    pub(crate) fn up(&self, live: Arc<Live>) {
        self.live.store(Some(live));
    }

    /// From now on calls fail, for this reason: a clause about the server.
    pub(crate) fn down(&self, reason: &str) {
        reason.clone_into(&mut self.down.lock().unwrap_or_else(PoisonError::into_inner));
        self.live.store(None);
    }

    /// The connection, or the failure of a call that needs one.
    pub(crate) fn live(&self) -> Result<Arc<Live>, ToolError> {
        self.live.load_full().ok_or_else(|| {
            ToolError::unavailable(self.unavailable())
                .with_hint("it is connected to again by itself: try later, or use another tool")
                .with_retryable(true)
        })
    }

    /// Why its tools cannot be called.
    pub(crate) fn unavailable(&self) -> String {
        let reason = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        format!("the MCP server `{}` is not connected: {reason}", self.upstream)
    }
}
