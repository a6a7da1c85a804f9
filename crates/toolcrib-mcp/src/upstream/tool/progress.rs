//! Progress of calls, from the server to whoever watches them.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    JsonRpcMessage, JsonRpcNotification, ProgressNotificationParam, ProgressToken,
    ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use toolcrib_tool::{CallContext, StatusUpdate, visible};

/// So many notifications of a call are told as they come. After that one is told every [`INTERVAL`],
/// so that a server that floods its calls slows nobody down.
const BURST: usize = 64;
/// The pause between two notifications of a call that has used up its burst.
const INTERVAL: Duration = Duration::from_millis(50);
/// How many notifications are kept of calls that are not followed yet.
const EARLY_MAX: usize = 256;
/// More of a message is not shown.
const MESSAGE_MAX: usize = 300;

/// The calls that wait for an answer, by the token of their progress.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    followed: HashMap<ProgressToken, Followed>,
    /// What nobody followed when it came. A call has a token once it is sent, and its server may be
    /// quicker than we are.
    early: VecDeque<ProgressNotificationParam>,
}

#[derive(Debug)]
struct Followed {
    call: CallContext,
    /// How many notifications were told.
    told: usize,
    last: Option<Instant>,
    /// The latest notification, if it came too soon after the one before. It is told later, unless a
    /// newer one takes its place; in any case before the result.
    held: Option<ProgressNotificationParam>,
    /// Told that one is held.
    holds: Arc<Notify>,
}

/// Ends the following of a call when it is dropped.
pub(crate) struct Following {
    progress: Arc<Progress>,
    token: ProgressToken,
    holds: Arc<Notify>,
}

impl Progress {
    /// Tells whoever watches the call of the progress with this token.
    pub(crate) fn follow(self: &Arc<Self>, token: ProgressToken, call: &CallContext) -> Following {
        let holds = Arc::<Notify>::default();
        let mut told = 0;
        let mut last = None;
        // What came early is told before the call is followed, so that nothing newer overtakes it.
        loop {
            let early = {
                let mut calls = self.calls();
                let early = calls.take_early(&token);
                if early.is_empty() {
                    let (call, holds) = (call.clone(), Arc::clone(&holds));
                    let followed = Followed { call, told, last, held: None, holds };
                    calls.followed.insert(token.clone(), followed);
                    break;
                }
                early
            };
            for (place, notification) in early.iter().enumerate() {
                if told < BURST || place + 1 == early.len() {
                    tell(call, notification);
                    told += 1;
                }
            }
            last = Some(Instant::now());
        }
        Following { progress: Arc::clone(self), token, holds }
    }

    /// How many calls wait for an answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.calls().followed.len()
    }

    /// Passes a notification on, or holds it for a moment if its call has had many.
    pub(crate) fn deliver(&self, progress: &ProgressNotificationParam) {
        let call = {
            let mut calls = self.calls();
            let Some(followed) = calls.followed.get_mut(&progress.progress_token) else {
                if calls.early.len() == EARLY_MAX {
                    calls.early.pop_front();
                }
                calls.early.push_back(progress.clone());
                return;
            };
            let too_soon = || followed.last.is_some_and(|last| last.elapsed() < INTERVAL);
            if followed.told >= BURST && too_soon() {
                followed.held = Some(progress.clone());
                followed.holds.notify_one();
                return;
            }
            followed.is_told()
        };
        tell(&call, progress);
    }

    /// Passes on what is held of a call.
    fn deliver_held(&self, token: &ProgressToken) {
        let held = {
            let mut calls = self.calls();
            let Some(followed) = calls.followed.get_mut(token) else { return };
            let Some(held) = followed.held.take() else { return };
            (followed.is_told(), held)
        };
        tell(&held.0, &held.1);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    /// Takes out what came of a call before it was followed.
    fn take_early(&mut self, token: &ProgressToken) -> VecDeque<ProgressNotificationParam> {
        let (early, others) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|notification| notification.progress_token == *token);
        self.early = others;
        early
    }
}

impl Followed {
    /// Notes that a notification is told now. What was held before is older, and not told any more.
    fn is_told(&mut self) -> CallContext {
        self.told += 1;
        self.last = Some(Instant::now());
        self.held = None;
        self.call.clone()
    }
}

fn tell(call: &CallContext, progress: &ProgressNotificationParam) {
    let mut update = StatusUpdate::doing().with_param("progress", progress.progress);
    if let Some(total) = progress.total {
        update = update.with_param("total", total);
    }
    if let Some(message) = &progress.message {
        let tip: String = visible(message).chars().take(MESSAGE_MAX).collect();
        update = update.with_tip(tip);
    }
    call.status(update);
}

