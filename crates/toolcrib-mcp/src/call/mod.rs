//! `tools/call`: from the request to its answer, including questions to the client.

pub(crate) mod client;
pub(crate) mod progress;
pub(crate) mod questions;
pub(crate) mod result;
pub(crate) mod revocation;
pub(crate) mod tasks;
pub(crate) mod trace;

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use crate::call::progress::ProgressReporter;
use crate::call::questions::{Questions, Reply, can_ask_for_consent};
use crate::call::result::call_tool_result;
use crate::call::revocation::RevokedOnDrop;
use crate::call::tasks::{AnswerMode, CallFuture, NewTask, TaskWork, drive};
use crate::session::connection::Connection;
use crate::transport::exact_numbers::arguments_text;

/// The maximum number of rounds of questions for one call.
pub(crate) const ROUNDS_MAX: usize = 16;

/// How long a repeated call waits for the decision on the first one: less than the 60 s after which
/// common clients give up.
const REPEATED_CALL_WAITS: Duration = Duration::from_secs(45);

/// Answers one `tools/call`. `connection` is the client's connection, if it has one.
pub(crate) async fn answer(
    server: &McpServer,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    connection: Option<&Connection>,
) -> Result<CallToolResponse, ErrorData> {
    let client = Client::of(context);
    let tasks = server.tasks().options();
    let level = connection.and_then(Connection::level);
    let mut reporter =
        ProgressReporter::of(context, level, tasks.are_offered_to(&client.capabilities));
    let turn = match &reporter {
        Some(reporter) => server.turn_heard_by(reporter.listeners()),
        None => server.turn(),
    };
    let answer_mode = match turn.describe(&request.name) {
        Some(definition) => tasks.answer_mode(definition, &client.capabilities)?,
        None => AnswerMode::Answer,
    };
    let call = Arc::new(Call::new(server.clone(), turn, Arc::new(client)));
    let span = trace::span(trace::named(context, connection.is_some()));
    let span = span.unwrap_or_else(Span::current);
    let asked = InlineCall { call: &call, answer_mode };
    // Boxed: the future of a call with questions is much larger than most calls need.
    let work = Box::pin(asked.answer(&context.id, request).instrument(span));
    let work = async {
        match &mut reporter {
            Some(reporter) => reporter.beside(work).await,
            None => work.await,
        }
    };
    let outcome = tokio::select! {
        biased;
        // The client cancelled the request: the call is dropped and nobody reads an answer.
        () = context.ct.cancelled() => {
            Box::pin(call.withdraw()).await;
            return Err(ErrorData::internal_error("the request was cancelled", None));
        }
        outcome = work => outcome?,
    };
    match outcome {
        RequestOutcome::Response(answer) => Ok(answer),
        RequestOutcome::BecameTask(task, work) => {
            let (task, seed) = task.begin();
            if let TaskWork::Decision(..) = work {
                // Before the client can cancel the task.
                task.await_decision();
            }
            let closing = server.closing().clone();
            tokio::spawn(drive(call, task, work, reporter, closing));
            Ok(CreateTaskResult::new(seed).into())
        }
    }
}

/// Answers a suspended call that was started on the fast path.
pub(crate) async fn answer_suspended(
    server: McpServer,
    turn: Turn,
    client: Arc<Client>,
    suspension: Box<Suspension>,
) -> Result<CallToolResponse, ErrorData> {
    let call = Arc::new(Call::new(server, turn, client));
    let request = InlineCall { call: &call, answer_mode: AnswerMode::Answer };
    match request
        .answer_suspended(WaitOutcome::Answer(Answer::Suspended(suspension)), None, false)
        .await?
    {
        RequestOutcome::Response(answer) => Ok(answer),
        RequestOutcome::BecameTask(..) => {
            Err(ErrorData::internal_error("this client takes no tasks", None))
        }
    }
}

/// The outcome of a request.
enum RequestOutcome {
    Response(CallToolResponse),
    /// The call continues as a task.
    BecameTask(NewTask, TaskWork),
}

/// The outcome of waiting for a call within its request.
enum WaitOutcome {
    Answer(Answer),
    BecameTask(NewTask, TaskWork),
}

