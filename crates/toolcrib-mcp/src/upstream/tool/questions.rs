//! Questions that a server asks in the middle of a call (`elicitation/create`): which call each belongs to,
//! and the calls that wait for an answer.
//!
//! The protocol does not name the call that a question is about. A question is passed on only where there is no
//! doubt: if it carries the progress token of a call, or if only one call runs on the connection and no call of
//! another client was given up there. Every other question is cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ProgressToken};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use toolcrib_core::events::{EventBus, Payload, Subscription};
use toolcrib_core::spill::Owner;
use toolcrib_core::unguessable;
use toolcrib_tool::{CallContext, CallId, InputRequest, visible};

use super::definition::hidden_character_in;
use crate::upstream::connection::link::{Link, LiveConnection};
use crate::upstream::connection::pending::PendingRequest;

/// The longest question, in characters.
const MESSAGE_MAX: usize = 2_000;
/// The longest schema of an answer, in bytes of JSON text.
const SCHEMA_MAX: usize = 16 * 1024;
/// How many callers whose calls were given up are remembered. With more, no question is passed on.
const GIVEN_UP_MAX: usize = 64;
/// How long a call waits for an answer at most.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// How long the server may take to end a call after its question was declined.
const GRACE: Duration = Duration::from_secs(2);

/// A question, and the way back for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    message: String,
    schema: Value,
    reply: oneshot::Sender<ElicitResult>,
}

impl Question {
    /// What the client of the call is asked. `key` finds the waiting call again.
    pub(crate) fn request(&self, upstream: &str, key: &str) -> InputRequest {
        let text: String = visible(&self.message).chars().take(MESSAGE_MAX).collect();
        let message = format!("The MCP server `{upstream}` asks: {text}");
        InputRequest::new(message, self.schema.clone()).remember(json!({"waiting": key}))
    }
}

/// The form that a server asks for, if it can be passed on.
pub(crate) fn form(params: &ElicitRequestParams) -> Option<(String, Value)> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = params
    else {
        return None;
    };
    let schema = serde_json::to_value(requested_schema).ok()?;
    let is_sound = hidden_character_in(&schema).is_none() && schema.to_string().len() <= SCHEMA_MAX;
    is_sound.then(|| (message.clone(), schema))
}

/// The calls of one connection.
#[derive(Debug, Default)]
pub(crate) struct QuestionRouter(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    next: u64,
    running: HashMap<u64, RunningCall>,
    /// Whose calls were given up. The server may still work on them.
    given_up: Vec<Owner>,
}

#[derive(Debug)]
struct RunningCall {
    owner: Owner,
    token: Option<ProgressToken>,
    questions: mpsc::UnboundedSender<Question>,
}

impl QuestionRouter {
    /// Registers a call that is about to be sent.
    pub(crate) fn begin(self: &Arc<Self>, cx: &CallContext) -> CallQuestions {
        let (sender, questions) = mpsc::unbounded_channel();
        let mut calls = self.calls();
        let id = calls.next;
        calls.next += 1;
        let call = RunningCall { owner: Owner::of_call(cx), token: None, questions: sender };
        calls.running.insert(id, call);
        drop(calls);
        CallQuestions { router: Arc::clone(self), id, questions, is_answered: false }
    }

    /// Passes a question to the call that it belongs to, and returns the answer.
    pub(crate) async fn ask(
        &self,
        params: &ElicitRequestParams,
        token: Option<ProgressToken>,
    ) -> ElicitResult {
        let cancelled = || ElicitResult::new(ElicitationAction::Cancel);
        let Some((message, schema)) = form(params) else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let (reply, answer) = oneshot::channel();
        let question = Question { message, schema, reply };
        if let Err(reason) = self.calls().deliver(question, token.as_ref()) {
            tracing::info!(reason, "a question of an MCP server was cancelled");
            return cancelled();
        }
        answer.await.unwrap_or_else(|_| cancelled())
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn deliver(
        &self,
        question: Question,
        token: Option<&ProgressToken>,
    ) -> Result<(), &'static str> {
        let named = token.and_then(|token| {
            self.running.values().find(|call| call.token.as_ref() == Some(token))
        });
        let call = match named {
            Some(call) => call,
            None => self.only_call()?,
        };
        call.questions.send(question).map_err(|_| "its call has ended")
    }

    /// The call that a question without a token is about, if it can be no other's.
    fn only_call(&self) -> Result<&RunningCall, &'static str> {
        let mut running = self.running.values();
        let (Some(call), None) = (running.next(), running.next()) else {
            return Err("it is not known which call it belongs to");
        };
        let is_clear = self.given_up.len() < GIVEN_UP_MAX
            && self.given_up.iter().all(|owner| *owner == call.owner);
        if is_clear { Ok(call) } else { Err("it may belong to a call that another client gave up") }
    }
}

