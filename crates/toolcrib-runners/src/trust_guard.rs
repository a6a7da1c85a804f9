//! Checks the operator's trust and the lock again right before each call.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_manifest::declaration::Declaration;
use toolcrib_manifest::lock::Kind;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, PartialArguments, Plan, StatusUpdate, Tool, ToolDefinition,
    ToolError, ToolOutcome,
};

use crate::{RunnerHost, Trust, TrustDecision, TrustRequest, tool_wants};

/// A tool that runs only while the operator vouches for its declaration. A server notices within moments that trust was
/// revoked or a lock replaced; this check refuses calls that were approved in between.
pub(crate) struct TrustGuard {
    tool: Arc<dyn Tool>,
    trust: Arc<dyn Trust>,
    unit: String,
    name: String,
    digest: String,
    wants: Vec<String>,
}

impl TrustGuard {
    pub(crate) fn new(
        tool: Arc<dyn Tool>,
        declaration: &Declaration,
        digest: &str,
        host: &RunnerHost,
    ) -> Self {
        Self {
            tool,
            trust: Arc::clone(&host.trust),
            unit: declaration.origin.file.clone(),
            name: declaration.definition.name().to_owned(),
            digest: digest.to_owned(),
            wants: tool_wants(declaration, host),
        }
    }

    fn check(&self) -> Result<(), ToolError> {
        let request = TrustRequest {
            kind: Kind::Tool,
            unit: &self.unit,
            name: &self.name,
            digest: &self.digest,
            wants: &self.wants,
        };
        let objection = self.trust.objection(&request).or_else(|| {
            if self.wants.is_empty() {
                return None;
            }
            match self.trust.decide(&request) {
                TrustDecision::Untrusted { remedy } => {
                    Some(format!("needs the operator's trust, which it no longer has: {remedy}"))
                }
                TrustDecision::Trusted | TrustDecision::TrustedForDigest => None,
            }
        });
        match objection {
            Some(objection) => Err(ToolError::unavailable(format!("the tool {objection}"))),
            None => Ok(()),
        }
    }
}

impl Tool for TrustGuard {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        match self.check() {
            Ok(()) => self.tool.call(arguments, cx),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        self.tool.validate(arguments, cx)
    }

    fn validates(&self) -> bool {
        self.tool.validates()
    }

    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        self.tool.plan(arguments, cx)
    }

    fn preview(&self, partial: &PartialArguments<'_>) -> Option<StatusUpdate> {
        self.tool.preview(partial)
    }

    fn previews(&self) -> bool {
        self.tool.previews()
    }

    fn code(&self) -> Option<String> {
        self.tool.code()
    }

    fn delegates_to(&self, arguments: &str) -> Option<String> {
        self.tool.delegates_to(arguments)
    }

    fn refresh<'a>(
        &'a self,
        current: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Option<ToolDefinition>, ToolError>> {
        self.tool.refresh(current)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.tool.close()
    }

    fn wind_down(&self) -> Duration {
        self.tool.wind_down()
    }
}
