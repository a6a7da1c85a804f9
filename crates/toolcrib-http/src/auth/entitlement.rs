//! What a token currently entitles its client to; a reload can change it while requests run.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task_local;
use toolcrib_core::policy::Policy;
use toolcrib_core::{Executor, Turn, TurnOptions};

use crate::Right;
use crate::settings::ClientConfig;

/// What the holder of a token may do at one time.
#[derive(Debug)]
pub(crate) struct Entitlement {
    /// `None` if the token was revoked.
    rights: Option<Vec<Right>>,
    /// The options of its turns.
    turn: TurnOptions,
    /// The client's own rules and context values, which are also part of the turn options.
    rules: Value,
    context: Value,
    executor: Executor,
}

/// Notifies everything that one token has started of changes to its entitlement. It lives as long
/// as the token is valid, across all changes of its client's entry.
#[derive(Debug)]
pub(crate) struct Authority(watch::Sender<Arc<Entitlement>>);

/// A running request with the entitlement that admitted it.
#[derive(Debug, Clone)]
pub(crate) struct AdmittedRequest {
    right: Right,
    /// The only tool that it calls, if that is known.
    tool: Option<Arc<str>>,
    admitted_with: Arc<Entitlement>,
    now: watch::Receiver<Arc<Entitlement>>,
}

/// Why a running request may not continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntitlementLost {
    /// The token was revoked.
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
    /// The client may call fewer tools than before.
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

    /// Whether the holder of the token has this right.
    pub(crate) fn has(&self, right: Right) -> bool {
        self.rights.as_ref().is_some_and(|rights| rights.contains(&right))
    }

    /// Whether calls use the same tools, rules and values, so that sessions can continue.
    pub(crate) fn has_same_calls(&self, other: &Self) -> bool {
        self.has(Right::Call) == other.has(Right::Call)
            && self.has(Right::Approve) == other.has(Right::Approve)
            && (&self.rules, &self.context) == (&other.rules, &other.context)
            && self.turn.own_toolset() == other.turn.own_toolset()
    }

    /// Whether its holder may make all calls of the other's holder, and in the same way. Only then may the one tell what
    /// the other works on what to do.
    pub(crate) fn allows_calls_of(&self, other: &Self) -> bool {
        let toolset = self.turn.own_toolset();
        self.has(Right::Call)
            && (self.has_no_rules() || self.rules == other.rules)
            && (toolset.is_none() || toolset == other.turn.own_toolset())
            && self.injected() == other.injected()
    }

    /// Whether nothing but the server's own settings limits or changes its calls.
    pub(crate) fn allows_every_call(&self) -> bool {
        self.has(Right::Call)
            && self.has_no_rules()
            && self.turn.own_toolset().is_none()
            && self.injected().is_empty()
    }

    fn has_no_rules(&self) -> bool {
        self.rules == json!(Policy::default())
    }

    /// The context values of its own, without those that name whose calls they are.
    fn injected(&self) -> Vec<(&String, &Value)> {
        let own = self.context.as_object().into_iter().flatten();
        own.filter(|(name, _)| !["user", "tenant"].contains(&name.as_str())).collect()
    }

    /// Whether the other entitlement includes every right of this one.
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

    /// Admits a request of a client with this entitlement.
    pub(crate) fn enter(
        &self,
        admitted_with: &Arc<Entitlement>,
        right: Right,
        tool: Option<Arc<str>>,
    ) -> AdmittedRequest {
        AdmittedRequest {
            right,
            tool,
            admitted_with: Arc::clone(admitted_with),
            now: self.0.subscribe(),
        }
    }

    /// Replaces the entitlement. Running requests that it does not cover end.
    pub(crate) fn set(&self, entitlement: &Arc<Entitlement>) {
        self.0.send_if_modified(|now| {
            let is_new = !Arc::ptr_eq(now, entitlement);
            *now = Arc::clone(entitlement);
            is_new
        });
    }

    /// Ends everything that the token has started.
    pub(crate) fn revoke(&self) {
        self.0.send_modify(|now| *now = Arc::new(now.revoked()));
    }
}

/// Marks calls as revoked when the work of a request is dropped because the request may not
/// continue.
struct RevokeWhenDropped<'a> {
    turn: &'a Turn,
    admitted: &'a AdmittedRequest,
}

impl Drop for RevokeWhenDropped<'_> {
    fn drop(&mut self) {
        if self.admitted.has_ended() {
            self.turn.revoke();
        }
    }
}

task_local! {
    static CURRENT: AdmittedRequest;
}

impl AdmittedRequest {
    /// Runs the answer to an admitted request. Work that continues without the request still
    /// [ends](Self::withdraw_if_ended) with its entitlement.
    pub(crate) async fn during<T>(self, answer: impl Future<Output = T>) -> T {
        CURRENT.scope(self, answer).await
    }

    /// The entitlement of the current request, if it needed a right.
    pub(crate) fn of_this_request() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// What the client was entitled to when the request was admitted.
    pub(crate) fn admitted_with(&self) -> &Arc<Entitlement> {
        &self.admitted_with
    }

    /// Runs calls in a turn. When the request may not continue, running calls are cancelled and
    /// calls that have not started never start; the work ends with what is known of each.
    pub(crate) async fn withdraw_if_ended<T>(turn: &Turn, work: impl Future<Output = T>) -> T {
        let Some(admitted) = Self::of_this_request() else { return work.await };
        let mut work = std::pin::pin!(work);
        // Dropped before the work, which then knows the reason.
        let _revoke = RevokeWhenDropped { turn, admitted: &admitted };
        tokio::select! {
            biased;
            _ = admitted.clone().ended() => {
                turn.revoke();
                work.await
            }
            done = &mut work => done,
        }
    }

    /// Whether the request may no longer continue.
    fn has_ended(&self) -> bool {
        self.held_against(&self.now.borrow()).is_some()
    }

    /// Waits until the request may not continue, and returns the reason. Never completes if the
    /// entitlement does not change.
    pub(crate) async fn ended(mut self) -> EntitlementLost {
        loop {
            let now = Arc::clone(&self.now.borrow_and_update());
            if let Some(ended) = self.held_against(&now) {
                return ended;
            }
            if self.now.changed().await.is_err() {
                // Nobody is left who could change the entitlement.
                return std::future::pending().await;
            }
        }
    }

    fn held_against(&self, now: &Entitlement) -> Option<EntitlementLost> {
        if now.rights.is_none() {
            Some(EntitlementLost::Revoked)
        } else if !now.has(self.right) {
            Some(EntitlementLost::Right(self.right))
        } else if self.right == Right::Call && !self.may_still_call(now) {
            Some(EntitlementLost::Calls)
        } else {
            None
        }
    }

    /// Whether all calls that the request may be making are still allowed. If these are unknown,
    /// any narrowing counts.
    fn may_still_call(&self, now: &Entitlement) -> bool {
        let admitted_with = &*self.admitted_with;
        let same_rules = now.has_no_rules() || now.rules == admitted_with.rules;
        let toolset = now.turn.own_toolset();
        let has_tool =
            |tool: &Arc<str>| now.executor.turn(now.turn.clone()).describe(tool).is_some();
        let in_toolset = toolset.is_none()
            || toolset == admitted_with.turn.own_toolset()
            || self.tool.as_ref().is_some_and(has_tool);
        now.context == admitted_with.context && same_rules && in_toolset
    }
}
