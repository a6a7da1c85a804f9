//! The floor under its lock, with waiting and waking.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use toolcrib_tool::BoxFuture;

use super::floor::{Floor, FloorLimits, FloorTime, NextWord, SayResult, SpeakerId};
use super::overflow::OverflowEntry;
use super::{ChannelOptions, ChannelOverflow, ChannelReport, Detachment};
use crate::events::event::{Event, Occurrence, Payload};
use crate::events::json;

/// One channel, shared by its speakers and its reader.
pub(crate) struct SharedChannel {
    state: Mutex<ChannelState>,
    /// Notified when a waiting speaker should check again.
    room: Notify,
    stall: Duration,
    started: Instant,
}

struct ChannelState {
    floor: Floor<Arc<Occurrence>>,
    overflow: Option<Box<dyn ChannelOverflow>>,
    /// The reader's next event while it is fetched from the overflow.
    fetching: Option<BoxFuture<'static, Option<Vec<u8>>>>,
    /// The reader, while it waits.
    reader: Option<Waker>,
    /// Which reader is attached; those before it are detached.
    generation: u64,
    /// When the reader last made progress, or when an empty buffer last got an event.
    moved: Instant,
    report: ChannelReport,
    /// The reader ignores all further events.
    is_finished: bool,
}

impl SharedChannel {
    pub(crate) fn new(
        options: &ChannelOptions,
        overflow: Option<Box<dyn ChannelOverflow>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            state: Mutex::new(ChannelState {
                floor: Floor::new(FloorLimits { words: options.events, bytes: options.bytes }),
                overflow,
                fetching: None,
                reader: None,
                generation: 0,
                moved: now,
                report: ChannelReport::default(),
                is_finished: false,
            }),
            room: Notify::new(),
            stall: options.stall,
            started: now,
        }
    }

    pub(crate) fn join(&self, position: usize) -> SpeakerId {
        self.lock().floor.join(position)
    }

    /// Whether there is a reader.
    pub(crate) fn is_attended(&self) -> bool {
        self.lock().floor.is_attended()
    }

    pub(crate) fn announce(&self, id: SpeakerId, occurrence: Arc<Occurrence>) {
        let weight = occurrence.weight();
        self.change(|state| {
            let said = state.floor.announce(id, occurrence, weight);
            state.settle(id, said);
        });
    }

    pub(crate) fn say(&self, id: SpeakerId, occurrence: Arc<Occurrence>) {
        let weight = occurrence.weight();
        let since = self.started.elapsed().as_millis();
        // Within one millisecond the call order decides.
        let at = FloorTime(u64::try_from(since).unwrap_or(u64::MAX));
        self.change(|state| {
            let said = state.floor.say(id, at, occurrence, weight);
            state.settle(id, said);
        });
    }

    pub(crate) fn end(&self, id: SpeakerId) {
        self.change(|state| {
            for key in state.floor.end(id) {
                if let Some(overflow) = &mut state.overflow {
                    drop(overflow.take(key));
                }
            }
        });
        self.room.notify_waiters();
    }

    /// Ends the stream after the events emitted so far.
    pub(crate) fn finish(&self) {
        self.change(|state| {
            state.is_finished = true;
            state.floor.close();
        });
    }

    pub(crate) fn close(&self) {
        self.change(|state| state.floor.close());
    }

    /// Completes when the speaker may emit more: at once, unless it holds the floor and the reader
    /// is behind. A reader that stalls meanwhile is detached.
    pub(crate) async fn room(&self, id: SpeakerId) {
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            // Registered before the floor is checked, so that a change in between is not missed.
            changed.as_mut().enable();
            let moved = {
                let state = self.lock();
                if !state.floor.must_wait(id) {
                    return;
                }
                state.moved
            };
            let Some(patience) = moved.checked_add(self.stall) else {
                changed.await;
                continue;
            };
            if timeout_at(patience, changed).await.is_err() {
                self.give_up(id, moved);
            }
        }
    }

    /// Detaches a reader that has not moved since.
    fn give_up(&self, id: SpeakerId, since: Instant) {
        let unread = {
            let mut state = self.lock();
            if state.moved != since || !state.floor.must_wait(id) {
                return;
            }
            state.detach(Detachment::Stalled);
            state.floor.pending()
        };
        tracing::warn!(unread, stall = ?self.stall, "the reader of a stream of events has stalled and is detached");
        self.after_detaching();
    }

    /// Attaches a reader, if there is none. Returns its generation.
    pub(crate) fn attach(&self) -> Option<u64> {
        let mut state = self.lock();
        if state.floor.is_attended() {
            return None;
        }
        state.floor.attach();
        state.moved = Instant::now();
        state.report.detached = None;
        Some(state.generation)
    }

    /// The reader of that generation went away.
    pub(crate) fn left(&self, generation: u64) {
        {
            let mut state = self.lock();
            if state.generation != generation {
                return;
            }
            state.reader = None;
            state.detach(Detachment::Dropped);
        }
        self.after_detaching();
    }

    fn after_detaching(&self) {
        self.room.notify_waiters();
        let reader = self.lock().reader.take();
        reader.into_iter().for_each(Waker::wake);
    }

    /// The next event for the reader of that generation; `Err` with how many it does not get, if
    /// it has been detached.
    pub(crate) fn poll_next(
        &self,
        generation: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Event>, Event>> {
        let next = {
            let mut state = self.lock();
            if state.generation != generation {
                let unread = u64::try_from(state.floor.pending()).unwrap_or(u64::MAX);
                let notice = Occurrence::of_host(Payload::Detached { unread });
                // Not counted, because another reader may be attached.
                return Poll::Ready(Err(Event::new(state.report.presented + 1, notice)));
            }
            let next = state.next(cx);
            match &next {
                Poll::Pending => state.reader = Some(cx.waker().clone()),
                Poll::Ready(_) => state.moved = Instant::now(),
            }
            next
        };
        if next.is_ready() {
            self.room.notify_waiters();
        }
        next.map(Ok)
    }

    pub(crate) fn report(&self) -> ChannelReport {
        let state = self.lock();
        ChannelReport { unread: state.floor.pending(), ..state.report }
    }

    /// Changes the floor, and wakes the reader if there is news.
    fn change(&self, change: impl FnOnce(&mut ChannelState)) {
        let reader = {
            let mut state = self.lock();
            let had_nothing = state.floor.unread() == 0;
            change(&mut state);
            if had_nothing {
                // The reader could not make progress before.
                state.moved = Instant::now();
            }
            if state.floor.has_news() { state.reader.take() } else { None }
        };
        // Outside the lock, because the woken task may run at once.
        reader.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChannelState {
    /// Moves events to the overflow as the floor demands.
    fn settle(&mut self, id: SpeakerId, said: SayResult<Arc<Occurrence>>) {
        let SayResult::Over(key, occurrence) = said else { return };
        if !self.overflow(key, &occurrence) {
            self.floor.lose_last(id);
        }
    }

    fn overflow(&mut self, key: u64, occurrence: &Arc<Occurrence>) -> bool {
        let kept = self
            .overflow
            .as_mut()
            .is_some_and(|overflow| overflow.put(key, json::encode(occurrence)));
        let counter = if kept { &mut self.report.overflowed } else { &mut self.report.lost };
        *counter += 1;
        kept
    }

    fn detach(&mut self, why: Detachment) {
        if !self.floor.is_attended() {
            return;
        }
        self.generation += 1;
        self.report.detached = Some(why);
        let mut refused = HashSet::new();
        for (key, occurrence) in self.floor.detach() {
            if !self.overflow(key, &occurrence) {
                refused.insert(key);
            }
        }
        self.floor.lose(&refused);
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.fetching.is_some() {
            return self.fetched(cx);
        }
        let occurrence = match self.floor.take() {
            NextWord::Word(occurrence) => occurrence,
            NextWord::Over(key) => {
                match self.overflow.as_mut().map(|overflow| overflow.take(key)) {
                    Some(OverflowEntry::Pending(fetching)) => {
                        self.fetching = Some(fetching);
                        return self.fetched(cx);
                    }
                    Some(OverflowEntry::Ready(bytes)) => self.decoded(Some(&bytes)),
                    Some(OverflowEntry::Lost) | None => self.decoded(None),
                }
            }
            NextWord::Lost(lost) => Occurrence::of_host(Payload::Lagged { lost }),
            NextWord::Nothing if self.is_finished => return Poll::Ready(None),
            NextWord::Nothing => return Poll::Pending,
            NextWord::End => return Poll::Ready(None),
        };
        Poll::Ready(Some(self.numbered(occurrence)))
    }

    /// The event that is being fetched, once it is there.
    fn fetched(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let Some(fetching) = &mut self.fetching else { return Poll::Pending };
        let bytes = std::task::ready!(fetching.as_mut().poll(cx));
        self.fetching = None;
        let occurrence = self.decoded(bytes.as_deref());
        Poll::Ready(Some(self.numbered(occurrence)))
    }

    /// An event that was in the overflow, or the notice that it is lost.
    fn decoded(&mut self, bytes: Option<&[u8]>) -> Arc<Occurrence> {
        bytes.and_then(json::decode).unwrap_or_else(|| {
            self.report.lost += 1;
            Occurrence::of_host(Payload::Lagged { lost: 1 })
        })
    }

    fn numbered(&mut self, occurrence: Arc<Occurrence>) -> Event {
        self.report.presented += 1;
        Event::new(self.report.presented, occurrence)
    }
}
