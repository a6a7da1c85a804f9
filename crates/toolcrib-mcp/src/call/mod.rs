//! `tools/call`: from a request to its answer, with whatever has to be asked of the client between.

pub(crate) mod client;
pub(crate) mod progress;
pub(crate) mod questions;
pub(crate) mod result;
pub(crate) mod revocation;
pub(crate) mod tasks;
pub(crate) mod trace;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult,
    ErrorData, InputRequiredResult, InputResponses, RequestId,
};
use rmcp::service::RequestContext;
use toolcrib_core::Turn;
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::{
    Answer, Outcome as Settled, RedeemError, Resolution, StoreError, Suspension, SuspensionId,
    Waiting,
};
use toolcrib_tool::{ErrorKind, ToolCall, ToolError, ToolResult};
use tracing::{Instrument as _, Span};

use crate::McpServer;
use crate::call::client::Client;
use crate::call::progress::Narration;
use crate::call::questions::{Questions, Reply, can_ask_for_consent};
use crate::call::result::call_tool_result;
use crate::call::revocation::RevokedOnDrop;
use crate::call::tasks::{Fate, NewTask, Work, drive};
use crate::session::connection::Connection;
use crate::transport::exact_numbers::arguments_text;

/// More rounds of questions are not asked of one client for one call.
pub(crate) const ROUNDS_MAX: usize = 16;

/// How long a call that is made again waits for the decision on the first one: less than the 60 s
/// after which common clients give a request up.
const REPEATED_CALL_WAITS: Duration = Duration::from_secs(45);

/// Answers one `tools/call`. `connection` is the client's, where it has one.
pub(crate) async fn answer(
    server: &McpServer,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    connection: Option<&Connection>,
) -> Result<CallToolResponse, ErrorData> {
    let client = Client::of(context);
    let tasks = server.tasks().options();
    let level = connection.and_then(Connection::level);
    let mut narration = Narration::of(context, level, tasks.are_offered_to(&client.capabilities));
    let turn = match &narration {
        Some(narration) => server.turn_heard_by(narration.listeners()),
        None => server.turn(),
    };
    let fate = match turn.describe(&request.name) {
        Some(definition) => tasks.fate(definition, &client.capabilities)?,
        None => Fate::Answer,
    };
    let call = Arc::new(Call { server: server.clone(), turn, client: Arc::new(client) });
    let span = trace::span(trace::named(context, connection.is_some()));
    let span = span.unwrap_or_else(Span::current);
    let asked = Request { call: &call, fate };
    // Boxed: what a call may come to need is much more than what most need.
    let work = Box::pin(asked.answer(&context.id, request).instrument(span));
    let work = async {
        match &mut narration {
            Some(narration) => narration.beside(work).await,
            None => work.await,
        }
    };
    let outcome = tokio::select! {
        biased;
        // The client withdrew the request: the call goes with it, and nobody reads an answer.
        () = context.ct.cancelled() => {
            return Err(ErrorData::internal_error("the request was cancelled", None));
        }
        outcome = work => outcome?,
    };
    match outcome {
        Outcome::Answered(answer) => Ok(answer),
        Outcome::Later(task, work) => {
            let (task, seed) = task.begin();
            let closing = server.closing().clone();
            tokio::spawn(drive(call, task, work, narration, closing));
            Ok(CreateTaskResult::new(seed).into())
        }
    }
}

/// Answers a call that was started without the protocol library and waits for somebody.
pub(crate) async fn settle(
    server: McpServer,
    turn: Turn,
    client: Arc<Client>,
    suspension: Box<Suspension>,
) -> Result<CallToolResponse, ErrorData> {
    let call = Arc::new(Call { server, turn, client });
    let request = Request { call: &call, fate: Fate::Answer };
    match request.settle(Step::Answer(Answer::Suspended(suspension)), None, false).await? {
        Outcome::Answered(answer) => Ok(answer),
        Outcome::Later(..) => Err(ErrorData::internal_error("this client takes no tasks", None)),
    }
}

