//! Calls of an upstream that wait until their client has answered a question of the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use toolcrib_core::events::{EventBus, Payload, Subscription};
use toolcrib_core::spill::Owner;
use toolcrib_core::unguessable;
use toolcrib_tool::{CallContext, CallId, InputRequest};

use super::questions::{CallQuestions, Question};
use super::untrusted_text::TextSource;
use crate::upstream::connection::link::{Link, LiveConnection};
use crate::upstream::connection::pending::PendingRequest;

/// How long a call waits for an answer at most.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// How long the server may take to end a call after its question was declined.
const GRACE: Duration = Duration::from_secs(2);

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
    let _ = timeout(GRACE, call.pending.answer()).await;
}
