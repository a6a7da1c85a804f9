//! Why serving a client failed.

/// Why serving an MCP client over a byte stream failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The client's first message was not one that opens a session.
    #[error(
        "the MCP client did not open the session properly: {reason}. A client sends `initialize` \
         first, or, from revision 2026-07-28 on, complete `_meta` with every request"
    )]
    Handshake {
        /// What went wrong.
        reason: String,
    },
    /// The task that serves the connection ended abnormally.
    #[error("the task that serves the MCP client ended abnormally")]
    Task(#[source] Box<dyn std::error::Error + Send + Sync>),
}