/// What a request comes to.
enum Outcome {
    Answered(CallToolResponse),
    /// The call goes on as a task.
    Later(NewTask, Work),
}

/// What a call comes to while its request waits.
enum Step {
    Answer(Answer),
    Later(NewTask, Work),
}

/// A call, whoever waits for it.
pub(crate) struct Call {
    server: McpServer,
    turn: Turn,
    client: Arc<Client>,
}

/// A call whose request waits.
struct Request<'a> {
    call: &'a Arc<Call>,
    fate: Fate,
}

impl Request<'_> {
    async fn answer(
        &self,
        id: &RequestId,
        request: CallToolRequestParams,
    ) -> Result<Outcome, ErrorData> {
        let step = match &request.request_state {
            Some(state) => {
                let waiting = self.call.waiting(&request.name, state).await?;
                Step::Answer(Answer::Suspended(Box::new(waiting)))
            }
            None => self.wait(self.start(id, &request)?).await?,
        };
        self.settle(step, request.input_responses, request.request_state.is_some()).await
    }

    /// Has the client asked whatever the call waits for, until there is an answer. `given` is what the client
    /// answers, once: a later question wants an answer of its own. `asked` says whether it was asked.
    async fn settle(
        &self,
        mut step: Step,
        mut given: Option<InputResponses>,
        mut asked: bool,
    ) -> Result<Outcome, ErrorData> {
        let client = &self.call.client;
        for _ in 0..ROUNDS_MAX {
            let suspension = match step {
                Step::Answer(Answer::Done(result)) => {
                    return Ok(Outcome::Answered(self.call.complete(&result)?.into()));
                }
                Step::Answer(Answer::Suspended(suspension)) => suspension,
                Step::Later(task, work) => return Ok(Outcome::Later(task, work)),
            };
            if self.call.is_for_others(&suspension) {
                if self.fate != Fate::Answer {
                    // The client can ask after a task for as long as the decision takes.
                    step = self.wait(self.call.decided_elsewhere(&suspension)).await?;
                    continue;
                }
                if let Some(answer) = self.call.of_earlier_call(&suspension).await? {
                    step = Step::Answer(answer);
                    continue;
                }
                let result = self.call.complete(&requires_approval(&suspension))?;
                return Ok(Outcome::Answered(result.into()));
            }
            let questions = match self.call.questions(&suspension) {
                Some(Ok(questions)) => questions,
                Some(Err(missing)) => {
                    step = Step::Answer(self.call.cannot_ask(&suspension, missing).await?);
                    continue;
                }
                // Nobody who could be asked here ends the wait, and nobody would read the answer.
                None => {
                    step = Step::Answer(self.call.resolved(&suspension, Resolution::Cancel).await?);
                    continue;
                }
            };
            let responses = match given.take() {
                Some(given) if asked || questions.may_be_answered_ahead() => given,
                _ if client.has_input_required() => InputResponses::new(),
                _ => {
                    let Some(responses) = self.call.ask(&questions).await else {
                        let message = "the client did not answer".to_owned();
                        let deny = Decision::Deny { message }.into();
                        step = Step::Answer(self.call.resolved(&suspension, deny).await?);
                        continue;
                    };
                    responses
                }
            };
            asked = true;
            let resolution = match questions.reply(&responses) {
                Reply::Complete(resolution) => resolution,
                Reply::Missing if client.has_input_required() => {
                    let state = suspension.id().as_str().to_owned();
                    let requests = questions.requests()?;
                    let asked = InputRequiredResult::new(Some(requests), Some(state));
                    return Ok(Outcome::Answered(asked.into()));
                }
                Reply::Missing => {
                    let message = "the client's answer is not what was asked for".to_owned();
                    Decision::Deny { message }.into()
                }
            };
            step = self.wait(self.call.resolved(&suspension, resolution)).await?;
        }
        Err(ErrorData::internal_error("the tool asks one question after the other", None))
    }

    fn start(&self, id: &RequestId, request: &CallToolRequestParams) -> Result<Work, ErrorData> {
        let arguments = match &request.arguments {
            Some(arguments) => arguments_text(arguments).map_err(|error| {
                ErrorData::internal_error(format!("the arguments are not JSON: {error}"), None)
            })?,
            None => String::new(),
        };
        let made = ToolCall::new(id.to_string(), &*request.name, arguments);
        let call = Arc::clone(self.call);
        Ok(Box::pin(async move {
            let work = pin!(call.turn.start(made));
            let _revoked = RevokedOnDrop::new(&call.server, &call.turn);
            Ok(work.await)
        }))
    }

    /// Waits as long as the client has to; then the call goes on as a task, if there may be one more.
    async fn wait(&self, mut work: Work) -> Result<Step, ErrorData> {
        let Some(patience) = self.fate.patience() else { return Ok(Step::Answer(work.await?)) };
        let answer = tokio::select! {
            biased;
            // First: a call whose time has come is a task, whether or not it is done by now.
            () = tokio::time::sleep(patience) => None,
            answer = &mut work => Some(answer?),
        };
        let work = match answer {
            // A result for which there has to be a task, too.
            Some(Answer::Done(result)) if self.fate == Fate::Task => {
                Box::pin(async move { Ok(Answer::Done(result)) })
            }
            Some(answer) => return Ok(Step::Answer(answer)),
            None => work,
        };
        match self.call.server.tasks().open().await {
            Some(task) => Ok(Step::Later(task, work)),
            None => Ok(Step::Answer(work.await?)),
        }
    }
}

