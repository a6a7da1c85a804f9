//! Emitting the events of one call to all its listeners.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::time::Instant;
use toolcrib_tool::{
    BoxFuture, CallId, Content, ErrorKind, StatusUpdate, ToolDefinition, ToolResult,
};

use super::bus::EventBus;
use super::channel::{OutputChannel, Speaker};
use super::event::{Completion, Occurrence, Payload, Subject};
use super::status::{Closing, StatusMachine};
use super::stream::CallStream;

/// The listeners of calls. Cloning it is cheap; the default is none.
#[derive(Debug, Clone, Default)]
pub struct Listeners {
    bus: Option<EventBus>,
    channel: Option<OutputChannel>,
    stream: Option<CallStream>,
    /// The identity whose calls they listen to.
    identity: Arc<str>,
}

impl Listeners {
    /// Nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a bus.
    #[must_use]
    pub fn with_bus(mut self, bus: EventBus) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Adds an ordered channel.
    #[must_use]
    pub fn with_channel(mut self, channel: OutputChannel) -> Self {
        self.channel = Some(channel);
        self
    }

    /// Adds the stream of one request.
    #[must_use]
    pub fn with_stream(mut self, stream: CallStream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Sets the identity whose calls they listen to.
    #[must_use]
    pub(crate) fn of_identity(mut self, identity: &Arc<str>) -> Self {
        self.identity = Arc::clone(identity);
        self
    }

    /// The bus, for events that do not belong to a call.
    pub fn bus(&self) -> Option<&EventBus> {
        self.bus.as_ref()
    }

    /// Whether there is an ordered channel.
    pub(crate) fn has_channel(&self) -> bool {
        self.channel.is_some()
    }

    /// Whether a call that starts now would have no listener, so that it needs no emitter.
    pub fn is_silent(&self) -> bool {
        self.channel.is_none()
            && self.stream.is_none()
            && !self.bus.as_ref().is_some_and(EventBus::is_watched)
    }

    /// Creates the emitter of a call; `position` is its index in its batch, from 0.
    ///
    /// For hidden tools, only the bus gets events, of the start and the end.
    pub fn emitter(
        &self,
        position: usize,
        call_id: &CallId,
        definition: &ToolDefinition,
    ) -> EventEmitter {
        let subject = Subject::new(call_id, definition, &self.identity);
        let channel = self.channel.as_ref();
        let sinks = Sinks {
            speaker: channel.and_then(|channel| channel.join(position, &subject)).map(Arc::new),
            stream: self.stream.clone().filter(|_| !subject.hidden),
            bus: self.bus.clone(),
        };
        let progress = Progress { sinks: Some(sinks), status: StatusMachine::default() };
        EventEmitter {
            call: Arc::new(Call { subject, progress: Mutex::new(progress) }),
            began: Instant::now(),
        }
    }
}

/// The event emitter of one call. It ends with [`record`](Self::record) or
/// [`suspend`](Self::suspend); if it is dropped earlier, it reports that the call was cancelled.
///
/// It always releases the floor of its channel, even while a [`EmitterHandle`] lives on in a thread
/// that could not be stopped: events after the end are ignored.
pub struct EventEmitter {
    call: Arc<Call>,
    began: Instant,
}

/// A handle through which a running call emits events. Cloning it is cheap.
#[derive(Clone)]
pub struct EmitterHandle(Arc<Call>);

struct Call {
    subject: Arc<Subject>,
    /// Locked while an event is emitted, so that all listeners get the events in the same order.
    /// Emitting never waits.
    progress: Mutex<Progress>,
}

struct Progress {
    /// `None` after the end.
    sinks: Option<Sinks>,
    status: StatusMachine,
}

/// The listeners of the call.
#[derive(Clone)]
struct Sinks {
    bus: Option<EventBus>,
    speaker: Option<Arc<Speaker>>,
    stream: Option<CallStream>,
}

impl EventEmitter {
    /// The call was accepted and is about to run. `arguments` are redacted. On a channel this is
    /// presented before the call's first word and does not take the floor; otherwise every batch
    /// would be presented in call order.
    pub fn prepare(&self, arguments: Option<Value>) {
        if let Some(sinks) = &self.call.lock().sinks {
            sinks.tell(&self.call.subject, Payload::Prepare { arguments });
        }
    }

    /// The handle for the running call.
    pub fn handle(&self) -> EmitterHandle {
        EmitterHandle(Arc::clone(&self.call))
    }

