//! The current connection of an upstream, shared by its tools and its supervisor.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use rmcp::{Peer, RoleClient};
use tokio::sync::Notify;
use toolcrib_tool::ToolError;

use crate::upstream::tool::progress::Progress;
use crate::upstream::tool::questions::QuestionRouter;
use crate::upstream::tool::waiting_calls::WaitingCalls;

/// Gives an upstream's tools its current connection, across reconnects.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) upstream: String,
    live: ArcSwapOption<LiveConnection>,
    down: Mutex<String>,
    /// Notified when a call was given up before its answer came: the server may hang.
    pub(crate) given_up: Notify,
    /// Calls that wait until their client has answered a question of the server.
    pub(crate) waiting: WaitingCalls,
}

/// An open connection, as calls use it.
#[derive(Debug)]
pub(crate) struct LiveConnection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) questions: Arc<QuestionRouter>,
}

impl Link {
    pub(crate) fn new(upstream: &str) -> Self {
        Self {
            upstream: upstream.to_owned(),
            live: ArcSwapOption::empty(),
            down: Mutex::new("it has not been connected to yet".to_owned()),
            given_up: Notify::new(),
            waiting: WaitingCalls::default(),
        }
    }

    pub(crate) fn up(&self, live: Arc<LiveConnection>) {
        self.live.store(Some(live));
    }

    /// Makes calls fail from now on for this reason, a clause about the server.
    pub(crate) fn down(&self, reason: &str) {
        reason.clone_into(&mut self.down.lock().unwrap_or_else(PoisonError::into_inner));
        self.live.store(None);
        self.waiting.clear();
    }

    /// The connection, or the error for a call that needs one.
    pub(crate) fn live(&self) -> Result<Arc<LiveConnection>, ToolError> {
        self.live.load_full().ok_or_else(|| {
            ToolError::unavailable(self.unavailable())
                .with_hint(
                    "it will be reconnected automatically: try again later, or use another tool",
                )
                .with_retryable(true)
        })
    }

    /// Why its tools cannot be called.
    pub(crate) fn unavailable(&self) -> String {
        let reason = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        format!("the MCP server `{}` is not connected: {reason}", self.upstream)
    }
}