impl Call {
    /// Whether a suspended call waits for an approval that this client cannot give: it has not the
    /// right, or cannot be asked. Others can find the call where it waits.
    pub(crate) fn is_for_others(&self, suspension: &Suspension) -> bool {
        matches!(suspension.waiting(), Waiting::Approval { .. })
            && !(self.turn.may_approve() && can_ask_for_consent(&self.client.capabilities))
    }

    /// The answer to a call that waits for somebody else's approval, once there is one.
    pub(crate) fn decided_elsewhere(self: &Arc<Self>, suspension: &Suspension) -> Work {
        let (call, id) = (Arc::clone(self), suspension.id().clone());
        let limit = suspension.expires_at().since(suspension.created_at());
        let expired = self.resolved(suspension, Resolution::Expire);
        Box::pin(async move {
            match call.outcome_of(&id, limit).await? {
                Some(answer) => Ok(answer),
                None => expired.await,
            }
        })
    }

    /// What became of the same call, made before: the client asks after it by making it again. Waits
    /// for the decision for a while. `None` where there is no such call.
    async fn of_earlier_call(&self, suspension: &Suspension) -> Result<Option<Answer>, ErrorData> {
        let earlier = self.turn.same_call(suspension).await.map_err(|error| unreadable(&error))?;
        let Some(earlier) = earlier else { return Ok(None) };
        // One question is enough for both, unless the turn has joined the earlier call at once.
        if earlier.id() != suspension.id()
            && let Err(error) = self.turn.resolve(suspension.id(), Resolution::Cancel).await
        {
            tracing::debug!(%error, "a repeated call could not be taken back");
        }
        let answer = self.outcome_of(earlier.id(), REPEATED_CALL_WAITS).await?;
        Ok(Some(answer.unwrap_or_else(|| Answer::Suspended(Box::new(earlier)))))
    }

    async fn outcome_of(
        &self,
        id: &SuspensionId,
        limit: Duration,
    ) -> Result<Option<Answer>, ErrorData> {
        let settled = self.turn.wait_for_outcome(id, limit).await;
        let Some(settled) = settled.map_err(|error| unreadable(&error))? else { return Ok(None) };
        self.turn.take_outcome(id).await.map_err(|error| unreadable(&error))?;
        Ok(match (settled.result(), settled.outcome()) {
            (Some(result), _) => Some(Answer::Done(result)),
            (None, Settled::Waits(next)) => Some(Answer::Suspended(next.clone())),
            (None, _) => None,
        })
    }

