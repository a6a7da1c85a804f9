//! Readers that are slow, stall and leave; speakers that wait and end in every way.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, advance, sleep, timeout};
use toolcrib_tool::Content;

use super::*;
use crate::events::event::{Event, Occurrence, Payload};
use crate::events::stream::CallStream;

fn word(text: &str) -> Arc<Occurrence> {
    Occurrence::of_host(Payload::Output(Content::text(text)))
}

fn shown(event: &Event) -> String {
    match event.payload() {
        Payload::Output(part) => part.as_text().into_owned(),
        Payload::Lagged { lost } => format!("lost {lost}"),
        Payload::Detached { unread } => format!("detached, {unread} unread"),
        other => panic!("not expected: {other:?}"),
    }
}

fn options(events: usize) -> ChannelOptions {
    ChannelOptions { events, ..ChannelOptions::default() }
}

fn channel(events: usize) -> (OutputChannel, EventReader) {
    OutputChannel::new(&options(events))
}

impl OutputChannel {
    fn speaker(&self, position: usize) -> Speaker {
        Speaker::new(&self.0.0, position)
    }
}

impl Speaker {
    async fn speak(&self, text: &str) {
        self.say(word(text));
        self.room().await;
    }
}

/// What can be read without waiting.
fn read_now(reader: &mut EventReader) -> Vec<String> {
    std::iter::from_fn(|| reader.next().now_or_never().flatten())
        .map(|event| shown(&event))
        .collect()
}

