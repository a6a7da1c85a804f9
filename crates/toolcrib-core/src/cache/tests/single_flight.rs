//! One run for all: who leads, who follows, and that nobody is forgotten.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use proptest::prelude::*;
use toolcrib_tool::ErrorKind;

use super::{AnswerCache, CacheKey, CacheLimits, Policies, failed, text};
use crate::cache::resource_versions::ResourceVersion;
use crate::cache::single_flight::{
    Flights, Follower, FollowerResult, Leader, Role, SharedOutcome, is_shared,
};

fn version() -> ResourceVersion {
    AnswerCache::new(CacheLimits::default()).version(&key())
}

fn key() -> CacheKey {
    Policies::cached().key("{}")
}

fn lead(flights: &Flights) -> Leader {
    match flights.join(&key(), version()) {
        Role::Leader(leader) => leader,
        Role::Follower(_) => panic!("somebody leads already"),
    }
}

fn follow(flights: &Flights) -> Follower {
    match flights.join(&key(), version()) {
        Role::Follower(follower) => follower,
        Role::Leader(_) => panic!("nobody leads"),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an outcome, beside those that fail")]
fn done(outcome: &str) -> SharedOutcome {
    Ok(text(outcome))
}

/// Joins and runs or waits, as a call does; the tool's work is `work`.
async fn call<W: Future<Output = SharedOutcome>>(
    flights: Flights,
    work: impl FnOnce() -> W,
) -> SharedOutcome {
    let landing = match flights.join(&key(), version()) {
        Role::Leader(leader) => FollowerResult::Lead(leader),
        Role::Follower(follower) => follower.await,
    };
    match landing {
        FollowerResult::Answer(outcome, _) => outcome,
        FollowerResult::Alone => work().await,
        FollowerResult::Lead(leader) => {
            let outcome = work().await;
            leader.publish(&outcome, &Arc::default());
            outcome
        }
    }
}

#[test]
fn what_the_tool_did_is_shared_and_what_befell_one_call_is_not() {
    let shared: Vec<_> =
        ErrorKind::ALL.iter().copied().filter(|kind| is_shared(&failed(*kind))).collect();
    assert_eq!(
        shared,
        [
            ErrorKind::InvalidArgs,
            ErrorKind::Constraint,
            ErrorKind::Panic,
            ErrorKind::Execution,
            ErrorKind::OutcomeUnknown,
            ErrorKind::InvalidOutput
        ]
    );
    assert!(is_shared(&done("yes")));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_leader_hands_over_to_one_and_all_are_answered() {
    let flights = Flights::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let start = |limit: Duration| {
        let (flights, runs) = (flights.clone(), Arc::clone(&runs));
        tokio::spawn(tokio::time::timeout(
            limit,
            call(flights, move || async move {
                runs.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(2)).await;
                done("at last")
            }),
        ))
    };
    let leader = start(Duration::from_secs(1));
    tokio::task::yield_now().await;
    let followers: Vec<_> = (0..1_000).map(|_| start(Duration::from_secs(60))).collect();
    assert!(leader.await.unwrap().is_err(), "it was given up");
    for follower in followers {
        assert_eq!(follower.await.unwrap().unwrap().unwrap().text(), "at last");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(flights.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_panics_hands_over() {
    let flights = Flights::new();
    let crashing = AssertUnwindSafe(call(flights.clone(), || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        panic!("on purpose")
    }));
    let crashing = tokio::spawn(crashing.catch_unwind());
    tokio::task::yield_now().await;
    let other = tokio::spawn(call(flights.clone(), || async { done("mine") }));
    assert!(crashing.await.unwrap().is_err());
    assert_eq!(other.await.unwrap().unwrap().text(), "mine");
    assert_eq!(flights.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_permit_error_or_timeout_stays_with_the_call_it_befell() {
    for kind in
        [ErrorKind::RateLimited, ErrorKind::Unavailable, ErrorKind::Timeout, ErrorKind::Cancelled]
    {
        let flights = Flights::new();
        let leader = lead(&flights);
        let (first, second) = (follow(&flights), follow(&flights));
        leader.publish(&failed(kind), &Arc::default());
        let FollowerResult::Lead(leader) = first.await else { panic!("{kind} was shared") };
        leader.publish(&failed(ErrorKind::Execution), &Arc::default());
        let FollowerResult::Answer(Err(error), _) = second.await else {
            panic!("the failure was not")
        };
        assert_eq!(error.kind(), ErrorKind::Execution);
        assert_eq!(flights.len(), 0);
    }
}

#[test]
fn a_follower_that_leaves_affects_nobody() {
    let flights = Flights::new();
    let leader = lead(&flights);
    let (gone, mut stays) = (follow(&flights), follow(&flights));
    drop(gone);
    assert!((&mut stays).now_or_never().is_none());
    leader.publish(&done("here"), &Arc::default());
    assert!(matches!(stays.now_or_never(), Some(FollowerResult::Answer(Ok(_), _))));
    assert_eq!(flights.len(), 0);
}

#[test]
fn an_heir_that_leaves_passes_it_on() {
    let flights = Flights::new();
    let leader = lead(&flights);
    let (first, second) = (Flag::default(), Flag::default());
    let (mut heir, mut next) = (follow(&flights), follow(&flights));
    assert!(first.poll(&mut heir).is_pending() && second.poll(&mut next).is_pending());
    drop(leader);
    assert!(first.is_up() && !second.is_up(), "exactly one is woken");
    drop(heir);
    assert!(second.is_up());
    assert!(matches!(second.poll(&mut next), Poll::Ready(FollowerResult::Lead(_))));
    assert_eq!(flights.len(), 0);
}

#[test]
fn a_flight_that_everybody_has_left_is_forgotten() {
    let flights = Flights::new();
    let leader = lead(&flights);
    let follower = follow(&flights);
    drop(leader);
    assert_eq!(flights.len(), 1);
    drop(follower);
    assert_eq!(flights.len(), 0);
}

#[test]
fn flights_of_other_calls_and_of_another_state_of_the_world_are_others() {
    let cache = AnswerCache::new(CacheLimits::default());
    let key = Policies::cached().reading("world").key("{}");
    let other = Policies::cached().reading("world").key(r#"{"a":1}"#);
    let flights = Flights::new();
    let join = |key: &CacheKey| flights.join(key, cache.version(key));
    let before = join(&key);
    assert!(matches!((&before, join(&key)), (Role::Leader(_), Role::Follower(_))));
    assert!(matches!(join(&other), Role::Leader(_)));
    cache.invalidate_resource("world");
    let after = join(&key);
    assert!(matches!(after, Role::Leader(_)));
    drop((before, after));
    assert_eq!(flights.len(), 0);
}

#[test]
fn a_batch_keeps_what_is_shared_for_those_who_come_late() {
    let flights = Flights::for_batch();
    lead(&flights).publish(&failed(ErrorKind::Timeout), &Arc::default());
    lead(&flights).publish(&done("once"), &Arc::default());
    for _ in 0..2 {
        let landing = follow(&flights).now_or_never();
        assert!(matches!(landing, Some(FollowerResult::Answer(Ok(_), _))));
    }
}

/// A waker that only notes that it was called.
#[derive(Clone, Default)]
struct Flag(Arc<Raised>);

#[derive(Default)]
struct Raised(AtomicBool);

impl Wake for Raised {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Flag {
    fn is_up(&self) -> bool {
        self.0.0.load(Ordering::SeqCst)
    }

    fn poll(&self, follower: &mut Follower) -> Poll<FollowerResult> {
        self.0.0.store(false, Ordering::SeqCst);
        follower.poll_unpin(&mut Context::from_waker(&Waker::from(Arc::clone(&self.0))))
    }
}

/// Where a call of the random schedule is.
enum Call {
    Following(Follower, Flag),
    Leading(Leader),
    Answered(String),
    Gone,
}

#[derive(Debug, Clone)]
enum FlightStep {
    Join,
    /// Polls a follower, woken or not.
    Poll(usize),
    /// Drops a call.
    Leave(usize),
    /// Ends a leader's work: 0 is a success, 1 a shared failure, 2 one of its own.
    Finish(usize, u8),
}

fn steps() -> impl Strategy<Value = Vec<FlightStep>> {
    let any_call = any::<usize>();
    prop::collection::vec(
        prop_oneof![
            4 => Just(FlightStep::Join),
            4 => any_call.prop_map(FlightStep::Poll),
            2 => any_call.prop_map(FlightStep::Leave),
            2 => (any_call, 0..3_u8).prop_map(|(call, how)| FlightStep::Finish(call, how)),
        ],
        0..60,
    )
}

struct Schedule {
    flights: Flights,
    calls: Vec<Call>,
    /// Numbers the outcomes, so that it can be told whose one got.
    finished: usize,
}

impl Schedule {
    /// Any number stands for a call, if there are any.
    fn pick(&self, number: usize) -> usize {
        number % self.calls.len().max(1)
    }

    fn take(&mut self, call: usize) -> Call {
        self.calls.get_mut(call).map_or(Call::Gone, |call| std::mem::replace(call, Call::Gone))
    }

    fn put(&mut self, call: usize, state: Call) {
        if let Some(slot) = self.calls.get_mut(call) {
            *slot = state;
        }
    }

    fn poll(&mut self, call: usize) {
        let state = match self.take(call) {
            Call::Following(mut follower, flag) => match flag.poll(&mut follower) {
                Poll::Pending => Call::Following(follower, flag),
                Poll::Ready(FollowerResult::Lead(leader)) => Call::Leading(leader),
                Poll::Ready(FollowerResult::Alone) => Call::Gone,
                Poll::Ready(FollowerResult::Answer(Ok(output), _)) => {
                    Call::Answered(output.text().into_owned())
                }
                Poll::Ready(FollowerResult::Answer(Err(error), _)) => {
                    Call::Answered(error.message().to_owned())
                }
            },
            other => other,
        };
        self.put(call, state);
    }

    fn finish(&mut self, call: usize, how: u8) {
        let state = match self.take(call) {
            Call::Leading(leader) => {
                self.finished += 1;
                let outcome = match how {
                    0 => done(&format!("outcome {}", self.finished)),
                    1 => failed(ErrorKind::Execution),
                    _ => failed(ErrorKind::Timeout),
                };
                leader.publish(&outcome, &Arc::default());
                Call::Gone
            }
            other => other,
        };
        self.put(call, state);
    }

    fn leaders(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call, Call::Leading(_))).count()
    }

    fn following(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call, Call::Following(..))).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn in_every_schedule_one_leads_at_most_and_all_who_stay_are_answered(steps in steps()) {
        let (key, version) = (key(), version());
        let mut schedule =
            Schedule { flights: Flights::new(), calls: Vec::new(), finished: 0 };
        for step in steps {
            match step {
                FlightStep::Join => {
                    let call = match schedule.flights.join(&key, version) {
                        Role::Leader(leader) => Call::Leading(leader),
                        // Raised, as a task is scheduled when it is spawned.
                        Role::Follower(follower) => {
                            let flag = Flag::default();
                            flag.0.0.store(true, Ordering::SeqCst);
                            Call::Following(follower, flag)
                        }
                    };
                    schedule.calls.push(call);
                }
                FlightStep::Poll(call) => schedule.poll(schedule.pick(call)),
                FlightStep::Leave(call) => drop(schedule.take(schedule.pick(call))),
                FlightStep::Finish(call, how) => schedule.finish(schedule.pick(call), how),
            }
            prop_assert!(schedule.leaders() <= 1, "two run at once");
        }
        // From here on a fair executor: polls whoever was woken, finishes whoever leads.
        for _ in 0..=2 * schedule.calls.len() {
            for call in 0..schedule.calls.len() {
                let is_woken =
                    matches!(&schedule.calls[call], Call::Following(_, flag) if flag.is_up());
                if is_woken {
                    schedule.poll(call);
                }
                schedule.finish(call, 0);
                prop_assert!(schedule.leaders() <= 1);
            }
        }
        prop_assert_eq!(schedule.following(), 0, "somebody was never woken");
        prop_assert_eq!(schedule.flights.len(), 0);
        for call in &schedule.calls {
            if let Call::Answered(text) = call {
                prop_assert!(text.starts_with("outcome ") || text == "it failed", "{}", text);
            }
        }
    }
}
