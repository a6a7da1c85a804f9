//! Progress of calls, from the server to whoever watches them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use toolcrib_tool::{CallContext, StatusUpdate, visible};

/// A call's progress is told at most this often: a server that floods it slows nobody down.
const INTERVAL: Duration = Duration::from_millis(50);
/// How much is kept of what is told before its call is followed.
const EARLY_MAX: usize = 16;
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
    early: VecDeque<(Instant, ProgressNotificationParam)>,
}

#[derive(Debug)]
struct Followed {
    call: CallContext,
    told: Option<Instant>,
}

/// Ends the following of a call when it is dropped.
pub(crate) struct Following {
    progress: Arc<Progress>,
    token: ProgressToken,
}

impl Progress {
    /// Tells whoever watches the call of the progress with this token.
    pub(crate) fn follow(self: &Arc<Self>, token: ProgressToken, call: CallContext) -> Following {
        let early = {
            let mut calls = self.calls();
            calls.followed.insert(token.clone(), Followed { call, told: None });
            let (early, others) = std::mem::take(&mut calls.early)
                .into_iter()
                .partition::<VecDeque<_>, _>(|(_, told)| told.progress_token == token);
            calls.early = others;
            early
        };
        for (at, told) in &early {
            self.deliver_of(*at, told);
        }
        Following { progress: Arc::clone(self), token }
    }

    /// How many calls wait for an answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.calls().followed.len()
    }

    pub(crate) fn deliver(&self, progress: &ProgressNotificationParam) {
        self.deliver_of(Instant::now(), progress);
    }

    fn deliver_of(&self, at: Instant, progress: &ProgressNotificationParam) {
        let call = {
            let mut calls = self.calls();
            let Some(followed) = calls.followed.get_mut(&progress.progress_token) else {
                if calls.early.len() == EARLY_MAX {
                    calls.early.pop_front();
                }
                calls.early.push_back((at, progress.clone()));
                return;
            };
            if followed.told.is_some_and(|told| at.saturating_duration_since(told) < INTERVAL) {
                return;
            }
            followed.told = Some(at);
            followed.call.clone()
        };
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

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.progress.calls().followed.remove(&self.token);
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
        let call = CallContext::builder("c", definition).host(heard).build();
        let _following = progress.follow(token(1), call);
        assert_eq!(*all.lock().unwrap(), ["early"]);
        assert_eq!(progress.in_flight(), 1);
        for number in 0..100 {
            progress.deliver(&told(&token(3 + number), "late"));
        }
        assert_eq!(progress.calls().early.len(), EARLY_MAX, "what is kept is bounded");
    }
}
