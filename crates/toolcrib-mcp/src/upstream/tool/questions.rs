//! Questions that a server asks in the middle of a call (`elicitation/create`): which call each belongs to.
//!
//! The protocol does not name the call that a question is about. A question is passed on only where there is no
//! doubt: if it carries the progress token of a running call, or if it refers to nothing, only one request runs on
//! the connection, and the connection has never served another client. A server may ask about a call that it has
//! answered long ago, so it does not matter whether the requests of other clients have ended. Every other question
//! is cancelled. A reference that names no running call is never replaced by a guess.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, JsonObject, ProgressToken,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use toolcrib_core::spill::Owner;
use toolcrib_tool::{CallContext, InputRequest};

use super::definition::hidden_character_in;
use super::untrusted_text::TextSource;

/// How much of a question is shown, in characters.
const MESSAGE_MAX: usize = 2_000;
/// Longer questions are declined, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// The longest schema of an answer, in bytes of JSON text.
const SCHEMA_MAX: usize = 16 * 1024;
/// How many questions of a call wait for their turn; more are cancelled.
const QUEUE_MAX: usize = 8;

/// A question, and the way back for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    message: String,
    schema: Value,
    pub(super) reply: oneshot::Sender<ElicitResult>,
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
    if message.len() > MESSAGE_BYTES_MAX {
        return None;
    }
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
#[derive(Debug)]
pub(crate) struct QuestionRouter {
    /// The name of the server.
    upstream: String,
    requests: Mutex<Requests>,
    /// Notified when the token of a request is known, and when a request ends.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    next: u64,
    running: HashMap<u64, RunningRequest>,
    served: ServedClients,
    /// Whether the log has a warning about a question that was cancelled.
    is_reported: bool,
}

/// Whose requests a connection has served so far.
#[derive(Debug, Default, PartialEq)]
enum ServedClients {
    #[default]
    Nobody,
    One(Owner),
    Several,
}

impl ServedClients {
    fn add(&mut self, owner: &Owner) {
        match self {
            Self::Nobody => *self = Self::One(owner.clone()),
            Self::One(known) if known != owner => *self = Self::Several,
            Self::One(_) | Self::Several => {}
        }
    }
}

#[derive(Debug)]
struct RunningRequest {
    /// Whether its client can be asked: not during a read of a resource or a prompt.
    is_call: bool,
    /// `None` until it has been sent.
    token: Option<ProgressToken>,
    questions: mpsc::Sender<Question>,
}

impl QuestionRouter {
    /// For a new connection to the server of this name.
    pub(crate) fn new(upstream: &str) -> Self {
        Self { upstream: upstream.to_owned(), requests: Mutex::default(), changed: Notify::new() }
    }

    /// Registers a call that is about to be sent.
    pub(crate) fn begin(self: &Arc<Self>, cx: &CallContext) -> CallQuestions {
        self.register(&Owner::of_call(cx), true)
    }

    /// Registers a read of a resource or a prompt that is about to be sent. The server may ask during
    /// it, but there is no call whose client could answer.
    pub(crate) fn begin_read(self: &Arc<Self>, reader: &Owner) -> CallQuestions {
        self.register(reader, false)
    }

    fn register(self: &Arc<Self>, owner: &Owner, is_call: bool) -> CallQuestions {
        let (sender, questions) = mpsc::channel(QUEUE_MAX);
        let mut requests = self.requests();
        let id = requests.next;
        requests.next += 1;
        requests.served.add(owner);
        requests.running.insert(id, RunningRequest { is_call, token: None, questions: sender });
        drop(requests);
        CallQuestions { router: Arc::clone(self), id, questions }
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
        let delivered = self.requests().deliver(question, reference);
        if let Err(reason) = delivered {
            self.report(reason);
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

    /// Logs that a question was cancelled: the first time as a warning, so that a server that keeps asking
    /// does not fill the log.
    fn report(&self, reason: &str) {
        const CANCELLED: &str = "a question of an MCP server was cancelled";
        let upstream = self.upstream.as_str();
        if std::mem::replace(&mut self.requests().is_reported, true) {
            tracing::debug!(upstream, reason, "{CANCELLED}");
        } else {
            tracing::warn!(upstream, reason, "{CANCELLED}; later ones are logged at level debug");
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
        if !request.is_call {
            return Err(
                "it belongs to a read of a resource or a prompt, whose client cannot be asked",
            );
        }
        request.questions.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => "its call has too many unanswered questions",
            TrySendError::Closed(_) => "its call has ended",
        })
    }

    /// The request that a question without a reference is about, if it can be no other's.
    fn only_request(&self) -> Result<&RunningRequest, &'static str> {
        if self.served == ServedClients::Several {
            return Err("it has no progress token, and several clients have used this connection");
        }
        let mut running = self.running.values();
        match (running.next(), running.next()) {
            (Some(request), None) => Ok(request),
            (None, _) => Err("no call is running"),
            (Some(_), Some(_)) => Err("it has no progress token, and several calls are running"),
        }
    }
}

/// The questions of one request, as long as the request runs.
#[derive(Debug)]
pub(crate) struct CallQuestions {
    router: Arc<QuestionRouter>,
    id: u64,
    questions: mpsc::Receiver<Question>,
}

impl CallQuestions {
    /// Notes the progress token of the request.
    pub(crate) fn sent(&self, token: ProgressToken) {
        if let Some(request) = self.router.requests().running.get_mut(&self.id) {
            request.token = Some(token);
        }
        self.router.changed.notify_waiters();
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
        self.router.requests().running.remove(&self.id);
        self.router.changed.notify_waiters();
    }
}
