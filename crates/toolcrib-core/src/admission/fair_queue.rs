//! A queue that takes turns between identities.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

/// Calls of one tool that run and that wait, by identity.
///
/// The next call to start is the oldest one of the identity with the fewest running calls. Among
/// identities with as many, they take turns: whoever was served longest ago comes first. An identity that
/// begins to wait comes before the one that was served last and after all others, so that it neither waits
/// behind the whole queue of another nor overtakes anybody twice.
#[derive(Debug)]
pub(super) struct FairQueue<G> {
    running: usize,
    waiting: usize,
    next_ticket: u64,
    /// Increased by 2 with each call that starts: the numbers between are for identities that are new.
    turn: u64,
    /// Identities with running or waiting calls.
    shares: HashMap<Arc<str>, Share<G>>,
}

/// The calls of one identity.
#[derive(Debug)]
struct Share<G> {
    running: usize,
    /// When it was served last, in turns.
    turn: u64,
    /// Sorted by ticket, which is the order of arrival.
    waiting: VecDeque<Waiter<G>>,
}

/// A waiting call.
#[derive(Debug)]
pub(super) struct Waiter<G> {
    pub(super) ticket: u64,
    /// How many calls may run at once when it starts.
    pub(super) limit: usize,
    /// Whether it has started before. Such a call is never removed to make room.
    pub(super) is_back: bool,
    /// Tells it to start.
    pub(super) grant: G,
}

/// A call that may start.
#[derive(Debug)]
pub(super) struct Started<G> {
    pub(super) identity: Arc<str>,
    pub(super) ticket: u64,
    pub(super) grant: G,
}

impl<G> Default for FairQueue<G> {
    fn default() -> Self {
        Self { running: 0, waiting: 0, next_ticket: 0, turn: 1, shares: HashMap::new() }
    }
}

impl<G> FairQueue<G> {
    /// How many calls run.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// How many calls wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// A number for the next call, in the order of arrival.
    pub(super) fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Counts a call in, whether or not there is room for it.
    pub(super) fn start(&mut self, identity: &Arc<str>) {
        self.running += 1;
        self.turn += 2;
        let turn = self.turn;
        let share = self.share(identity);
        share.running += 1;
        share.turn = turn;
    }

    /// Counts a call out that has ended, or lets others run in its place.
    pub(super) fn end(&mut self, identity: &Arc<str>) {
        if let Some(share) = self.shares.get_mut(identity) {
            share.running = share.running.saturating_sub(1);
            self.running = self.running.saturating_sub(1);
            self.forget_if_idle(identity);
        }
    }

    /// Adds a call to those of its identity, at the place that its ticket gives it.
    pub(super) fn push(&mut self, identity: &Arc<str>, waiter: Waiter<G>) {
        let waiting = &mut self.share(identity).waiting;
        let place = waiting.partition_point(|other| other.ticket <= waiter.ticket);
        waiting.insert(place, waiter);
        self.waiting += 1;
    }

    /// Removes a call that waits no more; false if it has started or was removed before.
    pub(super) fn remove(&mut self, identity: &Arc<str>, ticket: u64) -> bool {
        let Some(share) = self.shares.get_mut(identity) else { return false };
        let found = share.waiting.binary_search_by_key(&ticket, |waiter| waiter.ticket);
        let Ok(place) = found else { return false };
        share.waiting.remove(place);
        self.waiting -= 1;
        self.forget_if_idle(identity);
        true
    }

    /// Makes room for a call of this identity: removes the newest call of the identity with the most
    /// waiting calls, if that has more than this one would have. The removed call's grant is returned, to
    /// be dropped outside any lock.
    pub(super) fn make_room(&mut self, identity: &Arc<str>) -> Option<G> {
        let own = self.shares.get(identity).map_or(0, |share| share.waiting.len());
        let longest = self
            .shares
            .iter()
            .filter(|(_, share)| share.waiting.back().is_some_and(|newest| !newest.is_back))
            .max_by_key(|(_, share)| share.waiting.len())?;
        if longest.1.waiting.len() <= own + 1 {
            return None;
        }
        let longest = Arc::clone(longest.0);
        let removed = self.shares.get_mut(&longest)?.waiting.pop_back()?;
        self.waiting -= 1;
        self.forget_if_idle(&longest);
        Some(removed.grant)
    }

    /// Counts in the calls whose turn it is, as long as their limits leave room. A call whose limit leaves
    /// none holds up those behind it, so that wider limits do not starve it.
    pub(super) fn advance(&mut self) -> Vec<Started<G>> {
        let mut started = Vec::new();
        while let Some(identity) = self.next() {
            let Some(share) = self.shares.get_mut(&identity) else { break };
            let Some(first) = share.waiting.pop_front() else { break };
            self.waiting -= 1;
            self.start(&identity);
            started.push(Started { identity, ticket: first.ticket, grant: first.grant });
        }
        started
    }

    /// The identity whose turn it is, if there is room for its first call.
    fn next(&self) -> Option<Arc<str>> {
        if self.waiting == 0 {
            return None;
        }
        let heads = self.shares.iter().filter_map(|(identity, share)| {
            let head = share.waiting.front()?;
            Some(((share.running, share.turn, head.ticket), identity, head.limit))
        });
        let (_, identity, limit) = heads.min_by_key(|(rank, ..)| *rank)?;
        (self.running < limit).then(|| Arc::clone(identity))
    }

