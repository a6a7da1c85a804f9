//! One run for all who ask the same at the same time.
//!
//! The first call leads, the others follow and get its answer. A leader that ends without an
//! answer of use to others (cancelled, out of time, refused a permit) hands over to the follower
//! that has waited longest, so that one call's bad luck is never another's.
//!
//! Who leads one flight of a table must not follow in the same table, or two could wait for each
//! other: calls made from inside a running tool do not join.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hashbrown::HashMap;
use toolcrib_tool::{ErrorKind, ToolError, ToolOutput};

use super::key::CacheKey;
use super::spill_memo::SpillMemo;
use crate::cache::resource_versions::ResourceVersion;

/// How a call ended, for all who asked.
pub(crate) type SharedOutcome = Result<Arc<ToolOutput>, Arc<ToolError>>;

/// Whether those who already wait get the outcome of the one that ran.
///
/// What the tool itself did with these arguments, yes. What befell the one call on its way, or may
/// not befall the next, no.
pub(crate) fn is_shared(outcome: &SharedOutcome) -> bool {
    match outcome {
        Ok(_) => true,
        Err(error) => matches!(
            error.kind(),
            ErrorKind::Execution
                | ErrorKind::OutcomeUnknown
                | ErrorKind::Panic
                | ErrorKind::InvalidOutput
                | ErrorKind::InvalidArgs
                | ErrorKind::Constraint
        ),
    }
}

/// The calls under way. Cloning it is cheap; clones share them.
#[derive(Clone)]
pub(crate) struct Flights(Arc<FlightTable>);

struct FlightTable {
    open: Mutex<HashMap<FlightKey, Arc<Flight>>>,
    keeps_landed: bool,
}

/// Who asks after a write must not get the answer of a read that began before it: calls share a
/// flight only if what they read was in the same state when they began.
type FlightKey = (CacheKey, ResourceVersion);

struct Flight {
    key: FlightKey,
    state: Mutex<FlightState>,
}

/// An outcome, and where its text was spilled.
type FlightResult = (SharedOutcome, Arc<SpillMemo>);

#[derive(Default)]
struct FlightState {
    is_led: bool,
    outcome: Option<FlightResult>,
    /// The leader has an outcome that depends on more than the call: each follower runs for itself.
    unshared: bool,
    /// Followers by their ticket, and so in the order they came; the waker of those that wait to
    /// be woken.
    followers: BTreeMap<u64, Option<Waker>>,
    next_ticket: u64,
}

/// What part a call has.
#[derive(Debug)]
pub(crate) enum Role {
    /// It runs, and owes the others an answer.
    Leader(Leader),
    /// It waits for the one that runs.
    Follower(Follower),
}

/// What a follower's wait ends with.
#[derive(Debug)]
pub(crate) enum FollowerResult {
    /// The leader's outcome, and where its text was spilled if it was too long for its callers.
    Answer(SharedOutcome, Arc<SpillMemo>),
    /// There is none to be had: this call runs in the leader's place.
    Lead(Leader),
    /// There is one, which is the leader's alone: this call runs for itself, beside the others.
    Alone,
}

impl Flights {
    /// Flights that are forgotten when they land.
    pub(crate) fn new() -> Self {
        Self::with(false)
    }

    /// Flights whose outcome is there for whoever asks later, as long as this table lives: for one
    /// batch, all of whose calls were asked at once, in whatever order they come to run.
    pub(crate) fn for_batch() -> Self {
        Self::with(true)
    }

    fn with(keeps_landed: bool) -> Self {
        Self(Arc::new(FlightTable { open: Mutex::default(), keeps_landed }))
    }

    /// Joins the flight of a call, or starts it. `version` is the state of what the call reads.
    pub(crate) fn join(&self, key: &CacheKey, version: ResourceVersion) -> Role {
        let key = (key.clone(), version);
        let mut open = lock(&self.0.open);
        if let Some(flight) = open.get(&key) {
            let flight = Arc::clone(flight);
            let mut state = lock(&flight.state);
            if state.outcome.is_some() || state.unshared || state.is_led {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.followers.insert(ticket, None);
                drop(state);
                return Role::Follower(Follower(Some(FollowerTicket {
                    table: self.clone(),
                    flight,
                    ticket,
                })));
            }
            // The one that was woken to lead has not got to it yet; this call is awake.
            state.is_led = true;
            drop(state);
            return Role::Leader(Leader(Some((self.clone(), flight))));
        }
        let state = FlightState { is_led: true, ..FlightState::default() };
        let flight = Arc::new(Flight { key: key.clone(), state: Mutex::new(state) });
        open.insert(key, Arc::clone(&flight));
        Role::Leader(Leader(Some((self.clone(), flight))))
    }