/// A call, independent of how its answer is delivered.
pub(crate) struct Call {
    server: McpServer,
    turn: Turn,
    client: Arc<Client>,
    /// What the request waits for: a question to the client, or somebody else's decision.
    waits_for: Mutex<Option<SuspensionId>>,
}

/// A call whose request waits for the answer.
struct InlineCall<'a> {
    call: &'a Arc<Call>,
    answer_mode: AnswerMode,
}

impl InlineCall<'_> {
    async fn answer(
        &self,
        id: &RequestId,
        request: CallToolRequestParams,
    ) -> Result<RequestOutcome, ErrorData> {
        let step = match &request.request_state {
            Some(state) => {
                let stored_suspension = self.call.stored_suspension(&request.name, state).await?;
                WaitOutcome::Answer(Answer::Suspended(Box::new(stored_suspension)))
            }
            None => self.wait(self.start(id, &request)?).await?,
        };
        self.answer_suspended(step, request.input_responses, request.request_state.is_some()).await
    }

    /// Asks the client for whatever the call waits for, until there is an answer. `given` are
    /// answers the client has sent along; they are used once. `asked` says whether the client has
    /// been asked.
    async fn answer_suspended(
        &self,
        mut step: WaitOutcome,
        mut given: Option<InputResponses>,
        mut asked: bool,
    ) -> Result<RequestOutcome, ErrorData> {
        let client = &self.call.client;
        for _ in 0..ROUNDS_MAX {
            let suspension = match step {
                WaitOutcome::Answer(Answer::Done(result)) => {
                    return Ok(RequestOutcome::Response(self.call.complete(&result)?.into()));
                }
                WaitOutcome::Answer(Answer::Suspended(suspension)) => suspension,
                WaitOutcome::BecameTask(task, work) => {
                    return Ok(RequestOutcome::BecameTask(task, work));
                }
            };
            if self.call.is_for_others(&suspension) {
                if self.answer_mode != AnswerMode::Answer {
                    // The client can poll a task for as long as the decision takes.
                    step = Box::pin(self.wait_for_decision(suspension)).await?;
                    continue;
                }
                if let Some(answer) = Box::pin(self.call.earlier_call_answer(&suspension)).await? {
                    step = WaitOutcome::Answer(answer);
                    continue;
                }
                let result = self.call.complete(&requires_approval(&suspension))?;
                return Ok(RequestOutcome::Response(result.into()));
            }
            let questions = match self.call.questions(&suspension) {
                Some(Ok(questions)) => questions,
                Some(Err(missing)) => {
                    step = WaitOutcome::Answer(self.call.cannot_ask(&suspension, missing).await?);
                    continue;
                }
                // Nobody here can end the wait, and nobody would read the answer.
                None => {
                    step = WaitOutcome::Answer(
                        self.call.resume(&suspension, Resolution::Cancel).await?,
                    );
                    continue;
                }
            };
            let responses = match given.take() {
                Some(given) if asked || questions.accepts_unasked_answers() => given,
                _ if client.has_input_required() => InputResponses::new(),
                _ => {
                    let asked = Box::pin(self.call.ask(&questions));
                    let responses = self.call.while_waiting_for(suspension.id(), asked).await;
                    let Some(responses) = responses else {
                        let message = "the client did not answer".to_owned();
                        let deny = Decision::Deny { message }.into();
                        step = WaitOutcome::Answer(self.call.resume(&suspension, deny).await?);
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
                    return Ok(RequestOutcome::Response(asked.into()));
                }
                Reply::Missing => {
                    let message = "the client's answer is not what was asked for".to_owned();
                    Decision::Deny { message }.into()
                }
            };
            step = self.wait(self.call.resume(&suspension, resolution)).await?;
        }
        Err(ErrorData::internal_error("the tool asked too many questions in a row", None))
    }

    fn start(
        &self,
        id: &RequestId,
        request: &CallToolRequestParams,
    ) -> Result<CallFuture, ErrorData> {
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

    /// Waits for somebody else's decision as long as the request may wait; then the call becomes a
    /// task that waits.
    async fn wait_for_decision(
        &self,
        suspension: Box<Suspension>,
    ) -> Result<WaitOutcome, ErrorData> {
        let decision = self.wait(self.call.decided_elsewhere(&suspension));
        Ok(match self.call.while_waiting_for(suspension.id(), decision).await? {
            WaitOutcome::BecameTask(task, TaskWork::Call(answer)) => {
                WaitOutcome::BecameTask(task, TaskWork::Decision(suspension, answer))
            }
            other => other,
        })
    }

    /// Waits as long as the request may wait; then the call becomes a task, if the client may have
    /// one more.
    async fn wait(&self, mut work: CallFuture) -> Result<WaitOutcome, ErrorData> {
        let Some(wait_limit) = self.answer_mode.wait_limit() else {
            return Ok(WaitOutcome::Answer(work.await?));
        };
        let answer = tokio::select! {
            biased;
            // Checked first: a call that reaches the limit becomes a task, even if it has just
            // finished.
            () = tokio::time::sleep(wait_limit) => None,
            answer = &mut work => Some(answer?),
        };
        let work = match answer {
            // The tool's calls always become tasks, so this result needs one, too.
            Some(Answer::Done(result)) if self.answer_mode == AnswerMode::Task => {
                Box::pin(async move { Ok(Answer::Done(result)) })
            }
            Some(answer) => return Ok(WaitOutcome::Answer(answer)),
            None => work,
        };
        match self.call.server.tasks().open().await {
            Some(task) => Ok(WaitOutcome::BecameTask(task, TaskWork::Call(work))),
            None => Ok(WaitOutcome::Answer(work.await?)),
        }
    }
}

impl Call {
    fn new(server: McpServer, turn: Turn, client: Arc<Client>) -> Self {
        Self { server, turn, client, waits_for: Mutex::default() }
    }

    /// Does the work, for which the request waits, and notes meanwhile what it waits for: a request
    /// that is cancelled then has it withdrawn.
    async fn while_waiting_for<T>(
        &self,
        suspension: &SuspensionId,
        work: impl Future<Output = T>,
    ) -> T {
        *self.waits_for() = Some(suspension.clone());
        let done = work.await;
        *self.waits_for() = None;
        done
    }

    fn waits_for(&self) -> MutexGuard<'_, Option<SuspensionId>> {
        self.waits_for.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Withdraws what a cancelled request waited for, so that nobody can approve it any more. A
    /// server that is closing leaves it: the call can be decided on after the restart.
    async fn withdraw(&self) {
        let waits_for = self.waits_for().take();
        if let Some(id) = waits_for
            && !self.server.closing().is_cancelled()
            && let Err(error) = self.turn.resolve(&id, Resolution::Cancel).await
        {
            tracing::debug!(%error, "the call of a cancelled request could not be withdrawn");
        }
    }

    /// Whether a suspended call waits for an approval that this client cannot give, because it lacks
    /// the right or cannot be asked. Others can find the call where it is stored.
    pub(crate) fn is_for_others(&self, suspension: &Suspension) -> bool {
        matches!(suspension.waiting(), Waiting::Approval { .. })
            && !(self.turn.may_approve() && can_ask_for_consent(&self.client.capabilities))
    }

    /// Waits until somebody else decides on the call, and returns its answer.
    pub(crate) fn decided_elsewhere(self: &Arc<Self>, suspension: &Suspension) -> CallFuture {
        let (call, id) = (Arc::clone(self), suspension.id().clone());
        let limit = suspension.expires_at().since(suspension.created_at());
        let expired = self.resume(suspension, Resolution::Expire);
        Box::pin(async move {
            match call.outcome_of(&id, limit).await? {
                Some(answer) => Ok(answer),
                None => expired.await,
            }
        })
    }

    /// The outcome of an earlier, identical call: a client polls a waiting call by repeating it.
    /// Waits for the decision for a while. `None` if there is no such call.
    async fn earlier_call_answer(
        &self,
        suspension: &Suspension,
    ) -> Result<Option<Answer>, ErrorData> {
        let earlier =
            self.turn.same_call(suspension).await.map_err(|error| unreadable_suspension(&error))?;
        let Some(earlier) = earlier else { return Ok(None) };
        // One question is enough for both calls, unless the turn joined the earlier call itself.
        if earlier.id() != suspension.id()
            && let Err(error) = self.turn.resolve(suspension.id(), Resolution::Cancel).await
        {
            tracing::debug!(%error, "the duplicate of a waiting call could not be cancelled");
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
        let Some(settled) = settled.map_err(|error| unreadable_suspension(&error))? else {
            return Ok(None);
        };
        self.turn.take_outcome(id).await.map_err(|error| unreadable_suspension(&error))?;
        Ok(match (settled.result(), settled.outcome()) {
            (Some(result), _) => Some(Answer::Done(result)),
            (None, Settled::Waits(next)) => Some(Answer::Suspended(next.clone())),
            (None, _) => None,
        })
    }

    /// The questions of a suspended call to the client; `None` if no client can resolve it.
    pub(crate) fn questions(
        &self,
        suspension: &Suspension,
    ) -> Option<Result<Questions, ClientCapabilities>> {
        let definition = self.turn.describe(suspension.tool()).map(AsRef::as_ref);
        Questions::of(suspension, definition, &self.client.capabilities)
    }

    /// Sends questions to the client and returns its answers; `None` if it did not answer.
    async fn ask(&self, questions: &Questions) -> Option<InputResponses> {
        match questions.ask(self.client.peer.as_ref()?).await {
            Ok(responses) => Some(responses),
            Err(error) => {
                tracing::debug!(%error, "a client did not answer a question");
                None
            }
        }
    }

    /// The suspended call that a client continues.
    async fn stored_suspension(&self, name: &str, state: &str) -> Result<Suspension, ErrorData> {
        let id = state.parse::<SuspensionId>().map_err(|_| no_such_call())?;
        let found =
            self.turn.suspended(&id).await.map_err(|error| unreadable_suspension(&error))?;
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

    /// Continues a call after its suspension was resolved.
    pub(crate) fn resume(
        self: &Arc<Self>,
        suspension: &Suspension,
        resolution: Resolution,
    ) -> CallFuture {
        let call = Arc::clone(self);
        let id = suspension.id().clone();
        Box::pin(async move {
            call.turn.resolve(&id, resolution).await.map_err(|error| match error {
                RedeemError::Store(error) => unreadable_suspension(&error),
                RedeemError::ShuttingDown => ErrorData::internal_error(error.to_string(), None),
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
            self.resume(suspension, Resolution::Cancel).await?;
            return Err(ErrorData::missing_required_client_capability(missing));
        }
        let what = "it runs at the client, which cannot be asked here".to_owned();
        self.resume(suspension, Decision::Deny { message: what }.into()).await
    }

    /// The result in the form that this client accepts.
    pub(crate) fn complete(&self, result: &ToolResult) -> Result<CallToolResult, ErrorData> {
        if let Some(error) = unknown_name(&self.turn, result) {
            return Err(error);
        }
        self.server.note_links(result);
        let definition = self.turn.describe(result.tool()).map(AsRef::as_ref);
        call_tool_result(result, definition, self.client.data_form).map_err(|error| {
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

/// The protocol error for a call that failed because no tool has the name. A tool may itself fail
/// with the same kind; that is an ordinary result.
pub(crate) fn unknown_name(turn: &Turn, result: &ToolResult) -> Option<ErrorData> {
    let unknown =
        result.error_kind() == Some(ErrorKind::NotFound) && turn.describe(result.tool()).is_none();
    unknown.then(|| ErrorData::invalid_params(result.text().into_owned(), None))
}

fn unreadable_suspension(error: &StoreError) -> ErrorData {
    ErrorData::internal_error(format!("the waiting call cannot be read: {error}"), None)
}

fn no_such_call() -> ErrorData {
    ErrorData::invalid_params(
        "no call of this tool waits under this `requestState`: it has been answered, or its time \
         is over, or the state is not what this server gave out; make the call again",
        None,
    )
}
