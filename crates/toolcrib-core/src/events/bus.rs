//! The event bus: all events, for observers that nobody waits for.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{Stream, stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};

use super::event::{Event, Occurrence, Payload};

/// Broadcasts the events of all calls, as they happen, and those of the host to every subscriber.
/// Cloning it is cheap; clones are the same bus.
///
/// It is meant for monitoring (consoles, metrics), not for presentation: events of concurrent calls
/// are interleaved, and hidden tools only report their start and end. Publishing never waits; a
/// subscriber that is too slow loses the oldest events, learns how many, and continues. Without
/// subscribers it costs one atomic read.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// use toolcrib_core::events::{EventBus, Payload};
///
/// let bus = EventBus::new(2);
/// let mut events = bus.subscribe();
/// for tool in ["a", "b", "c"] {
///     bus.publish(Payload::Paused { tool: tool.to_owned(), identity: "ada".to_owned() });
/// }
/// let first = events.next().await.unwrap();
/// assert_eq!((first.sequence(), first.payload()), (1, &Payload::Lagged { lost: 1 }));
/// let second = events.next().await.unwrap();
/// assert_eq!((second.sequence(), second.name()), (2, "task.paused"));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct EventBus(Arc<Bus>);

struct Bus {
    watchers: Arc<AtomicUsize>,
    sender: Mutex<NumberedSender>,
}

/// The sender and the last sequence number, under one lock, so that numbers and events have the
/// same order.
struct NumberedSender {
    sender: Sender<Event>,
    sequence: u64,
}

impl EventBus {
    /// A bus that buffers this many events for its slowest subscriber, rounded up to a power of
    /// two, at most 65,536. The buffer is allocated at once.
    pub fn new(capacity: usize) -> Self {
        let (sender, _) = broadcast::channel(capacity.clamp(1, 65_536));
        Self(Arc::new(Bus {
            watchers: Arc::default(),
            sender: Mutex::new(NumberedSender { sender, sequence: 0 }),
        }))
    }

    /// Whether there are subscribers. Without any, events need not be created.
    pub fn is_watched(&self) -> bool {
        self.0.watchers.load(Ordering::Relaxed) > 0
    }

    /// Publishes an event that does not belong to a call, for example [`Payload::Paused`].
    pub fn publish(&self, payload: Payload) {
        if self.is_watched() {
            self.tell(Occurrence::of_host(payload));
        }
    }

    /// Subscribes to all events from now on.
    pub fn subscribe(&self) -> Subscription {
        let numbered = self.0.lock();
        // Counted first and under the lock, so that a subscriber gets every event created after it
        // subscribed.
        let watchers = Arc::clone(&self.0.watchers);
        watchers.fetch_add(1, Ordering::Relaxed);
        Subscription {
            receiver: numbered.sender.subscribe(),
            seen: numbered.sequence,
            lost: 0,
            _watching: WatcherGuard(watchers),
        }
    }

    pub(crate) fn tell(&self, occurrence: Arc<Occurrence>) {
        if !self.is_watched() {
            return;
        }
        let mut numbered = self.0.lock();
        numbered.sequence += 1;
        // Fails only if the last subscriber has just gone.
        let _ = numbered.sender.send(Event::new(numbered.sequence, occurrence));
    }
}

impl Bus {
    fn lock(&self) -> MutexGuard<'_, NumberedSender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus").field("watched", &self.is_watched()).finish_non_exhaustive()
    }
}

/// A subscription. Dropping it ends it.
pub struct Subscription {
    receiver: Receiver<Event>,
    seen: u64,
    lost: u64,
    _watching: WatcherGuard,
}

/// Counts a subscriber while it lives.
struct WatcherGuard(Arc<AtomicUsize>);

impl Drop for WatcherGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Subscription {
    /// The next event; `None` when the bus is gone. Lost events are replaced by one
    /// [`Payload::Lagged`] with the sequence number of the last of them. The future is cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        match self.receiver.recv().await {
            Ok(event) => {
                self.seen = event.sequence();
                Some(event)
            }
            Err(RecvError::Lagged(lost)) => {
                self.seen += lost;
                self.lost += lost;
                Some(Event::new(self.seen, Occurrence::of_host(Payload::Lagged { lost })))
            }
            Err(RecvError::Closed) => None,
        }
    }

    /// How many events this subscriber has lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The events as a [`Stream`].
    pub fn into_stream(self) -> impl Stream<Item = Event> + Send {
        stream::unfold(self, |mut subscription| async move {
            let event = subscription.next().await?;
            Some((event, subscription))
        })
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("seen", &self.seen)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn paused(tool: usize) -> Payload {
        Payload::Paused { tool: tool.to_string(), identity: "ada".to_owned() }
    }

    fn next(subscription: &mut Subscription) -> Option<Event> {
        subscription.next().now_or_never().flatten()
    }

    #[test]
    fn every_subscriber_gets_everything_from_its_start_on() {
        let bus = EventBus::new(8);
        let mut first = bus.subscribe();
        bus.publish(paused(1));
        let mut second = bus.subscribe();
        bus.publish(paused(2));
        let event = next(&mut first).unwrap();
        assert_eq!((event.sequence(), event.payload()), (1, &paused(1)));
        let event = next(&mut first).unwrap();
        assert_eq!((event.sequence(), event.payload()), (2, &paused(2)));
        assert_eq!(next(&mut second).as_ref(), Some(&event));
        assert_eq!(next(&mut second), None);
    }

    #[test]
    fn a_slow_subscriber_counts_its_losses_and_goes_on() {
        let bus = EventBus::new(4);
        let (mut slow, mut quick) = (bus.subscribe(), bus.subscribe());
        for number in 1..=10 {
            bus.publish(paused(number));
            assert_eq!(next(&mut quick).unwrap().payload(), &paused(number));
        }
        let notice = next(&mut slow).unwrap();
        assert_eq!((notice.sequence(), notice.payload()), (6, &Payload::Lagged { lost: 6 }));
        assert_eq!(notice.to_value()["event"], "stream.lagged");
        for number in 7..=10 {
            let event = next(&mut slow).unwrap();
            assert_eq!((event.sequence(), event.payload()), (number as u64, &paused(number)));
        }
        assert_eq!((slow.lost(), quick.lost()), (6, 0));
    }

    #[test]
    fn a_bus_without_subscribers_makes_nothing() {
        let bus = EventBus::new(4);
        assert!(!bus.is_watched());
        bus.publish(paused(1));
        let subscription = bus.subscribe();
        assert!(bus.is_watched());
        drop(subscription);
        assert!(!bus.is_watched());
        let mut late = bus.subscribe();
        bus.publish(paused(2));
        // Events without subscribers have no numbers.
        assert_eq!(next(&mut late).unwrap().sequence(), 1);
    }

    #[tokio::test]
    async fn a_stream_ends_with_the_bus() {
        let bus = EventBus::new(4);
        let events = bus.subscribe().into_stream();
        bus.publish(paused(1));
        drop(bus);
        assert_eq!(events.count().await, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn numbers_rise_in_the_order_of_events_whoever_publishes() {
        let bus = EventBus::new(1024);
        let mut subscription = bus.subscribe();
        let publishers = (0..4).map(|_| {
            let bus = bus.clone();
            tokio::spawn(async move { (0..100).for_each(|number| bus.publish(paused(number))) })
        });
        futures_util::future::join_all(publishers).await;
        for expected in 1..=400 {
            assert_eq!(subscription.next().await.unwrap().sequence(), expected);
        }
    }
}
