//! Joining: if the same call is made again while the first one waits, it is not started a second
//! time.

use toolcrib_tool::ToolCall;

use crate::arguments::corrections::Corrections;
use crate::call::pipeline::checked;
use crate::call::turn::Turn;
use crate::identity::fingerprint::Fingerprint;
use crate::suspension::{Answer, CallKey, Caller, Outcome, Suspension};

impl Turn {
    /// The answer of the same call, made before, that was running here when it began to wait.
    /// `None` if there is none, or if its answer was already taken.
    pub(crate) async fn joined(&self, call: &ToolCall) -> Option<Answer> {
        let (state, living) = (&self.state, &self.state.shared.live_calls);
        if !state.joinable || !living.any_joinable() {
            return None;
        }
        let key = self.call_key(call)?;
        let mut earlier = living.joinable(key)?;
        // If the store fails, the call is made again.
        let store = state.shared.suspensions.as_ref()?;
        while let Some(settled) = store.settled(earlier.id()).await.ok()? {
            match settled.outcome() {
                Outcome::Running => return Some(self.join(earlier)),
                Outcome::Waits(next) => earlier = (**next).clone(),
                Outcome::Done(result) => {
                    living.forget(key);
                    let taken = store.take_settled(earlier.id()).await.ok()?;
                    return taken.map(|_| Answer::Done((**result).clone()));
                }
            }
        }
        if store.find(earlier.id()).await.ok()?.is_some() {
            return Some(self.join(earlier));
        }
        living.forget(key);
        None
    }

    fn join(&self, earlier: Suspension) -> Answer {
        // A turn that joins several calls refers to the first of them.
        let _ = self.state.joined.set(earlier.id().clone());
        Answer::Suspended(Box::new(earlier))
    }

    /// The key of a valid call; `None` for one that would be refused.
    fn call_key(&self, call: &ToolCall) -> Option<Fingerprint> {
        let state = &self.state;
        let slot = state.slot(call.name())?;
        let raw = call.arguments().clone();
        let checked = checked(self, slot, raw, &mut Corrections::default()).ok()?;
        let key = CallKey {
            definition: slot.fingerprint(),
            arguments: Fingerprint::of_arguments(&checked.arguments),
            values: Caller::new(&slot.entry.definition, &state.values).values_digest(),
            identity: &state.identity,
            session: state.session.as_deref(),
            client: state.client.as_deref(),
            client_key: state.client_key.as_deref(),
        };
        Some(key.digest())
    }
}
