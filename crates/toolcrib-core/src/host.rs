//! What a running call can ask of its executor: whether it is cancelled, services, and calls of its
//! own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::{
    BoxFuture, ByteMasks, CallHost, Content, ErrorKind, Services, StatusUpdate, ToolCall,
    ToolDefinition, ToolError, ToolFile, ToolOutput, ToolResult,
};

use crate::admission::{Descent, Lineage, Permit};
use crate::cancel::Cancellation;
use crate::events::VoiceHandle;
use crate::masking::Mask;
use crate::pipeline::Origin;
use crate::speech::Speech;
use crate::suspension::Waiting;
use crate::{Turn, pipeline};

/// The host of one call.
pub(crate) struct Host {
    cancellation: Cancellation,
    turn: Turn,
    descent: Descent,
    started: Instant,
    /// Nanoseconds from then to the deadline: known once the work begins, if there is a limit; 0
    /// until then.
    deadline: AtomicU64,
    /// The result the tool set before it returned.
    result: Mutex<Option<Box<ToolOutput>>>,
    /// What the tool waits for, if it returned without an end.
    waiting: Mutex<Option<Box<Waiting>>>,
    /// Where somebody listens.
    speech: Option<Box<Speech>>,
}

impl Host {
    /// Of a call that came in at `started`, made from the calls of `parent`.
    pub(crate) fn new(
        turn: &Turn,
        started: Instant,
        parent: &Lineage,
        voice: Option<VoiceHandle>,
    ) -> Self {
        let mask = || Mask::clone(&turn.state.shared.mask.load());
        let speech = voice.map(|voice| Box::new(Speech::new(voice, mask())));
        Self {
            speech,
            cancellation: Cancellation::default(),
            turn: turn.clone(),
            descent: Descent::new(parent),
            started,
            deadline: AtomicU64::new(0),
            result: Mutex::new(None),
            waiting: Mutex::new(None),
        }
    }

    /// The tool cannot end yet. The error only ends this run of it.
    pub(crate) fn wait_for(&self, waiting: Waiting) -> ToolError {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(waiting));
        ToolError::new(ErrorKind::RequiresApproval, "the tool waits for an answer")
    }

    /// What the tool waits for, if it has not ended.
    pub(crate) fn take_waiting(&self) -> Option<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.take().map(|waiting| *waiting)
    }

    /// The result the tool has set, if any.
    pub(crate) fn take_result(&self) -> Option<ToolOutput> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.take().map(|output| *output)
    }

    /// Says what masking has held back of a stream: the work is over.
    pub(crate) async fn finish_speech(&self) {
        if let Some(speech) = &self.speech {
            speech.finish().await;
        }
    }

    /// The call has its permit, and has to end so long after it came in, if there is a limit. A call
    /// begins once: tried again, it keeps both.
    pub(crate) fn begin(&self, permit: &Permit<'_>, latest: Option<Duration>) {
        if let Some(slot) = permit.slot() {
            self.descent.hold(slot);
        }
        if let Some(latest) = latest {
            let nanos = u64::try_from(latest.as_nanos()).unwrap_or(u64::MAX).max(1);
            self.deadline.store(nanos, Ordering::Relaxed);
        }
    }
}

impl CallHost for Host {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancellation.cancelled())
    }

    fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    fn cancel(&self) {
        self.cancellation.set();
    }

    fn call<'a>(&'a self, from: &'a ToolDefinition, call: ToolCall) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let lineage = self.descent.lineage(from.tool_name());
            pipeline::run(&self.turn, call, Origin::alone(&lineage)).await.result
        })
    }

    fn search(&self, question: &str, limit: usize) -> Vec<Arc<ToolDefinition>> {
        let found = self.turn.search(question, limit);
        found.iter().map(|tool| Arc::clone(tool.definition)).collect()
    }

    fn describe(&self, name: &str) -> Result<Arc<ToolDefinition>, ToolError> {
        pipeline::describe(&self.turn, name).map(Arc::clone)
    }

    fn deadline(&self) -> Option<std::time::Instant> {
        let nanos = Duration::from_nanos(self.deadline.load(Ordering::Relaxed));
        let deadline = (!nanos.is_zero()).then(|| self.started.checked_add(nanos))?;
        deadline.map(Instant::into_std)
    }

    fn status(&self, update: StatusUpdate) {
        if let Some(speech) = &self.speech {
            speech.status(update);
        }
    }

    fn stream(&self, part: Content) -> BoxFuture<'_, ()> {
        match &self.speech {
            None => Box::pin(std::future::ready(())),
            Some(speech) => Box::pin(speech.stream(part)),
        }
    }

    fn set_result(&self, output: ToolOutput) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(output));
    }

    fn services(&self) -> Option<&Services> {
        Some(&self.turn.state.services)
    }

    fn byte_masks(&self) -> Option<ByteMasks> {
        Some(self.turn.state.shared.mask.byte_masks())
    }

    fn files(&self, tool_type: &str) -> &[ToolFile] {
        self.turn.state.files.of(tool_type)
    }

    fn session(&self) -> Option<&str> {
        self.turn.state.session.as_deref()
    }
}
