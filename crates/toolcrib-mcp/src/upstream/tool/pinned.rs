//! A tool as its pin tells, for people who look at it while nobody asks its server.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::masking::LiveMask;
use toolcrib_tool::{Arguments, BoxFuture, CallContext, Tool, ToolEntry, ToolError, ToolOutcome};

use super::definition::import;
use crate::upstream::settings::Upstream;

/// The body of a tool whose server nobody has asked.
struct UnaskedTool {
    upstream: String,
}

impl Tool for UnaskedTool {
    fn call<'a>(
        &'a self,
        _: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        let problem = format!("the MCP server `{}` is not connected", self.upstream);
        Box::pin(std::future::ready(Err(ToolError::unavailable(problem))))
    }
}

impl Upstream {
    /// The entry that a tool has here whose pinned definition is `says`: with the operator's words in place of the server's,
    /// as models see it while the server is connected. It cannot be called. `None` if the definition has no name.
    pub fn pinned_entry(&self, secrets: &LiveMask, says: &Value) -> Option<ToolEntry> {
        let tool = import(self, secrets, says)?;
        let body = UnaskedTool { upstream: self.name.clone() };
        let entry = ToolEntry::new(tool.definition, Arc::new(body), self.source())
            .with_digest(tool.fingerprint.to_string());
        Some(match tool.refused {
            Some(reason) => entry.unavailable(reason),
            None => entry,
        })
    }
}