impl Following {
    /// Waits for the answer of the call. All progress that came before it has been told by then.
    pub(crate) async fn beside<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            let due = async {
                self.holds.notified().await;
                sleep(INTERVAL).await;
            };
            let answer = tokio::select! {
                biased;
                answer = &mut answer => Some(answer),
                () = due => None,
            };
            self.progress.deliver_held(&self.token);
            if let Some(answer) = answer {
                return answer;
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.progress.calls().followed.remove(&self.token);
    }
}

/// A connection whose progress is delivered as it is read.
///
/// The protocol library handles each notification in a task of its own, but completes a request at once:
/// progress that arrived before a result could come after it, where nobody listens any more.
pub(crate) struct InOrder<T> {
    pub(crate) inner: T,
    pub(crate) progress: Arc<Progress>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for InOrder<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            let JsonRpcMessage::Notification(JsonRpcNotification {
                notification: ServerNotification::ProgressNotification(progress),
                ..
            }) = &message
            else {
                return Some(message);
            };
            self.progress.deliver(&progress.params);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;
    use toolcrib_tool::{BoxFuture, CallHost, ToolDefinition};

    use super::*;

    #[derive(Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl CallHost for Heard {
        fn cancelled(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }

        fn is_cancelled(&self) -> bool {
            false
        }

        fn status(&self, update: StatusUpdate) {
            self.0.lock().unwrap().extend(update.tip);
        }
    }

    fn told(token: &ProgressToken, message: &str) -> ProgressNotificationParam {
        let mut told = ProgressNotificationParam::new(token.clone(), 1.0);
        told.message = Some(message.to_owned());
        told
    }

    #[test]
    fn what_a_server_tells_before_its_call_is_followed_is_not_lost() {
        let progress = Arc::new(Progress::default());
        let token = |number| ProgressToken(NumberOrString::Number(number));
        progress.deliver(&told(&token(1), "early"));
        progress.deliver(&told(&token(2), "of another call"));
        let heard = Heard::default();
        let all = Arc::clone(&heard.0);
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let call = CallContext::builder("c", definition).host(Arc::new(heard)).build();
        let _following = progress.follow(token(1), &call);
        assert_eq!(*all.lock().unwrap(), ["early"]);
        assert_eq!(progress.in_flight(), 1);
        for number in 0..1_000 {
            progress.deliver(&told(&token(3 + number), "late"));
        }
        assert_eq!(progress.calls().early.len(), EARLY_MAX, "what is kept is bounded");
    }

    /// While it is told the first notification, the server tells the next.
    struct Interrupted {
        heard: Heard,
        progress: Arc<Progress>,
        next: Mutex<Option<ProgressNotificationParam>>,
    }

    impl CallHost for Interrupted {
        fn cancelled(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }

        fn is_cancelled(&self) -> bool {
            false
        }

        fn status(&self, update: StatusUpdate) {
            let next = self.next.lock().unwrap().take();
            if let Some(next) = next {
                self.progress.deliver(&next);
            }
            self.heard.status(update);
        }
    }

    #[test]
    fn newer_progress_does_not_overtake_what_came_before_the_call_was_followed() {
        let progress = Arc::new(Progress::default());
        let token = ProgressToken(NumberOrString::Number(1));
        progress.deliver(&told(&token, "one"));
        progress.deliver(&told(&token, "two"));
        let heard = Heard::default();
        let all = Arc::clone(&heard.0);
        let next = Mutex::new(Some(told(&token, "three")));
        let host = Interrupted { heard, progress: Arc::clone(&progress), next };
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let call = CallContext::builder("c", definition).host(Arc::new(host)).build();
        let _following = progress.follow(token, &call);
        assert_eq!(*all.lock().unwrap(), ["one", "two", "three"]);
    }

    fn followed(
        progress: &Arc<Progress>,
        token: &ProgressToken,
    ) -> (Following, Arc<Mutex<Vec<String>>>) {
        let heard = Heard::default();
        let all = Arc::clone(&heard.0);
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let call = CallContext::builder("c", definition).host(Arc::new(heard)).build();
        (progress.follow(token.clone(), &call), all)
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_of_a_flood_is_told_before_the_answer() {
        let progress = Arc::new(Progress::default());
        let token = ProgressToken(NumberOrString::Number(1));
        let (following, heard) = followed(&progress, &token);
        let flood = async {
            for number in 1..=10_000 {
                progress.deliver(&told(&token, &number.to_string()));
            }
        };
        following.beside(flood).await;
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), BURST + 1);
        assert_eq!(heard.last().unwrap(), "10000");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_back_is_told_when_the_server_falls_silent() {
        let progress = Arc::new(Progress::default());
        let token = ProgressToken(NumberOrString::Number(1));
        let (following, heard) = followed(&progress, &token);
        let slow = async {
            for number in 1..=BURST + 2 {
                progress.deliver(&told(&token, &number.to_string()));
            }
            sleep(Duration::from_secs(1)).await;
            heard.lock().unwrap().clone()
        };
        let told = following.beside(slow).await;
        assert_eq!(told.last().unwrap(), &(BURST + 2).to_string());
    }
}
