//! The events sent in sessions, so that a client can resume a broken stream.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream;
use rmcp::model::{ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::streamable_http_server::session::{
    EventId, EventStore, EventStoreError, EventStream, ServerSseMessage, StreamId,
};
use tokio::sync::watch;

/// The number of events kept per stream; older ones are lost to a client that reconnects.
const EVENTS_MAX: usize = 256;
/// The number of streams kept across all sessions. Streams that have ended are removed first.
const STREAMS_MAX: usize = 1_024;
/// The number of JSON bytes kept across all streams.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a stream is kept after it has ended.
const RETENTION: Duration = Duration::from_secs(300);
/// The id suffix of a session's common stream, which belongs to no request and does not end with an
/// answer.
const COMMON_SUFFIX: &str = ":common";

/// The events of all streams of a service. Clones are cheap and share one log.
///
/// An event's id contains its stream's id, which cannot be guessed, and its sequence number.
#[derive(Clone, Default)]
pub(crate) struct EventLog(Arc<Mutex<Streams>>);

#[derive(Default)]
struct Streams {
    by_id: HashMap<StreamId, StreamEvents>,
    /// Ordered by first event; some streams may have been removed.
    begun: VecDeque<StreamId>,
    /// Ordered by last event.
    ended: VecDeque<(Instant, StreamId)>,
    /// The number of the next event.
    next: u64,
    bytes: usize,
}

struct StreamEvents {
    events: VecDeque<(u64, ServerSseMessage)>,
    bytes: usize,
    ended: bool,
    /// The last event that was handed to a connection, if that is tracked.
    delivered: Option<u64>,
    /// Notified of every event.
    changed: watch::Sender<()>,
}

impl EventLog {
    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes streams that have expired.
    pub(crate) fn remove_expired(&self) {
        self.streams().make_room(0, false);
    }

    /// Removes the common stream of a session that has ended.
    pub(crate) fn end_of_session(&self, session: &str) {
        self.streams().forget(&format!("{session}{COMMON_SUFFIX}"));
    }

    /// The next event of a stream after `last`: `Ok(None)` while there is none yet, an error when
    /// there will be no more.
    fn next_after(
        &self,
        stream: &str,
        last: u64,
    ) -> Result<Option<(u64, ServerSseMessage)>, StreamEnded> {
        let streams = self.streams();
        let sent = streams.by_id.get(stream).ok_or(StreamEnded)?;
        let at = sent.events.partition_point(|(number, _)| *number <= last);
        match sent.events.get(at) {
            Some((number, event)) => Ok(Some((*number, event.clone()))),
            None if sent.ended => Err(StreamEnded),
            None => Ok(None),
        }
    }

    /// The events of a session's common stream that its client was never sent. They count as sent
    /// from now on.
    pub(crate) fn undelivered(&self, session: &str) -> Vec<ServerSseMessage> {
        let mut streams = self.streams();
        let Some(sent) = streams.by_id.get_mut(&format!("{session}{COMMON_SUFFIX}")) else {
            return Vec::new();
        };
        let from = sent
            .delivered
            .map_or(0, |last| sent.events.partition_point(|(number, _)| *number <= last));
        let missed: Vec<_> = sent.events.range(from..).map(|(_, event)| event.clone()).collect();
        sent.delivered = sent.events.back().map(|(number, _)| *number);
        missed
    }

    /// Records that an event of the common stream is being sent to its client; returns false if it
    /// was sent before.
    pub(crate) fn deliver(&self, event: &ServerSseMessage) -> bool {
        let id = event.event_id.as_deref().and_then(|id| id.rsplit_once('/'));
        let Some((stream, number)) = id else { return true };
        let Ok(number) = number.parse::<u64>() else { return true };
        let mut streams = self.streams();
        let Some(sent) = streams.by_id.get_mut(stream) else { return true };
        let is_new = sent.delivered.is_none_or(|last| last < number);
        sent.delivered = sent.delivered.max(Some(number));
        is_new
    }
}

/// The stream has ended.
struct StreamEnded;

impl StreamEvents {
    /// The position of an identical notification that was not handed to a connection yet.
    fn undelivered_duplicate(&self, event: &ServerSseMessage) -> Option<usize> {
        let Some(ServerJsonRpcMessage::Notification(new)) = event.message.as_deref() else {
            return None;
        };
        let is_list = |notification: &ServerNotification| {
            matches!(
                notification,
                ServerNotification::ToolListChangedNotification(_)
                    | ServerNotification::PromptListChangedNotification(_)
                    | ServerNotification::ResourceListChangedNotification(_)
            )
        };
        if !is_list(&new.notification) {
            return None;
        }
        let kind = std::mem::discriminant(&new.notification);
        let told = self.delivered;
        self.events.iter().position(|(number, event)| {
            told.is_none_or(|last| last < *number)
                && matches!(
                    event.message.as_deref(),
                    Some(ServerJsonRpcMessage::Notification(old))
                        if std::mem::discriminant(&old.notification) == kind
                )
        })
    }
}

impl Streams {
    fn note(&mut self, stream: &str, event: &ServerSseMessage) -> EventId {
        let number = self.next;
        self.next += 1;
        let id = format!("{stream}/{number}");
        let mut event = event.clone();
        event.event_id = Some(id.clone());
        let ended = !stream.ends_with(COMMON_SUFFIX) && is_answer(&event);
        let size = size(&event);
        self.make_room(size, !self.by_id.contains_key(stream));
        let sent = self.by_id.entry(stream.to_owned()).or_insert_with(|| {
            self.begun.push_back(stream.to_owned());
            let changed = watch::Sender::new(());
            StreamEvents {
                events: VecDeque::new(),
                bytes: 0,
                ended: false,
                delivered: None,
                changed,
            }
        });
        // A client does not need the same undelivered list-changed notification twice.
        if stream.ends_with(COMMON_SUFFIX)
            && let Some(at) = sent.undelivered_duplicate(&event)
            && let Some((_, twin)) = sent.events.remove(at)
        {
            let twin = self::size(&twin);
            sent.bytes -= twin;
            self.bytes -= twin;
        }
        if sent.events.len() == EVENTS_MAX
            && let Some((_, lost)) = sent.events.pop_front()
        {
            let lost = self::size(&lost);
            sent.bytes -= lost;
            self.bytes -= lost;
        }
        sent.events.push_back((number, event));
        sent.bytes += size;
        self.bytes += size;
        sent.ended |= ended;
        sent.changed.send_replace(());
        if ended {
            self.ended.push_back((Instant::now(), stream.to_owned()));
        }
        id
    }

    /// Removes expired streams, and more if there is no room for one more event of `size` bytes.
    /// `is_first` says whether it is the first of its stream.
    fn make_room(&mut self, size: usize, is_first: bool) {
        let streams = usize::from(is_first);
        while let Some((since, _)) = self.ended.front()
            && (since.elapsed() > RETENTION || self.is_full(streams, size))
        {
            if let Some((_, stream)) = self.ended.pop_front() {
                self.forget(&stream);
            }
        }
        while self.is_full(streams, size)
            && let Some(stream) = self.begun.pop_front()
        {
            self.forget(&stream);
        }
        // Most streams that began early have also ended.
        if self.begun.len() > 2 * STREAMS_MAX {
            self.begun.retain(|stream| self.by_id.contains_key(stream));
        }
    }

    /// Whether there is no room for this many more streams and bytes.
    fn is_full(&self, streams: usize, bytes: usize) -> bool {
        self.by_id.len() + streams > STREAMS_MAX || self.bytes + bytes > BYTES_MAX
    }

    fn forget(&mut self, stream: &str) {
        if let Some(gone) = self.by_id.remove(stream) {
            self.bytes -= gone.bytes;
        }
    }
}

/// The size of an event in bytes of JSON.
fn size(event: &ServerSseMessage) -> usize {
    struct ByteCounter(usize);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = ByteCounter(0);
    // Counting never fails for an event that can be sent.
    let _ = serde_json::to_writer(&mut counted, &event.message);
    counted.0
}

fn is_answer(event: &ServerSseMessage) -> bool {
    let message = event.message.as_deref();
    matches!(message, Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)))
}