    /// What a suspended call asks of the client; `None` where a client cannot help.
    pub(crate) fn questions(
        &self,
        suspension: &Suspension,
    ) -> Option<Result<Questions, ClientCapabilities>> {
        let definition = self.turn.describe(suspension.tool()).map(AsRef::as_ref);
        Questions::of(suspension, definition, &self.client.capabilities)
    }

    /// Sends questions to the client and gives its answers; `None` if it did not answer.
    async fn ask(&self, questions: &Questions) -> Option<InputResponses> {
        match questions.ask(self.client.peer.as_ref()?).await {
            Ok(responses) => Some(responses),
            Err(error) => {
                tracing::debug!(%error, "a client did not answer a question");
                None
            }
        }
    }

    /// The call that a client goes on with.
    async fn waiting(&self, name: &str, state: &str) -> Result<Suspension, ErrorData> {
        let id = state.parse::<SuspensionId>().map_err(|_| no_such_call())?;
        let found = self.turn.suspended(&id).await.map_err(|error| unreadable(&error))?;
        found.filter(|found| found.called_tool() == name).ok_or_else(no_such_call)
    }

    /// The suspended call, if it has not been resolved.
    pub(crate) async fn still_waits(
        &self,
        suspension: Option<Box<Suspension>>,
    ) -> Option<Box<Suspension>> {
        let suspension = suspension?;
        let found = self.turn.suspended(suspension.id()).await;
        found.ok().flatten().map(Box::new)
    }

    /// What the call does once it is resolved.
    pub(crate) fn resolved(
        self: &Arc<Self>,
        suspension: &Suspension,
        resolution: Resolution,
    ) -> Work {
        let call = Arc::clone(self);
        let id = suspension.id().clone();
        Box::pin(async move {
            call.turn.resolve(&id, resolution).await.map_err(|error| match error {
                RedeemError::Store(error) => unreadable(&error),
                error => ErrorData::invalid_params(error.to_string(), None),
            })
        })
    }

    /// Ends a call whose question this client cannot be asked.
    pub(crate) async fn cannot_ask(
        self: &Arc<Self>,
        suspension: &Suspension,
        missing: ClientCapabilities,
    ) -> Result<Answer, ErrorData> {
        if !matches!(suspension.waiting(), Waiting::Client) {
            self.resolved(suspension, Resolution::Cancel).await?;
            return Err(ErrorData::missing_required_client_capability(missing));
        }
        let what = "it runs at the client, which cannot be asked here".to_owned();
        self.resolved(suspension, Decision::Deny { message: what }.into()).await
    }

    /// The answer, as this client takes it.
    pub(crate) fn complete(&self, result: &ToolResult) -> Result<CallToolResult, ErrorData> {
        if let Some(error) = unknown_name(&self.turn, result) {
            return Err(error);
        }
        self.server.note_links(result);
        let definition = self.turn.describe(result.tool()).map(AsRef::as_ref);
        call_tool_result(result, definition, self.client.takes).map_err(|error| {
            ErrorData::internal_error(format!("the result cannot be sent: {error}"), None)
        })
    }
}

/// Tells a client that its call waits for somebody else's approval.
fn requires_approval(suspension: &Suspension) -> ToolResult {
    let reason = match suspension.waiting() {
        Waiting::Approval { reason, .. } => reason.as_str(),
        _ => "",
    };
    let error = ToolError::new(
        ErrorKind::RequiresApproval,
        format!("the call waits for approval ({}): {reason}", suspension.id()),
    )
    .with_hint("Nothing has run. Somebody with the right to approve calls has to decide.")
    .with_hint(
        "To get the answer, make the same call again with the same arguments: it waits for the \
         decision and runs nothing twice.",
    );
    let (id, tool) = (suspension.call_id().into(), suspension.called_tool());
    ToolResult::failure(id, tool, error, Duration::ZERO)
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