    /// How many flights are known: those under way, and those kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0.open).len()
    }

    /// Ends a flight with an outcome for everybody, or with none that could be shared.
    fn land(&self, flight: &Flight, outcome: Option<FlightResult>) {
        let mut open = lock(&self.0.open);
        let mut state = lock(&flight.state);
        state.unshared = outcome.is_none();
        let unshared = state.unshared;
        state.outcome = outcome;
        state.is_led = false;
        let waiting: Vec<_> = state.followers.values_mut().filter_map(Option::take).collect();
        drop(state);
        if !self.0.keeps_landed || unshared {
            open.remove(&flight.key);
        }
        drop(open);
        for waker in waiting {
            waker.wake();
        }
    }

    /// Somebody has left: `leave` says who. If nobody leads and there is no outcome, the follower
    /// that has waited longest is woken to lead; if there is none, the flight is over.
    fn hand_over(&self, flight: &Flight, leave: impl FnOnce(&mut FlightState)) {
        let mut open = lock(&self.0.open);
        let mut state = lock(&flight.state);
        leave(&mut state);
        if state.is_led || state.outcome.is_some() || state.unshared {
            return;
        }
        // Those that have not been asked yet whether they are ready will see for themselves.
        let heir = state.followers.values_mut().find_map(Option::take);
        let is_over = state.followers.is_empty();
        drop(state);
        if is_over {
            open.remove(&flight.key);
        }
        drop(open);
        if let Some(heir) = heir {
            heir.wake();
        }
    }
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights").field("open", &lock(&self.0.open).len()).finish_non_exhaustive()
    }
}

/// Always the table before a flight. Nothing of the caller's runs under either: neither a waker
/// nor a destructor of an outcome.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The duty to run the call. Dropped without [`publish`](Self::publish), it goes to a follower.
#[must_use = "the others wait for what this call comes to"]
pub(crate) struct Leader(Option<(Flights, Arc<Flight>)>);

impl Leader {
    /// Gives the outcome to all who wait, unless it is this call's alone: then one of them runs. All
    /// share what is remembered of its spill.
    pub(crate) fn publish(mut self, outcome: &SharedOutcome, spilled: &Arc<SpillMemo>) {
        if is_shared(outcome)
            && let Some((flights, flight)) = self.0.take()
        {
            flights.land(&flight, Some((outcome.clone(), Arc::clone(spilled))));
        }
    }

    /// Says that the outcome is this call's alone: those who wait run for themselves.
    pub(crate) fn keep_to_itself(mut self) {
        if let Some((flights, flight)) = self.0.take() {
            flights.land(&flight, None);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Some((flights, flight)) = self.0.take() {
            flights.hand_over(&flight, |state| state.is_led = false);
        }
    }
}

impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Leader")
    }
}

/// The wait for another call's outcome. Dropping it affects nobody.
#[must_use = "the wait happens when this is awaited"]
pub(crate) struct Follower(Option<FollowerTicket>);

struct FollowerTicket {
    table: Flights,
    flight: Arc<Flight>,
    ticket: u64,
}

impl Future for Follower {
    type Output = FollowerResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<FollowerResult> {
        let Some(seat) = self.0.take() else {
            // Asked again after the answer, as a future must not be: there is nothing to wait for.
            return Poll::Pending;
        };
        let mut state = lock(&seat.flight.state);
        if let Some((outcome, spilled)) = state.outcome.clone() {
            state.followers.remove(&seat.ticket);
            return Poll::Ready(FollowerResult::Answer(outcome, spilled));
        }
        if state.unshared {
            state.followers.remove(&seat.ticket);
            return Poll::Ready(FollowerResult::Alone);
        }
        if !state.is_led {
            state.followers.remove(&seat.ticket);
            state.is_led = true;
            drop(state);
            let FollowerTicket { table, flight, .. } = seat;
            return Poll::Ready(FollowerResult::Lead(Leader(Some((table, flight)))));
        }
        let outdated = state.followers.insert(seat.ticket, Some(cx.waker().clone()));
        drop(state);
        drop(outdated);
        self.0 = Some(seat);
        Poll::Pending
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(FollowerTicket { table, flight, ticket }) = self.0.take() {
            // It may have been woken to lead, which then falls to the next.
            let mut own = None;
            table.hand_over(&flight, |state| own = state.followers.remove(&ticket));
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("ticket", &self.0.as_ref().map(|seat| seat.ticket))
            .finish_non_exhaustive()
    }
}