async fn read_all(reader: EventReader) -> Vec<String> {
    reader.map(|event| shown(&event)).collect().await
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_slows_only_the_speaker() {
    let (channel, mut reader) = channel(2);
    let (first, second) = (channel.speaker(0), channel.speaker(1));
    drop(channel);
    let started = Instant::now();
    let speaking = async {
        for number in 0..10 {
            first.speak(&format!("a{number}")).await;
        }
        drop(first);
        started.elapsed().as_secs()
    };
    let waits_for_nobody = async {
        sleep(Duration::from_millis(1)).await;
        for number in 0..10 {
            second.speak(&format!("b{number}")).await;
        }
        drop(second);
        started.elapsed().as_secs()
    };
    let reads = async {
        let mut read = Vec::new();
        loop {
            sleep(Duration::from_secs(1)).await;
            let Some(event) = reader.next().await else { return read };
            assert_eq!(event.sequence(), read.len() as u64 + 1);
            read.push(shown(&event));
        }
    };
    let (spoke, others, read) = tokio::join!(speaking, waits_for_nobody, reads);
    // With two events of room, the tenth word is through when nine were read.
    assert_eq!((spoke, others), (9, 0));
    let expected: Vec<String> =
        ['a', 'b'].iter().flat_map(|call| (0..10).map(move |n| format!("{call}{n}"))).collect();
    assert_eq!(read, expected);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_reader_is_detached_after_thirty_seconds() {
    let (channel, mut reader) = channel(2);
    let speaker = channel.speaker(0);
    let started = Instant::now();
    for number in 0..50 {
        speaker.speak(&format!("{number}")).await;
    }
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    let report = channel.report();
    assert_eq!(report.detached, Some(Detachment::Stalled));
    assert_eq!((report.presented, report.unread, report.overflowed, report.lost), (0, 50, 50, 0));

    // The reader is told, once, and its end changes nothing any more.
    assert_eq!(read_now(&mut reader), ["detached, 50 unread"]);
    assert_eq!(reader.next().await, None);
    drop(reader);
    assert_eq!(channel.report().detached, Some(Detachment::Stalled));

    // Nothing was lost: another reader goes on where it stopped.
    let rest = channel.attach().unwrap();
    assert!(channel.attach().is_none());
    drop((speaker, channel));
    let numbers: Vec<_> = (0..50).map(|number| number.to_string()).collect();
    assert_eq!(read_all(rest).await, numbers);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_moves_is_never_detached() {
    // The room is never empty meanwhile: what counts is that the reader takes something.
    let (channel, mut reader) = channel(3);
    let speaker = channel.speaker(0);
    let speaking = async {
        for number in 0..9 {
            speaker.speak(&format!("{number}")).await;
        }
    };
    let reads = async {
        for _ in 0..9 {
            sleep(Duration::from_secs(29)).await;
            reader.next().await.unwrap();
        }
    };
    tokio::join!(speaking, reads);
    assert_eq!(channel.report().detached, None);
    // A long silence is nobody's stall: the reader has all there is.
    advance(Duration::from_secs(3600)).await;
    for text in ["b", "c"] {
        speaker.speak(text).await;
    }
    assert!(timeout(Duration::from_secs(29), speaker.speak("d")).await.is_err());
    assert_eq!(channel.report().detached, None);
    assert_eq!(read_now(&mut reader), ["b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_reader_detaches_it_at_once() {
    let (channel, reader) = channel(1);
    let speaker = channel.speaker(0);
    let started = Instant::now();
    let speaking = async {
        speaker.speak("a").await;
        speaker.speak("b").await;
    };
    let leaves = async {
        sleep(Duration::from_secs(3)).await;
        drop(reader);
    };
    tokio::join!(speaking, leaves);
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    assert_eq!(channel.report().detached, Some(Detachment::Dropped));
    let mut rest = channel.attach().unwrap();
    assert_eq!(read_now(&mut rest), ["a", "b"]);
    assert_eq!(channel.report().detached, None);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_in_any_way_releases_the_floor() {
    let (channel, mut reader) = channel(100);
    let panics = async {
        let speaker = channel.speaker(0);
        speaker.speak("panics").await;
        sleep(Duration::from_secs(1)).await;
        panic!("as it must");
    };
    let is_dropped = async {
        let speaker = channel.speaker(1);
        sleep(Duration::from_millis(10)).await;
        speaker.speak("is dropped").await;
        std::future::pending::<()>().await;
    };
    let goes_on = async {
        let speaker = channel.speaker(2);
        sleep(Duration::from_millis(20)).await;
        speaker.speak("goes on").await;
        speaker
    };
    let (panicked, timed_out, _speaker) = tokio::join!(
        std::panic::AssertUnwindSafe(panics).catch_unwind(),
        timeout(Duration::from_secs(2), is_dropped),
        goes_on,
    );
    assert!(panicked.is_err() && timed_out.is_err());
    assert_eq!(read_now(&mut reader), ["panics", "is dropped", "goes on"]);
}

#[tokio::test(start_paused = true)]
async fn a_speaker_dropped_while_it_waits_has_said_what_it_said() {
    let (channel, mut reader) = channel(1);
    let (first, second) = (channel.speaker(0), channel.speaker(1));
    assert!(timeout(Duration::from_secs(1), first.speak("a")).await.is_err());
    second.speak("b").await;
    drop(first);
    assert_eq!(read_now(&mut reader), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn words_of_one_millisecond_go_by_the_order_of_the_calls() {
    let (channel, mut reader) = channel(100);
    let calls: Vec<_> = (0..4).map(|position| channel.speaker(position)).collect();
    for position in [3, 2, 0, 1] {
        calls[position].say(word(&position.to_string()));
    }
    drop(calls);
    // The first word of all takes the floor; the others were said at once.
    assert_eq!(read_now(&mut reader), ["3", "0", "1", "2"]);
}

#[tokio::test]
async fn a_waiting_reader_is_woken_by_words_and_by_the_end() {
    let (channel, mut reader) = channel(4);
    let speaker = channel.speaker(0);
    let reading = tokio::spawn(async move {
        let first = reader.next().await.map(|event| shown(&event));
        (first, reader.next().await)
    });
    tokio::task::yield_now().await;
    speaker.say(word("a"));
    tokio::task::yield_now().await;
    drop(channel);
    tokio::task::yield_now().await;
    drop(speaker);
    let read = timeout(Duration::from_secs(10), reading).await.unwrap();
    assert_eq!(read.unwrap(), (Some("a".to_owned()), None));
}

#[tokio::test]
async fn what_does_not_fit_goes_to_the_overflow_and_comes_back_in_order() {
    let small = ChannelOptions { bytes: 1, ..options(100) };
    let (channel, reader) = OutputChannel::with_overflow(&small, MemoryOverflow::new(2_000));
    let (first, second) = (channel.speaker(0), channel.speaker(1));
    first.say(word("a"));
    let long = "x".repeat(600);
    for text in ["b", &long, &long, &long, &long, "c"] {
        second.say(word(text));
    }
    let report = channel.report();
    assert_eq!((report.overflowed, report.lost, report.unread), (4, 2, 6));
    drop((first, second));
    channel.close();
    assert_eq!(read_all(reader).await, ["a", "b", &long, &long, "lost 2", "c"]);
    assert_eq!(channel.report().presented, 6);
}

#[tokio::test]
async fn an_overflow_that_loses_what_it_took_is_reported() {
    struct Forgetful;
    impl ChannelOverflow for Forgetful {
        fn put(&mut self, _key: u64, _bytes: Vec<u8>) -> bool {
            true
        }
        fn take(&mut self, _key: u64) -> OverflowEntry {
            OverflowEntry::Lost
        }
    }
    let small = ChannelOptions { bytes: 1, ..options(100) };
    let (channel, mut reader) = OutputChannel::with_overflow(&small, Forgetful);
    let speaker = channel.speaker(0);
    for text in ["a", "b"] {
        speaker.say(word(text));
    }
    assert_eq!(read_now(&mut reader), ["a", "lost 1"]);
    assert_eq!(channel.report().lost, 1);
}

#[tokio::test]
async fn what_a_silent_call_announced_leaves_the_overflow_with_it() {
    struct Counting(Arc<AtomicBool>);
    impl ChannelOverflow for Counting {
        fn put(&mut self, _key: u64, _bytes: Vec<u8>) -> bool {
            !self.0.swap(true, Ordering::Relaxed)
        }
        fn take(&mut self, _key: u64) -> OverflowEntry {
            self.0.store(false, Ordering::Relaxed);
            OverflowEntry::Lost
        }
    }
    let small = ChannelOptions { bytes: 0, ..options(100) };
    let full = Arc::new(AtomicBool::new(false));
    let (channel, mut reader) = OutputChannel::with_overflow(&small, Counting(Arc::clone(&full)));
    let speaker = channel.speaker(0);
    speaker.announce(word("a"));
    assert!(full.load(Ordering::Relaxed));
    drop(speaker);
    assert!(!full.load(Ordering::Relaxed));
    assert_eq!(read_now(&mut reader), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_one_call_waits_counts_and_detaches() {
    let (stream, mut reader) = CallStream::new(&ChannelOptions { bytes: 1_000, ..options(2) });
    let long = "x".repeat(600);
    for text in [&long, &long, "c", "d"] {
        stream.say(word(text));
    }
    assert_eq!(read_now(&mut reader), [&long, &long, "lost 2"]);
    stream.say(word("e"));
    stream.say(word("f"));
    let started = Instant::now();
    stream.room().await;
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    stream.say(word("g"));
    let report = stream.report();
    assert_eq!((report.detached, report.lost), (Some(Detachment::Stalled), 5));
    // One notice stands for what was lost.
    assert_eq!(read_now(&mut reader), ["detached, 1 unread"]);
}

#[tokio::test]
async fn the_stream_of_one_call_ends_with_its_last_handle() {
    let (stream, reader) = CallStream::new(&ChannelOptions::default());
    let other = stream.clone();
    stream.say(word("a"));
    drop(stream);
    other.say(word("b"));
    drop(other);
    assert_eq!(read_all(reader).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_on_many_threads_are_presented_whole() {
    let (channel, reader) = channel(3);
    let calls: Vec<_> = (0..20)
        .map(|call| {
            let speaker = channel.speaker(call);
            tokio::spawn(async move {
                for number in 0..50 {
                    speaker.speak(&format!("{call} {number}")).await;
                    if number % 7 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    drop(channel);
    let read = timeout(Duration::from_secs(60), read_all(reader)).await.unwrap();
    futures_util::future::join_all(calls).await;
    assert_eq!(read.len(), 1_000);
    for words in read.chunks(50) {
        let call = words[0].split(' ').next().unwrap();
        let expected: Vec<_> = (0..50).map(|number| format!("{call} {number}")).collect();
        assert_eq!(words, expected);
    }
}

#[tokio::test]
async fn what_a_reader_left_behind_waits_in_the_store_of_outputs() {
    use crate::output::spill::{MemorySpill, Owner, SpillLimits};

    let store = Arc::new(MemorySpill::new(SpillLimits::default()));
    let owner = Owner::of(&toolcrib_tool::ContextValues::new().with("user", "ada"), None);
    let overflow = SpillOverflow::new(Arc::clone(&store) as _, owner);
    let (channel, reader) = OutputChannel::with_overflow(&options(100), overflow);
    let speaker = channel.speaker(0);
    speaker.speak("first").await;
    drop(reader);
    let words: Vec<String> =
        (0..3_000).map(|number| format!("{number}: {}", "é".repeat(150))).collect();
    for text in &words {
        speaker.speak(text).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(channel.report().lost, 0);
    assert!(channel.report().overflowed >= 3_000);
    let reader = channel.attach().expect("there is no reader");
    drop(speaker);
    drop(channel);
    let read = read_all(reader).await;
    assert_eq!(read.len(), 3_001);
    assert_eq!(read[1..], words);
}
