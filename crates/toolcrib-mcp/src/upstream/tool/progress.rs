//! Progress notifications of calls, from the server to whoever watches the call.

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

/// The number of notifications of a call that are passed on immediately. After that, at most one is
/// passed on every [`INTERVAL`], so that a server that floods its calls slows nobody down.
const BURST: usize = 64;
/// The interval between two notifications of a call that has used up its burst.
const INTERVAL: Duration = Duration::from_millis(50);
/// How many notifications are kept for calls that are not tracked yet.
const EARLY_MAX: usize = 256;
/// The number of characters of a message that are shown.
const MESSAGE_MAX: usize = 300;
/// Longer messages are left out, in bytes: notifications are kept until their call is known.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The calls that wait for an answer, by progress token.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    tracked: HashMap<ProgressToken, TrackedCall>,
    /// Notifications that came before their call was tracked. A call has a token only once it is
    /// sent, and its server may answer faster.
    early: VecDeque<ProgressNotificationParam>,
}

#[derive(Debug)]
struct TrackedCall {
    call: CallContext,
    /// How many notifications were passed on.
    told: usize,
    last: Option<Instant>,
    /// The latest notification, if it came too soon after the one before. It is passed on later, at
    /// the latest before the result, unless a newer one replaces it.
    held: Option<ProgressNotificationParam>,
    /// Notified when one is held back.
    held_notice: Arc<Notify>,
}

/// Stops tracking a call when dropped.
pub(crate) struct ProgressGuard {
    progress: Arc<Progress>,
    token: ProgressToken,
    held_notice: Arc<Notify>,
}

