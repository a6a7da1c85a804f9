//! `tools/call`: from a request to its answer, with whatever has to be asked of the client between.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ErrorData, InputRequiredResult,
    InputResponses,
};
use rmcp::service::RequestContext;
use toolcrib_core::Turn;
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::{
    Answer, RedeemError, Resolution, StoreError, Suspension, SuspensionId, Waiting,
};
use toolcrib_tool::{BoxFuture, ErrorKind, ToolCall, ToolResult};

use crate::McpServer;
use crate::asking::{Questions, Reply};
use crate::connection::Connection;
use crate::narration::Narration;
use crate::plain::Begun;
use crate::result::call_tool_result;
use crate::revision;

/// More rounds of questions are not asked of one client in one request.
const ROUNDS_MAX: usize = 16;

/// Answers one `tools/call`, which may have begun before. `connection` is the client's, where it has one.
pub(crate) async fn answer(
    server: &McpServer,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    connection: Option<&Connection>,
) -> Result<CallToolResponse, ErrorData> {
    let begun = Begun::of_request(context, connection);
    let mut narration = Narration::of(context, connection.and_then(Connection::level));
    let turn = match (&begun, &narration) {
        (Some(begun), _) => begun.turn.clone(),
        (None, Some(narration)) => server.turn_heard_by(narration.listeners()),
        (None, None) => server.turn(),
    };
    let call = Call { turn, context };
    // Boxed: what a call may come to need is much more than what most need.
    let work = Box::pin(call.answer(request, begun));
    let work = async {
        match &mut narration {
            Some(narration) => narration.beside(work).await,
            None => work.await,
        }
    };
    tokio::select! {
        biased;
        // The client withdrew the request: the call goes with it, and nobody reads an answer.
        () = context.ct.cancelled() => {
            Err(ErrorData::internal_error("the request was cancelled", None))
        }
        answer = work => answer,
    }
}

struct Call<'a> {
    turn: Turn,
    context: &'a RequestContext<RoleServer>,
}