#[async_trait::async_trait]
impl EventStore for EventLog {
    async fn store_event(
        &self,
        stream: &str,
        event: &ServerSseMessage,
    ) -> Result<EventId, EventStoreError> {
        Ok(self.streams().note(stream, event))
    }

    /// The events that are there now, and those that follow, up to the stream's answer.
    async fn replay_events_after(&self, last: &str) -> Result<EventStream, EventStoreError> {
        let known = last.rsplit_once('/').and_then(|(stream, number)| {
            let number = number.parse::<u64>().ok()?;
            let changed = self.streams().by_id.get(stream)?.changed.subscribe();
            Some((self.clone(), stream.to_owned(), number, changed))
        });
        let begin = known.ok_or("the stream of this event is no longer kept")?;
        Ok(Box::pin(stream::unfold(begin, async |(log, stream, last, mut changed)| {
            loop {
                match log.next_after(&stream, last) {
                    Ok(Some((number, event))) => {
                        return Some((event, (log, stream, number, changed)));
                    }
                    Ok(None) => changed.changed().await.ok()?,
                    Err(StreamEnded) => return None,
                }
            }
        })))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use rmcp::model::{ErrorData, RequestId};

    use super::*;

    fn notice() -> ServerSseMessage {
        ServerSseMessage::retry(Duration::from_secs(1))
    }

    fn answer() -> ServerSseMessage {
        let error = ErrorData::internal_error("it broke", None);
        let id = Some(RequestId::Number(1));
        ServerSseMessage::from_message(ServerJsonRpcMessage::error(error, id))
    }

    async fn ids(stream: EventStream) -> Vec<String> {
        stream.map(|event| event.event_id.unwrap()).collect().await
    }

    #[tokio::test]
    async fn a_reconnecting_client_gets_missed_and_new_events_up_to_the_answer() {
        let log = EventLog::default();
        let first = log.store_event("a", &notice()).await.unwrap();
        let second = log.store_event("a", &notice()).await.unwrap();
        log.store_event("b", &notice()).await.unwrap();
        let follower = log.replay_events_after(&first).await.unwrap();
        let follower = tokio::spawn(ids(follower));
        let last = log.store_event("a", &answer()).await.unwrap();
        assert_eq!(follower.await.unwrap(), [second, last.clone()]);
        // The answer is kept after it was sent.
        let late = log.replay_events_after(&first).await.unwrap();
        assert_eq!(ids(late).await.last(), Some(&last));
        assert!(ids(log.replay_events_after(&last).await.unwrap()).await.is_empty());
        for unknown in ["", "0", "a", "a/x", "c/0"] {
            assert!(log.replay_events_after(unknown).await.is_err(), "{unknown}");
        }
    }

    #[tokio::test]
    async fn the_log_is_bounded_and_ended_streams_are_evicted_first() {
        let log = EventLog::default();
        let open = log.store_event("open", &notice()).await.unwrap();
        for number in 0..3 * STREAMS_MAX {
            let stream = format!("ended-{number}");
            log.store_event(&stream, &notice()).await.unwrap();
            log.store_event(&stream, &answer()).await.unwrap();
        }
        let mut open = open;
        for _ in 0..2 * EVENTS_MAX {
            open = log.store_event("open", &notice()).await.unwrap();
        }
        {
            let streams = log.streams();
            assert!(streams.by_id.len() <= STREAMS_MAX);
            assert_eq!(streams.by_id["open"].events.len(), EVENTS_MAX);
            assert!(streams.begun.len() <= 2 * STREAMS_MAX + 1);
            assert!(streams.ended.len() <= STREAMS_MAX);
        }
        assert!(log.replay_events_after(&open).await.is_ok());
        // If no stream has ended, the oldest is removed.
        for number in 0..STREAMS_MAX {
            log.store_event(&format!("{number}{COMMON_SUFFIX}"), &answer()).await.unwrap();
        }
        assert!(log.replay_events_after(&open).await.is_err());
        assert!(log.streams().by_id.len() <= STREAMS_MAX);
    }

    #[tokio::test]
    async fn another_event_of_a_stream_does_not_evict_other_streams() {
        let log = EventLog::default();
        for number in 0..STREAMS_MAX {
            log.store_event(&number.to_string(), &notice()).await.unwrap();
        }
        log.store_event("7", &notice()).await.unwrap();
        log.store_event("7", &answer()).await.unwrap();
        assert_eq!(log.streams().by_id.len(), STREAMS_MAX);
        // A new stream needs room, and so does one that has ended.
        log.store_event("new", &notice()).await.unwrap();
        let streams = log.streams();
        assert!(!streams.by_id.contains_key("7") && streams.by_id.contains_key("0"));
        assert_eq!(streams.by_id.len(), STREAMS_MAX);
    }

    #[tokio::test]
    async fn long_answers_evict_earlier_ones_and_sizes_are_tracked() {
        let log = EventLog::default();
        let answer = |number: usize| {
            let error = ErrorData::internal_error("x".repeat(BYTES_MAX / 4), None);
            let id = Some(RequestId::Number(i64::try_from(number).unwrap()));
            ServerSseMessage::from_message(ServerJsonRpcMessage::error(error, id))
        };
        for number in 0..10 {
            log.store_event(&format!("s{number}"), &answer(number)).await.unwrap();
        }
        let streams = log.streams();
        let mut kept: Vec<_> = streams.by_id.keys().map(String::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["s7", "s8", "s9"]);
        assert_eq!(streams.bytes, streams.by_id.values().map(|sent| sent.bytes).sum::<usize>());
    }
}