impl Progress {
    /// Passes the progress with this token on to whoever watches the call.
    pub(crate) fn track(
        self: &Arc<Self>,
        token: ProgressToken,
        call: &CallContext,
    ) -> ProgressGuard {
        let held_notice = Arc::<Notify>::default();
        let mut told = 0;
        let mut last = None;
        // Early notifications are passed on before the call is tracked, so that no newer one
        // overtakes them.
        loop {
            let early = {
                let mut calls = self.calls();
                let early = calls.take_early(&token);
                if early.is_empty() {
                    let (call, held_notice) = (call.clone(), Arc::clone(&held_notice));
                    let tracked = TrackedCall { call, told, last, held: None, held_notice };
                    calls.tracked.insert(token.clone(), tracked);
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
        ProgressGuard { progress: Arc::clone(self), token, held_notice }
    }

    /// How many calls wait for an answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.calls().tracked.len()
    }

    /// Passes a notification on, or holds it for a moment if its call has had many.
    pub(crate) fn deliver(&self, progress: &ProgressNotificationParam) {
        if progress.message.as_ref().is_some_and(|message| message.len() > MESSAGE_BYTES_MAX) {
            let mut without = progress.clone();
            without.message = None;
            return self.deliver(&without);
        }
        let call = {
            let mut calls = self.calls();
            let Some(tracked) = calls.tracked.get_mut(&progress.progress_token) else {
                if calls.early.len() == EARLY_MAX {
                    calls.early.pop_front();
                }
                calls.early.push_back(progress.clone());
                return;
            };
            let too_soon = || tracked.last.is_some_and(|last| last.elapsed() < INTERVAL);
            if tracked.told >= BURST && too_soon() {
                tracked.held = Some(progress.clone());
                tracked.held_notice.notify_one();
                return;
            }
            tracked.is_told()
        };
        tell(&call, progress);
    }

    /// Passes on the notification that is held back for a call.
    fn deliver_held(&self, token: &ProgressToken) {
        let held = {
            let mut calls = self.calls();
            let Some(tracked) = calls.tracked.get_mut(token) else { return };
            let Some(held) = tracked.held.take() else { return };
            (tracked.is_told(), held)
        };
        tell(&held.0, &held.1);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    /// Takes out the notifications of a call that came before it was tracked.
    fn take_early(&mut self, token: &ProgressToken) -> VecDeque<ProgressNotificationParam> {
        let (early, others) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|notification| notification.progress_token == *token);
        self.early = others;
        early
    }
}

impl TrackedCall {
    /// Notes that a notification is passed on now. An older one that was held back is dropped.
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
        let tip: String =
            visible(&call.masked(message.clone())).chars().take(MESSAGE_MAX).collect();
        update = update.with_tip(tip);
    }
    call.status(update);
}

impl ProgressGuard {
    /// Waits for the answer of the call. All progress that came before it has been passed on by
    /// then.
    pub(crate) async fn beside<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        loop {
            let due = async {
                self.held_notice.notified().await;
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

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        self.progress.calls().tracked.remove(&self.token);
    }
}

/// A transport that passes progress on in the order in which it is read.
///
/// The protocol library handles each notification in a task of its own but completes a request
/// immediately: progress that arrived before a result could be handled after it, when nobody
/// listens any more.
pub(crate) struct OrderedProgress<T> {
    pub(crate) inner: T,
    pub(crate) progress: Arc<Progress>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for OrderedProgress<T> {
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
    struct RecordedMessages(Arc<Mutex<Vec<String>>>);

    impl CallHost for RecordedMessages {
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
    fn early_progress_is_not_lost() {
        let progress = Arc::new(Progress::default());
        let token = |number| ProgressToken(NumberOrString::Number(number));
        progress.deliver(&told(&token(1), "early"));
        progress.deliver(&told(&token(2), "of another call"));
        let heard = RecordedMessages::default();
        let all = Arc::clone(&heard.0);
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let call = CallContext::builder("c", definition).host(Arc::new(heard)).build();
        let _following = progress.track(token(1), &call);
        assert_eq!(*all.lock().unwrap(), ["early"]);
        assert_eq!(progress.in_flight(), 1);
        for number in 0..1_000 {
            progress.deliver(&told(&token(3 + number), "late"));
        }
        assert_eq!(progress.calls().early.len(), EARLY_MAX, "what is kept is bounded");
    }

    /// Sends the next notification while the first one is being handled.
    struct InterleavedListener {
        heard: RecordedMessages,
        progress: Arc<Progress>,
        next: Mutex<Option<ProgressNotificationParam>>,
    }

    impl CallHost for InterleavedListener {
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
    fn newer_progress_does_not_overtake_early_progress() {
        let progress = Arc::new(Progress::default());
        let token = ProgressToken(NumberOrString::Number(1));
        progress.deliver(&told(&token, "one"));
        progress.deliver(&told(&token, "two"));
        let heard = RecordedMessages::default();
        let all = Arc::clone(&heard.0);
        let next = Mutex::new(Some(told(&token, "three")));
        let host = InterleavedListener { heard, progress: Arc::clone(&progress), next };
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let call = CallContext::builder("c", definition).host(Arc::new(host)).build();
        let _following = progress.track(token, &call);
        assert_eq!(*all.lock().unwrap(), ["one", "two", "three"]);
    }

    fn tracked(
        progress: &Arc<Progress>,
        token: &ProgressToken,
    ) -> (ProgressGuard, Arc<Mutex<Vec<String>>>) {
        let heard = RecordedMessages::default();
        let all = Arc::clone(&heard.0);
        let definition = ToolDefinition::builder("t").description("d").build().unwrap();
        let call = CallContext::builder("c", definition).host(Arc::new(heard)).build();
        (progress.track(token.clone(), &call), all)
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_notification_of_a_flood_comes_before_the_answer() {
        let progress = Arc::new(Progress::default());
        let token = ProgressToken(NumberOrString::Number(1));
        let (following, heard) = tracked(&progress, &token);
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
    async fn held_progress_is_passed_on_when_the_server_falls_silent() {
        let progress = Arc::new(Progress::default());
        let token = ProgressToken(NumberOrString::Number(1));
        let (following, heard) = tracked(&progress, &token);
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
