//! Questions that a server asks in the middle of a call (`elicitation/create`): which call each belongs to,
//! and the calls that wait for an answer.
//!
//! The protocol does not name the call that a question is about. A question is passed on only where there is no
//! doubt: if it carries the progress token of a running call, or if it refers to nothing, only one request runs on
//! the connection, and no request of another client was given up there. Every other question is cancelled. A
//! reference that names no running call is never replaced by a guess.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, JsonObject, ProgressToken,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use toolcrib_core::events::{EventBus, Payload, Subscription};
use toolcrib_core::spill::Owner;
use toolcrib_core::unguessable;
use toolcrib_tool::{CallContext, CallId, InputRequest};

use super::definition::hidden_character_in;
use super::untrusted_text::TextSource;
use crate::upstream::connection::link::{Link, LiveConnection};
use crate::upstream::connection::pending::PendingRequest;

/// The longest question, in characters.
const MESSAGE_MAX: usize = 2_000;
/// The longest schema of an answer, in bytes of JSON text.
const SCHEMA_MAX: usize = 16 * 1024;
/// How many callers whose calls were given up are remembered. With more, only questions with a token are passed on.
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
    pub(crate) fn request(&self, source: &TextSource<'_>, key: &str) -> InputRequest {
        let text: String = source.visible(&self.message).chars().take(MESSAGE_MAX).collect();
        let message = format!("The MCP server `{}` asks: {text}", source.upstream);
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

/// What a question refers to in its `_meta`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reference {
    /// Nothing.
    Absent,
    /// The request with this progress token.
    Token(ProgressToken),
    /// Something that no call has: a task, since calls are not sent as tasks, or a malformed token.
    Unknown,
}

impl Reference {
    /// The reference in the `_meta` of a question.
    pub(crate) fn of(meta: &JsonObject) -> Self {
        let mut reference = Self::Absent;
        for (key, value) in meta.iter().filter(|(_, value)| !value.is_null()) {
            let name = key.rsplit('/').next().unwrap_or(key);
            if name.starts_with("related") {
                return Self::Unknown;
            }
            if key == "progressToken" {
                let token = serde_json::from_value(value.clone());
                reference = token.map_or(Self::Unknown, Self::Token);
            }
        }
        reference
    }
}

/// The requests of one connection that clients wait for.
#[derive(Debug, Default)]
pub(crate) struct QuestionRouter {
    requests: Mutex<Requests>,
    /// Notified when the token of a request is known, and when a request ends.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    next: u64,
    running: HashMap<u64, RunningRequest>,
    /// Whose requests were given up. The server may still work on them.
    given_up: Vec<Option<Owner>>,
}

#[derive(Debug)]
struct RunningRequest {
    /// Whose call it is; `None` for a read of a resource.
    owner: Option<Owner>,
    /// `None` until it has been sent.
    token: Option<ProgressToken>,
    questions: mpsc::UnboundedSender<Question>,
}

impl QuestionRouter {
    /// Registers a call that is about to be sent.
    pub(crate) fn begin(self: &Arc<Self>, cx: &CallContext) -> CallQuestions {
        self.register(Some(Owner::of_call(cx)))
    }

    /// Registers a read of a resource that is about to be sent. The server may ask during it, but there is
    /// no call whose client could answer.
    pub(crate) fn begin_read(self: &Arc<Self>) -> CallQuestions {
        self.register(None)
    }

    fn register(self: &Arc<Self>, owner: Option<Owner>) -> CallQuestions {
        let (sender, questions) = mpsc::unbounded_channel();
        let mut requests = self.requests();
        let id = requests.next;
        requests.next += 1;
        requests.running.insert(id, RunningRequest { owner, token: None, questions: sender });
        drop(requests);
        CallQuestions { router: Arc::clone(self), id, questions, is_answered: false }
    }

    /// Passes a question to the call that it belongs to, and returns the answer.
    pub(crate) async fn ask(
        &self,
        params: &ElicitRequestParams,
        reference: &Reference,
    ) -> ElicitResult {
        let cancelled = || ElicitResult::new(ElicitationAction::Cancel);
        let Some((message, schema)) = form(params) else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        if let Reference::Token(token) = reference {
            self.sent_before(token).await;
        }
        let (reply, answer) = oneshot::channel();
        let question = Question { message, schema, reply };
        if let Err(reason) = self.requests().deliver(question, reference) {
            tracing::info!(reason, "a question of an MCP server was cancelled");
            return cancelled();
        }
        answer.await.unwrap_or_else(|_| cancelled())
    }

    /// Waits until the tokens of all requests that are being sent now are known, or one has this token. A server
    /// can be so fast that it asks before the sender of the call has noted the token.
    async fn sent_before(&self, token: &ProgressToken) {
        let now = self.requests().next;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.requests().is_settled(token, now) {
                return;
            }
            changed.await;
        }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Requests {
    fn with_token(&self, token: &ProgressToken) -> Option<&RunningRequest> {
        self.running.values().find(|request| request.token.as_ref() == Some(token))
    }

    /// Whether it is known which of the requests before the given id has this token, if any.
    fn is_settled(&self, token: &ProgressToken, before: u64) -> bool {
        let mut earlier = self.running.iter().filter(|(id, _)| **id < before);
        self.with_token(token).is_some() || earlier.all(|(_, request)| request.token.is_some())
    }

    fn deliver(&self, question: Question, reference: &Reference) -> Result<(), &'static str> {
        let request = match reference {
            Reference::Token(token) => self.with_token(token),
            Reference::Unknown => None,
            Reference::Absent => Some(self.only_request()?),
        };
        let request = request.ok_or("it refers to no call that is running")?;
        if request.owner.is_none() {
            return Err("it belongs to a read of a resource, whose client cannot be asked");
        }
        request.questions.send(question).map_err(|_| "its call has ended")
    }

    /// The request that a question without a reference is about, if it can be no other's.
    fn only_request(&self) -> Result<&RunningRequest, &'static str> {
        let mut running = self.running.values();
        let (Some(request), None) = (running.next(), running.next()) else {
            return Err("it is not known which call it belongs to");
        };
        let is_clear = self.given_up.len() < GIVEN_UP_MAX
            && self.given_up.iter().all(|owner| *owner == request.owner);
        if is_clear {
            Ok(request)
        } else {
            Err("it may belong to a call that another client gave up")
        }
    }
}

/// The questions of one request. Dropping it before the request is answered marks the request as given up.
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
        if let Some(request) = self.router.requests().running.get_mut(&self.id) {
            request.token = Some(token);
        }
        self.router.changed.notify_waiters();
    }

    /// Notes that the server has answered the request.
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
        let mut requests = self.router.requests();
        let Some(request) = requests.running.remove(&self.id) else { return };
        let is_new = !requests.given_up.contains(&request.owner);
        if !self.is_answered && is_new && requests.given_up.len() < GIVEN_UP_MAX {
            requests.given_up.push(request.owner);
        }
        drop(requests);
        self.router.changed.notify_waiters();
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
        let source = TextSource { upstream: &link.upstream, mask: &|text| cx.masked(text) };
        let request = question.request(&source, &key);
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
