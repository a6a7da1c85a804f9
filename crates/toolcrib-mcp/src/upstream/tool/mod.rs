//! The body of an imported tool: it sends a call to the server and returns the outcome.

pub(crate) mod definition;
pub(crate) mod linked_resources;
pub(crate) mod listing;
pub(crate) mod progress;
pub(crate) mod publish;
pub(crate) mod result;
pub(crate) mod untrusted_text;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult,
};
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;
use toolcrib_net::TransportError;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Plan, Tool, ToolError, ToolOutcome, UpstreamPlan,
};

use crate::upstream::connection::link::Link;
use crate::upstream::connection::pending::PendingRequest;
use crate::upstream::tool::result::outcome;
use crate::upstream::tool::untrusted_text::marked;

/// A tool of an upstream.
pub(crate) struct UpstreamTool {
    pub(crate) link: Arc<Link>,
    /// Its name on the wire.
    pub(crate) original: String,
    /// Whether a call that may have run can safely be repeated: the tool is read-only or
    /// idempotent.
    pub(crate) repeatable: bool,
}

impl Tool for UpstreamTool {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let live = self.link.live()?;
            let arguments = protected(&arguments)?;
            let params =
                CallToolRequestParams::new(self.original.clone()).with_arguments(arguments);
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let mut pending = PendingRequest::ask(&self.link, &live, request)
                .await
                .map_err(|error| self.safe_to_repeat(&error))?;
            let following = live.progress.track(pending.progress_token(), cx);
            let answer = following.beside(pending.answer()).await;
            match answer.map_err(|error| self.failed(&error))? {
                ServerResult::CallToolResult(answer) => outcome(&self.link.upstream, answer),
                ServerResult::InputRequiredResult(_) => Err(ToolError::execution(format!(
                    "the MCP server `{}` asks a question before it continues, and nobody here \
                     answers questions of imported tools",
                    self.link.upstream
                ))),
                _ => Err(ToolError::execution(format!(
                    "the MCP server `{}` answered with something that is not a call result",
                    self.link.upstream
                ))),
            }
        })
    }

    fn validates(&self) -> bool {
        false
    }

    fn plan(&self, arguments: &Arguments, _: &CallContext) -> Result<Option<Plan>, ToolError> {
        // Like a call, a plan needs a connection.
        self.link.live()?;
        Ok(Some(Plan::Upstream(UpstreamPlan {
            server: self.link.upstream.clone(),
            tool: self.original.clone(),
            arguments: arguments.exact().to_shown(),
        })))
    }
}

impl UpstreamTool {
    fn failed(&self, error: &ServiceError) -> ToolError {
        let upstream = &self.link.upstream;
        match error {
            ServiceError::McpError(error) => ToolError::execution(format!(
                "the MCP server `{upstream}` refused the call (code {})\n{}",
                error.code.0,
                marked(upstream, &error.message)
            )),
            error if self.repeatable || nothing_was_sent(error) => self.safe_to_repeat(error),
            error => {
                self.check_connection();
                ToolError::outcome_unknown(format!(
                    "the connection to the MCP server `{upstream}` was lost during the call"
                ))
                .with_source(std::io::Error::other(error.to_string()))
            }
        }
    }

    /// The error for a call that the server has not received, or that can safely be repeated.
    fn safe_to_repeat(&self, error: &ServiceError) -> ToolError {
        self.check_connection();
        ToolError::unavailable(format!(
            "the connection to the MCP server `{}` was lost during the call",
            self.link.upstream
        ))
        .with_hint("it will be reconnected automatically: try again later")
        .with_retryable(true)
        .with_source(std::io::Error::other(error.to_string()))
    }

    /// Has the supervisor check the connection: over HTTP a broken connection goes unnoticed until
    /// it is used.
    fn check_connection(&self) {
        self.link.given_up.notify_one();
    }
}

/// The arguments with stand-ins, which the connection replaces by the exact numbers.
fn protected(arguments: &Arguments) -> Result<JsonObject, ToolError> {
    match arguments.exact().into_protected() {
        Value::Object(members) => Ok(members),
        // A schema may allow arguments that are not an object; MCP does not.
        _ => arguments.parse(),
    }
}

/// Whether the server cannot have received the request, because no connection could be made.
fn nothing_was_sent(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    matches!(
        error.error.downcast_ref::<StreamableHttpError<TransportError>>(),
        Some(StreamableHttpError::Client(error)) if error.is_connect()
    )
}
