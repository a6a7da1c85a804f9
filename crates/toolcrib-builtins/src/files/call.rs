//! The workspace of a call, and its access to the host.

use std::sync::Arc;

use toolcrib_sandbox::Workspace;
use toolcrib_tool::{CallContext, ErrorKind, ToolError};

use super::refusal::refusal;

pub(super) struct FileCall<'c> {
    pub(super) workspace: Arc<Workspace>,
    pub(super) cx: &'c CallContext,
}

impl FileCall<'_> {
    /// The path relative to the project's folder.
    pub(super) fn relative(&self, path: &str) -> Result<String, ToolError> {
        self.workspace.relative(path).map_err(|error| refusal(path, error))
    }

    /// Fails if the call was cancelled.
    pub(super) fn check_cancelled(&self) -> Result<(), ToolError> {
        if self.cx.is_cancelled() {
            return Err(ToolError::new(ErrorKind::Cancelled, "the call was cancelled"));
        }
        Ok(())
    }
}