    /// The call has ended with this recorded result: closes or publishes its status, and reports
    /// how the call ended.
    pub fn record(&self, result: &ToolResult) {
        let closing = match result.error() {
            None => Closing::Success,
            Some(error) => Closing::Error(error.message()),
        };
        self.call.end(closing, Completion::from(result));
    }

    /// The call was suspended and ends here for now. A status stays open.
    pub fn suspend(&self, reason: impl Into<String>) {
        let mut progress = self.call.lock();
        if let Some(sinks) = progress.sinks.take() {
            sinks.tell(&self.call.subject, Payload::Suspended { reason: reason.into() });
            sinks.end();
        }
    }
}

impl Drop for EventEmitter {
    fn drop(&mut self) {
        let completion = Completion {
            success: false,
            error: Some(ErrorKind::Cancelled),
            duration: self.began.elapsed(),
            cached: false,
            skipped: false,
            truncated: false,
            result: None,
        };
        self.call.end(Closing::Error("the call was cancelled"), completion);
    }
}

impl EmitterHandle {
    /// The call is suspended but stays alive. Its caller was answered and gets no more events; the
    /// bus does.
    pub(crate) fn suspend(&self, reason: &str) {
        let mut progress = self.0.lock();
        if let Some(sinks) = &mut progress.sinks {
            sinks.tell(&self.0.subject, Payload::Suspended { reason: reason.to_owned() });
            sinks.end();
            (sinks.speaker, sinks.stream) = (None, None);
        }
    }

    /// Publishes a status update. Never waits. `SUCCESS` and `ERROR` are held until the result is
    /// recorded.
    pub fn status(&self, update: StatusUpdate) {
        let mut progress = self.0.lock();
        let Progress { sinks: Some(sinks), status } = &mut *progress else { return };
        let before = status.ignored();
        if let Some(known) = status.update(update) {
            sinks.tell(&self.0.subject, Payload::Status(known));
        } else if status.ignored() > before {
            tracing::debug!(
                tool = %self.0.subject.tool,
                call_id = %self.0.subject.call_id,
                "a status after the last one is ignored"
            );
        }
    }

    /// Streams a part of the output. It is emitted at the first poll; then this waits for a slow
    /// reader, if the call holds the floor.
    pub fn stream(&self, part: Content) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let sinks = {
                let progress = self.0.lock();
                let Some(sinks) = &progress.sinks else { return };
                sinks.tell(&self.0.subject, Payload::Output(part));
                sinks.clone()
            };
            if let Some(speaker) = &sinks.speaker {
                speaker.room().await;
            }
            if let Some(stream) = &sinks.stream {
                stream.room().await;
            }
        })
    }
}

impl Call {
    fn end(&self, closing: Closing<'_>, mut completion: Completion) {
        if self.subject.hidden {
            completion.result = None;
        }
        let mut progress = self.lock();
        let Some(sinks) = progress.sinks.take() else { return };
        if let Some(last) = progress.status.close(closing) {
            sinks.tell(&self.subject, Payload::Status(last));
        }
        sinks.tell(&self.subject, Payload::Completed(completion));
        sinks.end();
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sinks {
    fn tell(&self, subject: &Arc<Subject>, payload: Payload) {
        let is_preparing = matches!(payload, Payload::Prepare { .. });
        let is_shown = !subject.hidden
            || matches!(
                payload,
                Payload::Prepare { .. } | Payload::Suspended { .. } | Payload::Completed(_)
            );
        let bus = self.bus.as_ref().filter(|bus| is_shown && bus.is_watched());
        if bus.is_none() && self.speaker.is_none() && self.stream.is_none() {
            return;
        }
        let subject = Some(Arc::clone(subject));
        let occurrence = Arc::new(Occurrence { subject, payload });
        if let Some(bus) = bus {
            bus.tell(Arc::clone(&occurrence));
        }
        if let Some(stream) = &self.stream {
            stream.say(Arc::clone(&occurrence));
        }
        if let Some(speaker) = &self.speaker {
            if is_preparing { speaker.announce(occurrence) } else { speaker.say(occurrence) }
        }
    }

    /// Ends the speaker here rather than on drop, because a part that is being streamed may still
    /// hold it.
    fn end(&self) {
        if let Some(speaker) = &self.speaker {
            speaker.end();
        }
    }
}

impl fmt::Debug for EventEmitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventEmitter")
            .field("call_id", &self.call.subject.call_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EmitterHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmitterHandle")
            .field("call_id", &self.0.subject.call_id)
            .finish_non_exhaustive()
    }
}