impl Call<'_> {
    async fn answer(
        &self,
        request: CallToolRequestParams,
        begun: Option<Begun>,
    ) -> Result<CallToolResponse, ErrorData> {
        // What the client answers, once: a later question wants an answer of its own.
        let mut given = request.input_responses.clone();
        let mut asked = request.request_state.is_some();
        let mut answer = match (begun, &request.request_state) {
            (Some(mut begun), _) => begun.answer().await,
            (None, Some(state)) => {
                Answer::Suspended(Box::new(self.waiting(&request, state).await?))
            }
            (None, None) => self.start(&request).await?,
        };
        for _ in 0..ROUNDS_MAX {
            let suspension = match answer {
                Answer::Done(result) => return self.complete(&result),
                Answer::Suspended(suspension) => suspension,
            };
            let definition = self.turn.describe(suspension.tool()).map(AsRef::as_ref);
            let client = self.context.client_capabilities().unwrap_or_default();
            let questions = match Questions::of(&suspension, definition, &client) {
                Some(Ok(questions)) => questions,
                Some(Err(missing)) => {
                    answer = self.cannot_ask(&suspension, missing).await?;
                    continue;
                }
                // Nobody who could be asked here ends the wait, and nobody would read the answer.
                None => {
                    answer = self.resolve(suspension.id(), Resolution::Cancel).await?;
                    continue;
                }
            };
            let responses = match given.take() {
                Some(given) if asked || questions.may_be_answered_ahead() => given,
                _ if revision::has_input_required(self.context) => InputResponses::new(),
                _ => match questions.ask(&self.context.peer).await {
                    Ok(responses) => responses,
                    Err(error) => {
                        tracing::debug!(%error, "a client did not answer a question");
                        let message = "the client did not answer".to_owned();
                        let deny = Decision::Deny { message }.into();
                        answer = self.resolve(suspension.id(), deny).await?;
                        continue;
                    }
                },
            };
            asked = true;
            answer = match questions.reply(&responses) {
                Reply::Complete(resolution) => self.resolve(suspension.id(), resolution).await?,
                Reply::Missing if revision::has_input_required(self.context) => {
                    let state = suspension.id().as_str().to_owned();
                    let requests = questions.requests()?;
                    return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
                }
                Reply::Missing => {
                    let message = "the client's answer is not what was asked for".to_owned();
                    self.resolve(suspension.id(), Decision::Deny { message }.into()).await?
                }
            };
        }
        Err(ErrorData::internal_error("the tool asks one question after the other", None))
    }

    async fn start(&self, request: &CallToolRequestParams) -> Result<Answer, ErrorData> {
        let arguments = match &request.arguments {
            Some(arguments) => serde_json::to_string(arguments).map_err(|error| {
                ErrorData::internal_error(format!("the arguments are not JSON: {error}"), None)
            })?,
            None => String::new(),
        };
        let call = ToolCall::new(self.context.id.to_string(), &*request.name, arguments);
        Ok(self.turn.start(call).await)
    }

    /// The call that a client goes on with.
    async fn waiting(
        &self,
        request: &CallToolRequestParams,
        state: &str,
    ) -> Result<Suspension, ErrorData> {
        let id = state.parse::<SuspensionId>().map_err(|_| no_such_call())?;
        let found = self.turn.suspended(&id).await.map_err(|error| unreadable(&error))?;
        found.filter(|found| found.tool() == request.name).ok_or_else(no_such_call)
    }

    /// Boxed: it is a call of its own.
    fn resolve<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolution: Resolution,
    ) -> BoxFuture<'a, Result<Answer, ErrorData>> {
        Box::pin(async move {
            self.turn.resolve(id, resolution).await.map_err(|error| match error {
                RedeemError::Store(error) => unreadable(&error),
                error => ErrorData::invalid_params(error.to_string(), None),
            })
        })
    }

    /// Ends a call whose question this client cannot be asked.
    async fn cannot_ask(
        &self,
        suspension: &Suspension,
        missing: ClientCapabilities,
    ) -> Result<Answer, ErrorData> {
        let what = match suspension.waiting() {
            Waiting::Approval { reason, .. } => {
                format!("{reason}, and nobody here can approve it")
            }
            Waiting::Client => "it runs at the client, which cannot be asked here".to_owned(),
            _ => {
                self.resolve(suspension.id(), Resolution::Cancel).await?;
                return Err(ErrorData::missing_required_client_capability(missing));
            }
        };
        self.resolve(suspension.id(), Decision::Deny { message: what }.into()).await
    }

    fn complete(&self, result: &ToolResult) -> Result<CallToolResponse, ErrorData> {
        if let Some(error) = unknown_name(&self.turn, result) {
            return Err(error);
        }
        let definition = self.turn.describe(result.tool()).map(AsRef::as_ref);
        let answer = call_tool_result(result, definition, revision::takes(self.context));
        answer.map(Into::into).map_err(|error| {
            ErrorData::internal_error(format!("the result cannot be sent: {error}"), None)
        })
    }
}

/// The error, if the call failed because no tool has the name. A tool may itself fail with the same
/// kind, which is an ordinary result.
pub(crate) fn unknown_name(turn: &Turn, result: &ToolResult) -> Option<ErrorData> {
    let unknown =
        result.error_kind() == Some(ErrorKind::NotFound) && turn.describe(result.tool()).is_none();
    unknown.then(|| ErrorData::invalid_params(result.text().into_owned(), None))
}

fn unreadable(error: &StoreError) -> ErrorData {
    ErrorData::internal_error(format!("the waiting call cannot be read: {error}"), None)
}

fn no_such_call() -> ErrorData {
    ErrorData::invalid_params(
        "no call of this tool waits under this `requestState`: it has been answered, or its time \
         is over, or the state is not what this server gave out; make the call again",
        None,
    )
}
