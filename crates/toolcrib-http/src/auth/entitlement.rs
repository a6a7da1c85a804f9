//! What a token entitles its client to, as it is now: a reload can take it away while requests run.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task_local;
use toolcrib_core::policy::Policy;
use toolcrib_core::{Executor, Turn, TurnOptions};

use crate::Right;
use crate::settings::ClientConfig;

/// What the holder of a token may do at one moment.
#[derive(Debug)]
pub(crate) struct Entitlement {
    /// `None` once the token is none of the server's any more.
    rights: Option<Vec<Right>>,
    /// What its turns are opened with.
    turn: TurnOptions,
    /// The client's own rules and context values, which the turn has as well.
    rules: Value,
    context: Value,
    executor: Executor,
}

/// Tells everything that one token let in what the token entitles to now. It lasts as long as the token
/// is good, through all changes of its client's entry.
#[derive(Debug)]
pub(crate) struct Authority(watch::Sender<Arc<Entitlement>>);

/// Something that a token let in, with what the token entitled to at that moment.
#[derive(Debug, Clone)]
pub(crate) struct Entered {
    right: Right,
    /// The one tool that it calls, if it is known to call no other.
    tool: Option<Arc<str>>,
    then: Arc<Entitlement>,
    now: watch::Receiver<Arc<Entitlement>>,
}

/// Why something that a token let in may not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ended {
    /// The token is none of the server's any more.
    #[error(
        "the token was revoked while this request was being answered: use one that the server knows"
    )]
    Revoked,
    /// The client has lost the right that the request needs.
    #[error(
        "this client lost the right `{}` while its request was being answered: a reload of the config \
         narrowed the rights of its token",
        .0.as_str()
    )]
    Right(Right),
    /// The client may call less than before.
    #[error(
        "a reload of the config changed what this client may call while its request was being answered, \
         and the request may need more than that: see what was done, and make it again if it is allowed"
    )]
    Calls,
}

impl Entitlement {
    pub(crate) fn new(
        rights: Vec<Right>,
        turn: TurnOptions,
        own: Option<&ClientConfig>,
        executor: Executor,
    ) -> Self {
        let rules = own.map_or_else(|| json!(Policy::default()), |own| json!(own.policy));
        let context = own.map_or(Value::Null, |own| json!(own.context));
        Self { rights: Some(rights), turn, rules, context, executor }
    }

    /// Whether the holder of a token has this right.
    pub(crate) fn has(&self, right: Right) -> bool {
        self.rights.as_ref().is_some_and(|rights| rights.contains(&right))
    }

    /// Whether calls are made with the same tools, rules and values, so that sessions can go on.
    pub(crate) fn has_same_calls(&self, other: &Self) -> bool {
        self.has(Right::Call) == other.has(Right::Call)
            && self.has(Right::Approve) == other.has(Right::Approve)
            && (&self.rules, &self.context) == (&other.rules, &other.context)
            && self.turn.own_toolset() == other.turn.own_toolset()
    }

    /// Whether the other has every right that this one has.
    pub(crate) fn is_covered_by(&self, other: &Self) -> bool {
        self.rights.iter().flatten().all(|right| other.has(*right))
    }

    fn revoked(&self) -> Self {
        Self {
            rights: None,
            turn: self.turn.clone(),
            rules: self.rules.clone(),
            context: self.context.clone(),
            executor: self.executor.clone(),
        }
    }
}

impl Authority {
    pub(crate) fn new(entitlement: &Arc<Entitlement>) -> Self {
        Self(watch::Sender::new(Arc::clone(entitlement)))
    }

    /// Lets something in that a client with this entitlement asks for.
    pub(crate) fn enter(
        &self,
        then: &Arc<Entitlement>,
        right: Right,
        tool: Option<Arc<str>>,
    ) -> Entered {
        Entered { right, tool, then: Arc::clone(then), now: self.0.subscribe() }
    }

    /// Replaces what the token entitles to. What was let in and is not covered any more ends.
    pub(crate) fn set(&self, entitlement: &Arc<Entitlement>) {
        self.0.send_if_modified(|now| {
            let is_new = !Arc::ptr_eq(now, entitlement);
            *now = Arc::clone(entitlement);
            is_new
        });
    }

    /// Ends everything that the token let in.
    pub(crate) fn revoke(&self) {
        self.0.send_modify(|now| *now = Arc::new(now.revoked()));
    }
}

/// Whoever answers a request that may not go on drops its work: the calls are ended for that reason.
struct RevokeWhenDropped<'a> {
    turn: &'a Turn,
    entered: &'a Entered,
}

impl Drop for RevokeWhenDropped<'_> {
    fn drop(&mut self) {
        if self.entered.has_ended() {
            self.turn.revoke();
        }
    }
}

task_local! {
    static OWN: Entered;
}

impl Entered {
    /// Answers the request that was let in. Where its work goes on without it, that work
    /// [ends](Self::withdraw_if_ended) with what let it in all the same.
    pub(crate) async fn during<T>(self, answer: impl Future<Output = T>) -> T {
        OWN.scope(self, answer).await
    }

    /// What let the request in that is being answered, if it needed a right.
    pub(crate) fn of_this_request() -> Option<Self> {
        OWN.try_with(Self::clone).ok()
    }

    /// Does the work of calls in a turn. Once the request may not go on, calls that run are cancelled, and
    /// those that have not begun never begin; the work ends with what is then known of each.
    pub(crate) async fn withdraw_if_ended<T>(turn: &Turn, work: impl Future<Output = T>) -> T {
        let Some(entered) = Self::of_this_request() else { return work.await };
        let mut work = std::pin::pin!(work);
        // Dropped before the work is, which then knows why.
        let _revoke = RevokeWhenDropped { turn, entered: &entered };
        tokio::select! {
            biased;
            _ = entered.clone().ended() => {
                turn.revoke();
                work.await
            }
            done = &mut work => done,
        }
    }

    /// Whether it may not go on any more.
    fn has_ended(&self) -> bool {
        self.held_against(&self.now.borrow()).is_some()
    }

    /// Waits until it may not go on, and says why. Waits for ever where nothing is taken away.
    pub(crate) async fn ended(mut self) -> Ended {
        loop {
            let now = Arc::clone(&self.now.borrow_and_update());
            if let Some(ended) = self.held_against(&now) {
                return ended;
            }
            if self.now.changed().await.is_err() {
                // Nobody is left who could take anything away.
                return std::future::pending().await;
            }
        }
    }

    fn held_against(&self, now: &Entitlement) -> Option<Ended> {
        if now.rights.is_none() {
            Some(Ended::Revoked)
        } else if !now.has(self.right) {
            Some(Ended::Right(self.right))
        } else if self.right == Right::Call && !self.may_still_call(now) {
            Some(Ended::Calls)
        } else {
            None
        }
    }

    /// Whether every call that the request may be making is still allowed. Where it is not known which
    /// calls these are, what was narrowed at all counts as narrowed for them.
    fn may_still_call(&self, now: &Entitlement) -> bool {
        let then = &*self.then;
        let same_rules = now.rules == then.rules || now.rules == json!(Policy::default());
        let toolset = now.turn.own_toolset();
        let has_tool =
            |tool: &Arc<str>| now.executor.turn(now.turn.clone()).describe(tool).is_some();
        let in_toolset = toolset.is_none()
            || toolset == then.turn.own_toolset()
            || self.tool.as_ref().is_some_and(has_tool);
        now.context == then.context && same_rules && in_toolset
    }
}
