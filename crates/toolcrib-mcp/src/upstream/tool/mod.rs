//! The body of an imported tool: a call goes to the server, and what comes back is an outcome.

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
use crate::upstream::connection::pending::Pending;
use crate::upstream::tool::result::outcome;
use crate::upstream::tool::untrusted_text::marked;

/// A tool of an upstream.
pub(crate) struct UpstreamTool {
    pub(crate) link: Arc<Link>,
    /// Its name on the wire.
    pub(crate) original: String,
    /// Whether a call that may have happened can be made again without harm: the tool only reads, or
    /// is idempotent.
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
            let mut pending = Pending::ask(&self.link, &live, request)
                .await
                .map_err(|error| self.not_sent(&error))?;
            let following = live.progress.follow(pending.progress_token(), cx);
            let answer = following.beside(pending.answer()).await;
            match answer.map_err(|error| self.failed(&error))? {
                ServerResult::CallToolResult(answer) => outcome(&self.link.upstream, answer),
                ServerResult::InputRequiredResult(_) => Err(ToolError::execution(format!(
                    "the MCP server `{}` asks a question before it goes on, and nobody here \
                     answers questions of imported tools",
                    self.link.upstream
                ))),
                _ => Err(ToolError::execution(format!(
                    "the MCP server `{}` answered with something that is not the result of a call",
                    self.link.upstream
                ))),
            }
        })
    }

    fn validates(&self) -> bool {
        false
    }

    fn plan(&self, arguments: &Arguments, _: &CallContext) -> Result<Option<Plan>, ToolError> {
        // As for a call, which needs a connection.
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
            error if self.repeatable || nothing_was_sent(error) => self.not_sent(error),
            error => {
                self.notice();
                ToolError::outcome_unknown(format!(
                    "the connection to the MCP server `{upstream}` broke off during the call"
                ))
                .with_source(std::io::Error::other(error.to_string()))
            }
        }
    }

    /// A call that the server has not seen, or that can be made again without harm.
    fn not_sent(&self, error: &ServiceError) -> ToolError {
        self.notice();
        ToolError::unavailable(format!(
            "the connection to the MCP server `{}` broke off during the call",
            self.link.upstream
        ))
        .with_hint("it is connected to again by itself: try again later")
        .with_retryable(true)
        .with_source(std::io::Error::other(error.to_string()))
    }

    /// Has the connection looked at: over HTTP nobody notices that it broke before somebody asks.
    fn notice(&self) {
        self.link.given_up.notify_one();
    }
}

/// The arguments with stand-ins, for which the connection sends the numbers.
fn protected(arguments: &Arguments) -> Result<JsonObject, ToolError> {
    match arguments.exact().into_protected() {
        Value::Object(members) => Ok(members),
        // A schema may allow what is no object, and MCP does not.
        _ => arguments.parse(),
    }
}

/// Whether the server cannot have seen the request: no connection to it could be made.
fn nothing_was_sent(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    matches!(
        error.error.downcast_ref::<StreamableHttpError<TransportError>>(),
        Some(StreamableHttpError::Client(error)) if error.is_connect()
    )
}