/// The questions of one call. Dropping it before the call is answered marks the call as given up.
#[derive(Debug)]
pub(crate) struct CallQuestions {
    router: Arc<QuestionRouter>,
    id: u64,
    questions: mpsc::UnboundedReceiver<Question>,
    is_answered: bool,
}

impl CallQuestions {
    /// Notes the progress token of the request.
    pub(crate) fn sent(&self, token: ProgressToken) {
        if let Some(call) = self.router.calls().running.get_mut(&self.id) {
            call.token = Some(token);
        }
    }

    /// Notes that the server has answered the call.
    pub(crate) fn answered(&mut self) {
        self.is_answered = true;
    }

    /// The next question.
    pub(crate) async fn next(&mut self) -> Question {
        match self.questions.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }
}

impl Drop for CallQuestions {
    fn drop(&mut self) {
        let mut calls = self.router.calls();
        let Some(call) = calls.running.remove(&self.id) else { return };
        let is_new = !calls.given_up.contains(&call.owner);
        if !self.is_answered && is_new && calls.given_up.len() < GIVEN_UP_MAX {
            calls.given_up.push(call.owner);
        }
    }
}

/// A call that the server has not answered yet.
pub(crate) struct OpenCall {
    pub(crate) live: Arc<LiveConnection>,
    pub(crate) pending: PendingRequest,
    pub(crate) questions: CallQuestions,
}

/// What the server does next.
pub(crate) enum Next<T> {
    Answer(T),
    Question(Question),
}

/// A call that waits until its client has answered.
struct WaitingCall {
    call: OpenCall,
    owner: Owner,
    reply: oneshot::Sender<ElicitResult>,
    watch: AbortHandle,
}

/// The calls of an upstream that wait for answers, by keys that nobody can guess.
#[derive(Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<String, WaitingCall>>);

impl WaitingCalls {
    /// Keeps a call until it is resumed. If it ends otherwise, because its client declined or cannot be
    /// asked, the server is told so and the request is cancelled.
    pub(crate) fn keep(
        &self,
        link: &Arc<Link>,
        cx: &CallContext,
        bus: Option<&EventBus>,
        call: OpenCall,
        question: Question,
    ) -> Option<InputRequest> {
        let key = unguessable::<16>().ok()?;
        let request = question.request(&link.upstream, &key);
        // Subscribed before the call can end.
        let ends = bus.map(EventBus::subscribe);
        let owner = Owner::of_call(cx);
        let ended =
            end_of(ends, cx.call_id().clone(), cx.definition().name().to_owned(), owner.clone());
        let (link, own_key) = (Arc::downgrade(link), key.clone());
        let watch = tokio::spawn(async move {
            let _ = timeout(WAIT_MAX, ended).await;
            decline(&link, &own_key).await;
        });
        let waiting =
            WaitingCall { call, owner, reply: question.reply, watch: watch.abort_handle() };
        self.calls().insert(key, waiting);
        Some(request)
    }

    /// Gives the server the answer; returns the call, if it still waits and is this caller's.
    pub(crate) fn resume(&self, key: &str, cx: &CallContext, answer: &Value) -> Option<OpenCall> {
        let mut calls = self.calls();
        if calls.get(key)?.owner != Owner::of_call(cx) {
            return None;
        }
        let WaitingCall { call, reply, watch, .. } = calls.remove(key)?;
        drop(calls);
        watch.abort();
        let accepted = ElicitResult::new(ElicitationAction::Accept).with_content(answer.clone());
        reply.send(accepted).ok()?;
        Some(call)
    }

    /// Ends all of them: the connection is gone.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.calls());
        for waiting in all.into_values() {
            waiting.watch.abort();
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, WaitingCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for WaitingCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.calls().len().to_string().chars()).finish()
    }
}

/// Completes when a call is over.
async fn end_of(events: Option<Subscription>, call: CallId, tool: String, owner: Owner) {
    let Some(mut events) = events else { return std::future::pending().await };
    while let Some(event) = events.next().await {
        let is_own = event.call_id() == Some(&call)
            && event.tool() == Some(&tool)
            && event.identity() == Some(owner.identity());
        if is_own && matches!(event.payload(), Payload::Completed(_)) {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Declines the question of a call that nobody resumes. The server has a moment to end the call by itself.
async fn decline(link: &Weak<Link>, key: &str) {
    let waiting = link.upgrade().and_then(|link| link.waiting.calls().remove(key));
    let Some(WaitingCall { mut call, reply, .. }) = waiting else { return };
    let _ = reply.send(ElicitResult::new(ElicitationAction::Decline));
    if timeout(GRACE, call.pending.answer()).await.is_ok() {
        call.questions.answered();
    }
}
