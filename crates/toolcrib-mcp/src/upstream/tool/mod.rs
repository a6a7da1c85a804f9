//! The body of an imported tool: it sends a call to the server and returns the outcome.

pub(crate) mod definition;
pub(crate) mod linked_resources;
pub(crate) mod listing;
mod pinned;
pub(crate) mod progress;
pub(crate) mod publish;
pub(crate) mod questions;
pub(crate) mod result;
pub(crate) mod untrusted_text;
pub(crate) mod waiting_calls;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, InputRequest as McpInputRequest,
    InputRequiredResult, JsonObject, ServerResult,
};
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Value, json};
use toolcrib_core::events::EventBus;
use toolcrib_net::TransportError;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, ErrorKind, InputPart, InputRequest, Plan, Tool, ToolError,
    ToolOutcome, UpstreamPlan,
};

use crate::upstream::connection::link::Link;
use crate::upstream::connection::pending::PendingRequest;
use crate::upstream::tool::result::outcome;
use crate::upstream::tool::untrusted_text::TextSource;
use crate::upstream::tool::waiting_calls::{Next, OpenCall};

/// How long a call may take to say that nobody waits for its answer any more.
const WIND_DOWN: Duration = Duration::from_millis(100);

/// A tool of an upstream.
pub(crate) struct UpstreamTool {
    pub(crate) link: Arc<Link>,
    /// Its name on the wire.
    pub(crate) original: String,
    /// Whether a call that may have run can safely be repeated: the tool is read-only or
    /// idempotent.
    pub(crate) repeatable: bool,
    /// Tells how calls end whose questions wait for an answer.
    pub(crate) bus: Option<EventBus>,
}

impl Tool for UpstreamTool {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let call = match cx.remembered().zip(cx.answer()) {
                None => self.send(arguments, None, cx).await?,
                Some((remembered, answer)) => match remembered["waiting"].as_str() {
                    Some(key) => self
                        .link
                        .waiting
                        .resume(key, cx, answer)
                        .ok_or_else(|| self.no_longer_waits())?,
                    None => self.send(arguments, Some((remembered, answer)), cx).await?,
                },
            };
            self.finish(call, cx).await
        })
    }

    fn validates(&self) -> bool {
        false
    }

    fn wind_down(&self) -> Duration {
        WIND_DOWN
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
    /// Sends a call; again with the answers to what the server asked before, if it has asked.
    async fn send(
        &self,
        arguments: Arguments,
        answered: Option<(&Value, &Value)>,
        cx: &CallContext,
    ) -> Result<OpenCall, ToolError> {
        let live = self.link.live()?;
        let arguments = protected(&arguments)?;
        let mut params =
            CallToolRequestParams::new(self.original.clone()).with_arguments(arguments);
        if let Some((remembered, answers)) = answered {
            params.request_state = remembered["state"].as_str().map(str::to_owned);
            let answers = answers.as_object().into_iter().flatten();
            let accepted = |(key, content): (&String, &Value)| {
                (key.clone(), json!({"action": "accept", "content": content}))
            };
            params.input_responses = Some(answers.map(accepted).collect());
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        // Before it is sent: the server may ask at once.
        let questions = live.questions.begin(cx);
        let pending = PendingRequest::ask(&self.link, &live, request)
            .await
            .map_err(|error| self.safe_to_repeat(&error))?;
        questions.sent(pending.progress_token());
        Ok(OpenCall { live, pending, questions })
    }

    /// Waits for the answer, or passes on what the server asks before it continues.
    async fn finish(&self, mut call: OpenCall, cx: &CallContext) -> Result<ToolOutcome, ToolError> {
        let tracking = call.live.progress.track(call.pending.progress_token(), cx);
        let (pending, questions) = (&mut call.pending, &mut call.questions);
        let next = tracking
            .beside(async {
                tokio::select! {
                    biased;
                    answer = pending.answer() => Some(Next::Answer(answer)),
                    question = questions.next() => Some(Next::Question(question)),
                    () = cx.cancelled() => None,
                }
            })
            .await;
        drop(tracking);
        let Some(next) = next else { return Err(self.interrupted()) };
        let answer = match next {
            Next::Answer(answer) => answer,
            Next::Question(question) => {
                let bus = self.bus.as_ref();
                let kept = self.link.waiting.keep(&self.link, cx, bus, call, question);
                let request = kept.ok_or_else(|| {
                    ToolError::execution(
                        "the system provides no random bits for the key of a waiting call",
                    )
                })?;
                return Ok(ToolOutcome::needs_input(request));
            }
        };
        let upstream = &self.link.upstream;
        let source = TextSource { upstream, mask: &|text| cx.masked(text) };
        match answer.map_err(|error| self.failed(&error, &source))? {
            ServerResult::CallToolResult(answer) => outcome(&source, answer),
            ServerResult::InputRequiredResult(asked) => {
                forms(&source, asked).map(ToolOutcome::needs_input)
            }
            _ => Err(ToolError::execution(format!(
                "the MCP server `{upstream}` answered with something that is not a call result"
            ))),
        }
    }

    /// The error for a call whose time is over, or that was withdrawn. The host shows the hint with its own message.
    fn interrupted(&self) -> ToolError {
        let upstream = &self.link.upstream;
        let error = ToolError::new(ErrorKind::Cancelled, "nobody waits for the answer");
        if self.repeatable {
            return error;
        }
        error.with_hint(format!(
            "The MCP server `{upstream}` was told to stop, but may go on and complete the call."
        ))
    }

    /// The error for an answer that came too late.
    fn no_longer_waits(&self) -> ToolError {
        let message = format!(
            "the MCP server `{}` no longer waits for this answer: its question expired, or the connection \
             was lost",
            self.link.upstream
        );
        if self.repeatable {
            return ToolError::unavailable(message).with_hint("make the call again");
        }
        ToolError::outcome_unknown(message)
    }

    fn failed(&self, error: &ServiceError, source: &TextSource<'_>) -> ToolError {
        let upstream = &self.link.upstream;
        match error {
            ServiceError::McpError(error) => ToolError::execution(format!(
                "the MCP server `{upstream}` refused the call (code {})\n{}",
                error.code.0,
                source.marked(&error.message)
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

/// What a server asks before it continues, as one request with a part for each question.
fn forms(source: &TextSource<'_>, asked: InputRequiredResult) -> Result<InputRequest, ToolError> {
    let upstream = source.upstream;
    let mut parts = Vec::new();
    for (key, request) in asked.input_requests.unwrap_or_default() {
        let form = match &request {
            McpInputRequest::Elicitation(request) => questions::form(&request.params),
            _ => None,
        };
        let Some((message, schema)) = form else {
            return Err(ToolError::execution(format!(
                "the MCP server `{upstream}` asks for something before it continues that is not a form"
            )));
        };
        let message = format!("The MCP server `{upstream}` asks: {}", source.visible(&message));
        parts.push(InputPart::form(key, message, schema));
    }
    Ok(InputRequest::of(parts).remember(json!({"state": asked.request_state})))
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
