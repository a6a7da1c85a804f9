//! One call as a stream of events, followed by its answer.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use toolcrib_tool::{BoxFuture, ToolCall};

use super::{Turn, TurnState};
use crate::events::{CallStream, ChannelOptions, Event, EventReader, OutputChannel};
use crate::suspension::Answer;

/// What [`AnswerStream`] yields.
#[derive(Debug)]
pub enum StreamItem {
    /// An event of the call or of a nested call.
    Event(Event),
    /// The answer: the last item, once.
    Answer(Answer),
}

/// The events of one call and then its answer; created by [`Turn::stream`].
///
/// The call makes progress only while the stream is read. Dropping the stream before the answer
/// cancels the call, as dropping the future of [`Turn::call`] does.
pub struct AnswerStream {
    events: EventReader,
    are_events_over: bool,
    /// The call, until it is answered.
    work: Option<BoxFuture<'static, Answer>>,
    answer: Option<Answer>,
}

impl Turn {
    /// Makes a call like [`start`](Self::start) and yields its events in order, and then its
    /// answer, exactly once.
    ///
    /// If the call is suspended, the last item is [`Answer::Suspended`], and
    /// [`result_of`](Self::result_of) waits for the result. For this call, the stream replaces one
    /// set with [`Listeners::with_stream`](crate::events::Listeners::with_stream); other listeners
    /// of the turn get the events as well. Calls of [hidden](toolcrib_tool::ToolDefinition::hidden)
    /// tools yield no events, only the answer.
    ///
    /// ```
    /// use toolcrib_core::{Answer, Executor, ExecutorConfig, Registry, StreamItem, TurnOptions};
    /// use toolcrib_tool::ToolCall;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolcrib_tool::DefinitionError> {
    /// let registry = Registry::scratch()
    ///     .tool("copy", |_, cx| async move {
    ///         cx.stream("half of it").await;
    ///         "all of it"
    ///     })
    ///     .build()?;
    /// let turn = Executor::new(registry, ExecutorConfig::default()).turn(TurnOptions::default());
    ///
    /// let mut stream = turn.stream(ToolCall::new("1", "copy", "{}"));
    /// let mut events = Vec::new();
    /// while let Some(item) = stream.next().await {
    ///     match item {
    ///         StreamItem::Event(event) => events.push(event.name()),
    ///         StreamItem::Answer(Answer::Done(result)) => assert_eq!(result.text(), "all of it"),
    ///         StreamItem::Answer(_) => unreachable!("nobody is asked about this call"),
    ///     }
    /// }
    /// assert!(events.contains(&"call.output"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self, call: ToolCall) -> AnswerStream {
        let (stream, events) = CallStream::new(&ChannelOptions::default());
        let listeners = self.state.listeners.clone().with_stream(stream);
        let turn = Self::of(TurnState { listeners, ..self.state.copy() });
        // The turn ends with the call, and the event stream with the turn.
        let work = Box::pin(async move { turn.start(call).await });
        AnswerStream { events, are_events_over: false, work: Some(work), answer: None }
    }

    /// This turn with a [channel](OutputChannel) of its own, and the channel's reader: a batch of calls is presented
    /// one call after the other. `None` if the turn has a channel already
    /// ([`Listeners::with_channel`](crate::events::Listeners::with_channel)).
    ///
    /// Calls wait for the reader, so read it while they run, and [end](EventReader::finish) it when they are answered.
    pub fn with_channel(&self) -> Option<(Self, EventReader)> {
        if self.state.listeners.has_channel() {
            return None;
        }
        let options = ChannelOptions::default();
        let (channel, reader) = OutputChannel::with_overflow(&options, self.overflow());
        let listeners = self.state.listeners.clone().with_channel(channel);
        Some((Self::of(TurnState { listeners, ..self.state.copy() }), reader))
    }
}

impl AnswerStream {
    /// The next item; `None` after the answer. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<StreamItem> {
        poll_fn(|cx| self.poll_item(cx)).await
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        loop {
            if !self.are_events_over {
                match self.events.poll_event(cx) {
                    Poll::Ready(Some(event)) => return Poll::Ready(Some(StreamItem::Event(event))),
                    Poll::Ready(None) => self.are_events_over = true,
                    Poll::Pending => {}
                }
            }
            if let Some(work) = &mut self.work {
                let Poll::Ready(answer) = work.as_mut().poll(cx) else { return Poll::Pending };
                (self.work, self.answer) = (None, Some(answer));
                // A suspended call may continue to emit events; the stream ends with those emitted
                // so far.
                self.events.finish();
                continue;
            }
            if self.are_events_over {
                return Poll::Ready(self.answer.take().map(StreamItem::Answer));
            }
            return Poll::Pending;
        }
    }
}

impl Stream for AnswerStream {
    type Item = StreamItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        self.get_mut().poll_item(cx)
    }
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream")
            .field("is_answered", &self.work.is_none())
            .finish_non_exhaustive()
    }
}
