//! Single flight: one run for all concurrent calls with the same key.
//!
//! The first call is the leader, the others follow and get its answer. A leader that ends without a
//! usable answer (cancelled, timed out, no permit) hands over to the follower that has waited
//! longest, so that its failure does not affect the others.
//!
//! A leader must not follow another flight of the same table, or two could wait for each other:
//! nested calls do not join.

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

/// The outcome of a call, shared by all its followers.
pub(crate) type SharedOutcome = Result<Arc<ToolOutput>, Arc<ToolError>>;

/// Whether waiting followers get the leader's outcome.
///
/// Yes for what the tool itself did with these arguments. No for failures of this one call that
/// another call may not have.
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

/// The running flights. Cloning it is cheap; clones share the table.
#[derive(Clone)]
pub(crate) struct Flights(Arc<FlightTable>);

struct FlightTable {
    open: Mutex<HashMap<FlightKey, Arc<Flight>>>,
    keeps_landed: bool,
}

/// A call after a write must not get the answer of a read that began before it: calls share a
/// flight only if the resources they read had the same version when they began.
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
    /// Followers by ticket, which is the order of arrival, each with its waker if it is waiting.
    followers: BTreeMap<u64, Option<Waker>>,
    next_ticket: u64,
}

/// The role of a call in its flight.
#[derive(Debug)]
pub(crate) enum Role {
    /// It runs, and has to publish its outcome.
    Leader(Leader),
    /// It waits for the leader.
    Follower(Follower),
}

/// How a follower's wait ends.
#[derive(Debug)]
pub(crate) enum FollowerResult {
    /// The leader's outcome, and where its text was spilled if it was too long for its callers.
    Answer(SharedOutcome, Arc<SpillMemo>),
    /// The leader had no usable outcome: this call takes its place.
    Lead(Leader),
    /// The outcome cannot be shared: this call runs for itself.
    Alone,
}

impl Flights {
    /// A table that forgets flights when they end.
    pub(crate) fn new() -> Self {
        Self::with(false)
    }

    /// A table that keeps outcomes for later calls as long as it lives: for one batch, whose calls
    /// count as concurrent in whatever order they run.
    pub(crate) fn for_batch() -> Self {
        Self::with(true)
    }

    fn with(keeps_landed: bool) -> Self {
        Self(Arc::new(FlightTable { open: Mutex::default(), keeps_landed }))
    }

    /// Joins the flight of a call, or starts it. `version` is that of the resources the call reads.
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
            // The follower that was woken to lead has not run yet; this call leads instead.
            state.is_led = true;
            drop(state);
            return Role::Leader(Leader(Some((self.clone(), flight))));
        }
        let state = FlightState { is_led: true, ..FlightState::default() };
        let flight = Arc::new(Flight { key: key.clone(), state: Mutex::new(state) });
        open.insert(key, Arc::clone(&flight));
        Role::Leader(Leader(Some((self.clone(), flight))))
    }

    /// The number of flights in the table.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0.open).len()
    }

    /// Ends a flight with an outcome for all followers, or with none that can be shared.
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

    /// Removes a leader or follower with `leave`. If there is neither a leader nor an outcome, the
    /// follower that has waited longest is woken to lead; without followers the flight ends.
    fn hand_over(&self, flight: &Flight, leave: impl FnOnce(&mut FlightState)) {
        let mut open = lock(&self.0.open);
        let mut state = lock(&flight.state);
        leave(&mut state);
        if state.is_led || state.outcome.is_some() || state.unshared {
            return;
        }
        // Followers that were not polled yet check for themselves.
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

/// Lock order: the table before a flight. No foreign code runs under either lock, neither a waker
/// nor a destructor.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The duty to run the call. If it is dropped without [`publish`](Self::publish), a follower takes
/// over.
#[must_use = "followers wait for this call's outcome"]
pub(crate) struct Leader(Option<(Flights, Arc<Flight>)>);

impl Leader {
    /// Gives the outcome to all followers, or hands over to one of them if the outcome is not
    /// shared. All share the spill memo.
    pub(crate) fn publish(mut self, outcome: &SharedOutcome, spilled: &Arc<SpillMemo>) {
        if is_shared(outcome)
            && let Some((flights, flight)) = self.0.take()
        {
            flights.land(&flight, Some((outcome.clone(), Arc::clone(spilled))));
        }
    }

    /// Ends the flight without a shared outcome: each follower runs for itself.
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
            // Polled again after completion, which futures must not be.
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
            // It may have been woken to lead; then the next follower leads.
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
