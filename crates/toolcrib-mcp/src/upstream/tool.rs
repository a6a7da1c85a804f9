//! The body of an imported tool: a call goes to the server, and what comes back is an outcome.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Plan, Tool, ToolError, ToolOutcome, UpstreamPlan,
};

use super::link::Link;
use super::marking::marked;
use super::result::outcome;

/// A tool of an upstream.
pub(crate) struct UpstreamTool {
    pub(crate) link: Arc<Link>,
    /// Its name on the wire.
    pub(crate) original: String,
}

impl Tool for UpstreamTool {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let live = self.link.live()?;
            let arguments: JsonObject = arguments.parse()?;
            let params =
                CallToolRequestParams::new(self.original.clone()).with_arguments(arguments);
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let options = PeerRequestOptions::no_options();
            let handle = live
                .peer
                .send_request_with_option(request, options)
                .await
                .map_err(|error| self.failed(&error))?;
            let _following = live.progress.follow(handle.progress_token.clone(), cx.clone());
            let mut pending = Pending { handle: Some(handle), link: &self.link };
            let answer = pending.answer().await;
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

    fn plan(&self, arguments: &Arguments, _: &CallContext) -> Result<Option<Plan>, ToolError> {
        // As for a call, which needs a connection.
        self.link.live()?;
        Ok(Some(Plan::Upstream(UpstreamPlan {
            server: self.link.upstream.clone(),
            tool: self.original.clone(),
            arguments: arguments.value().clone(),
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
            error => {
                // Over HTTP nobody notices before somebody asks.
                self.link.given_up.notify_one();
                ToolError::unavailable(format!(
                    "the connection to the MCP server `{upstream}` broke off during the call: \
                     whether it had an effect is not known"
                ))
                .with_hint("it is connected to again by itself: find out before you call again")
                .with_retryable(true)
                .with_source(std::io::Error::other(error.to_string()))
            }
        }
    }
}

/// A call that the server has not answered yet. Dropped before that, it is withdrawn.
struct Pending<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    link: &'a Link,
}

impl Pending<'_> {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.handle else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.handle = None;
        answer.map_err(|_| ServiceError::TransportClosed)?
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.link.given_up.notify_one();
        // Outside a runtime there is no connection any more.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let reason = "the caller does not wait for the answer any more".to_owned();
            runtime.spawn(handle.cancel(Some(reason)));
        }
    }
}