    fn share(&mut self, identity: &Arc<str>) -> &mut Share<G> {
        let turn = self.turn - 1;
        self.shares.entry_ref(identity).or_insert_with(|| Share {
            running: 0,
            turn,
            waiting: VecDeque::new(),
        })
    }

    fn forget_if_idle(&mut self, identity: &Arc<str>) {
        let idle = |share: &Share<G>| share.running == 0 && share.waiting.is_empty();
        if self.shares.get(identity).is_some_and(idle) {
            self.shares.remove(identity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Queue(FairQueue<&'static str>);

    const LIMIT: usize = 2;

    impl Queue {
        fn wait(&mut self, identity: &str, call: &'static str) {
            let ticket = self.0.ticket();
            self.0.push(
                &identity.into(),
                Waiter { ticket, limit: LIMIT, is_back: false, grant: call },
            );
        }

        fn advance(&mut self) -> Vec<&'static str> {
            self.0.advance().into_iter().map(|started| started.grant).collect()
        }

        fn end(&mut self, identity: &str) -> Vec<&'static str> {
            self.0.end(&identity.into());
            self.advance()
        }
    }

    #[test]
    fn an_identity_with_fewer_running_calls_comes_first() {
        let mut queue = Queue(FairQueue::default());
        for call in ["a1", "a2", "a3", "a4"] {
            queue.wait("ada", call);
        }
        assert_eq!(queue.advance(), ["a1", "a2"]);
        queue.wait("bob", "b1");
        queue.wait("bob", "b2");
        assert_eq!(queue.advance(), [""; 0]);
        assert_eq!(queue.end("ada"), ["b1"]);
        assert_eq!(queue.end("bob"), ["b2"], "ada still has one running");
        assert_eq!(queue.end("ada"), ["a3"]);
        assert_eq!(queue.end("bob"), ["a4"]);
        assert_eq!((queue.0.running(), queue.0.waiting()), (2, 0));
    }

    #[test]
    fn two_identities_that_come_back_by_turns_do_not_starve_a_third() {
        let mut queue = FairQueue::default();
        let wait = |queue: &mut FairQueue<()>, identity: &Arc<str>| {
            let ticket = queue.ticket();
            queue.push(identity, Waiter { ticket, limit: 1, is_back: false, grant: () });
        };
        let (ada, [bob, cat]): (Arc<str>, [Arc<str>; 2]) =
            ("ada".into(), ["bob".into(), "cat".into()]);
        for _ in 0..100 {
            wait(&mut queue, &ada);
        }
        let mut running = queue.advance().pop().unwrap().identity;
        let mut served = 0;
        for round in 0..60 {
            // One of the two always waits, and neither has two calls.
            let next = if round % 2 == 0 { &bob } else { &cat };
            if running != *next {
                wait(&mut queue, next);
            }
            queue.end(&running);
            running = queue.advance().pop().unwrap().identity;
            served += usize::from(running == ada);
        }
        assert!(served >= 20, "ada was served {served} times of 60");
    }

    #[test]
    fn a_full_queue_takes_from_the_longest_share() {
        let mut queue = Queue(FairQueue::default());
        queue.0.start(&"ada".into());
        queue.0.start(&"ada".into());
        for call in ["a1", "a2", "a3"] {
            queue.wait("ada", call);
        }
        assert_eq!(queue.0.make_room(&"ada".into()), None);
        assert_eq!(queue.0.make_room(&"bob".into()), Some("a3"));
        queue.wait("bob", "b1");
        assert_eq!(queue.0.make_room(&"bob".into()), None, "two of ada, and two of bob then");
        assert_eq!(queue.0.make_room(&"cat".into()), Some("a2"));
        assert_eq!(queue.0.make_room(&"cat".into()), None, "one of each");
    }

    #[test]
    fn a_call_that_comes_back_keeps_its_place_and_is_not_removed() {
        let mut queue = Queue(FairQueue::default());
        let early = queue.0.ticket();
        for call in ["a1", "a2"] {
            queue.wait("ada", call);
        }
        let back = Waiter { ticket: early, limit: 1, is_back: true, grant: "back" };
        queue.0.push(&"ada".into(), back);
        assert_eq!(queue.0.make_room(&"bob".into()), Some("a2"));
        assert_eq!(queue.0.make_room(&"bob".into()), Some("a1"));
        assert_eq!(queue.0.make_room(&"bob".into()), None);
        assert_eq!(queue.advance(), ["back"]);
    }

    #[test]
    fn nothing_is_kept_of_identities_that_have_no_calls() {
        let mut queue = Queue(FairQueue::default());
        for name in 0..1_000 {
            let identity: Arc<str> = name.to_string().into();
            queue.0.start(&identity);
            queue.0.end(&identity);
            let ticket = queue.0.ticket();
            let waiter = Waiter { ticket, limit: 0, is_back: false, grant: "" };
            queue.0.push(&identity, waiter);
            assert!(queue.0.remove(&identity, ticket));
            assert!(!queue.0.remove(&identity, ticket));
        }
        assert!(queue.0.shares.is_empty());
        assert_eq!((queue.0.running(), queue.0.waiting()), (0, 0));
    }
}
