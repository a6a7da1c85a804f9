//! What a running call can ask of its executor: whether it is cancelled, services, and calls of its
//! own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::{
    BoxFuture, ByteMasks, CallHost, Content, ErrorKind, Services, StatusUpdate, ToolCall,
    ToolDefinition, ToolError, ToolFile, ToolOutput, ToolResult,
};

use crate::admission::{Descent, Permit};
use crate::batch::Presence;
use crate::cancel::Cancellation;
use crate::events::VoiceHandle;
use crate::masking::Mask;
use crate::pipeline::{Maker, Origin};
use crate::speech::Speech;
use crate::suspension::{Delegation, Grant, Suspension, Waiting};
use crate::{Turn, pipeline};

/// The host of one call.
pub(crate) struct Host {
    /// Below that of the turn, or of the call that made this one.
    cancellation: Cancellation,
    turn: Turn,
    descent: Descent,
    /// The call has ended: what its tool left behind may not act for it any more.
    over: AtomicBool,
    /// Calls from within this one that are under way.
    nested: AtomicUsize,
    /// Known once the work begins, if there is a limit.
    deadline: OnceLock<Instant>,
    /// The result the tool set before it returned.
    result: Mutex<Option<ToolOutput>>,
    /// What the tool waits for, if it returned without an end.
    waiting: Mutex<Option<Waiting>>,
    /// Whether the tool has asked for anything that is no part of an answer's key.
    left_key: AtomicBool,
    /// Where the call stands among those of its batch, while it is at work.
    presence: Mutex<Option<Arc<Presence>>>,
    /// The call that the tool hands this one on to, if it does nothing else.
    delegation: OnceLock<Delegation>,
    /// That call, if it waits.
    suspended: Mutex<Option<Box<Suspension>>>,
    /// What was decided on that call, when this one goes on.
    nested_grant: Option<Arc<Grant>>,
    /// Where somebody listens.
    speech: Option<Speech>,
}

impl Host {
    /// Of a call of this definition.
    pub(crate) fn new(
        turn: &Turn,
        origin: &Origin<'_>,
        definition: &ToolDefinition,
        voice: Option<VoiceHandle>,
    ) -> Self {
        let mask = || Mask::clone(&turn.state.shared.mask.load());
        Self {
            cancellation: origin.cancellation(turn).child(),
            turn: turn.clone(),
            descent: Descent::new(origin.lineage, definition),
            over: AtomicBool::new(false),
            nested: AtomicUsize::new(0),
            deadline: OnceLock::new(),
            result: Mutex::default(),
            waiting: Mutex::default(),
            left_key: AtomicBool::new(false),
            presence: Mutex::default(),
            delegation: OnceLock::new(),
            suspended: Mutex::default(),
            nested_grant: origin.nested_grant.cloned(),
            speech: voice.map(|voice| Speech::new(voice, mask())),
        }
    }

    /// The tool cannot end yet. The error only ends this run of it.
    pub(crate) fn wait_for(&self, waiting: Waiting) -> ToolError {
        *lock(&self.waiting) = Some(waiting);
        ToolError::new(ErrorKind::RequiresApproval, "the tool waits for an answer")
    }

    /// What the tool waits for, if it has not ended.
    pub(crate) fn take_waiting(&self) -> Option<Waiting> {
        lock(&self.waiting).take()
    }

    /// The call that this one was handed on to, if that waits.
    pub(crate) fn take_suspended(&self) -> Option<Box<Suspension>> {
        lock(&self.suspended).take()
    }

    /// The result the tool has set, if any.
    pub(crate) fn take_result(&self) -> Option<ToolOutput> {
        lock(&self.result).take()
    }

    /// Says what masking has held back of a stream: the work is over.
    pub(crate) async fn finish_speech(&self) {
        if let Some(speech) = &self.speech {
            speech.finish().await;
        }
    }

    /// The call has its permit and its place among those at work, and has to end by `latest`, if
    /// there is a limit. A call begins once: tried again, it keeps all of it.
    pub(crate) fn begin(&self, permit: &Permit<'_>, presence: Presence, latest: Option<Instant>) {
        if let Some(slot) = permit.slot() {
            self.descent.hold(slot);
        }
        *lock(&self.presence) = Some(Arc::new(presence));
        if let Some(latest) = latest {
            // A call begins once.
            let _ = self.deadline.set(latest);
        }
    }

    /// The work begins, of a tool that needs so long to wind down.
    pub(crate) fn needs(&self, wind_down: Duration) {
        self.cancellation.needs(wind_down);
    }

    /// How long the work may take to end after an interruption: as long as its tool says, or as the
    /// tools of the calls that it waits for.
    pub(crate) fn wind_down(&self, own: Duration) -> Duration {
        if self.nested.load(Ordering::Acquire) == 0 {
            return own;
        }
        self.cancellation.wind_down()
    }

    /// The tool hands this call on to another one: whoever decides on that one lets both go on.
    pub(crate) fn delegate(&self, delegation: Delegation) {
        // A call begins once.
        let _ = self.delegation.set(delegation);
    }

    /// The tool has returned; `is_over`: nothing that goes on elsewhere may still act for the call.
    pub(crate) fn end(&self, is_over: bool) {
        lock(&self.presence).take();
        if is_over {
            self.over.store(true, Ordering::Release);
            self.cancellation.set();
        }
    }

    /// Whether the tool has asked for its session, services, files, other tools, or values that it
    /// does not declare: its answer depends on more than its key says.
    pub(crate) fn has_left_key(&self) -> bool {
        self.left_key.load(Ordering::Acquire)
    }

    /// Why a call from within this one would not be made.
    fn refusal(&self) -> Option<ToolError> {
        let over = self.over.load(Ordering::Acquire);
        (over || self.cancellation.is_cancelled()).then(|| {
            ToolError::new(ErrorKind::Cancelled, "the call that would make this one is over")
                .with_hint("Nothing was run.")
        })
    }

    /// A call from within this one.
    async fn nested(&self, from: &ToolDefinition, call: ToolCall) -> ToolResult {
        if let Some(error) = self.refusal() {
            let (id, name, _) = call.into_parts();
            return ToolResult::failure(id, name, error, Duration::ZERO);
        }
        let _under_way = UnderWay::begin(&self.nested);
        let presence = lock(&self.presence).clone();
        let aside = presence.as_ref().map(|presence| presence.step_aside());
        let lineage = self.descent.lineage(from.tool_name());
        let delegation = self.delegation.get().filter(|to| to.target == call.name());
        let grant = self
            .nested_grant
            .as_ref()
            .filter(|grant| delegation.is_some() && grant.suspension().tool() == call.name());
        // Decided on with the arguments that were kept, or with the approver's own.
        let call = grant.map_or(call, |grant| grant.call());
        let maker = Maker {
            cancellation: &self.cancellation,
            deadline: self.deadline.get().copied(),
            delegation,
        };
        let origin = Origin {
            maker: Some(maker),
            grant: grant.map(|grant| &**grant),
            ..Origin::alone(&lineage)
        };
        let answered = pipeline::run_boxed(&self.turn, call, origin).await;
        if let Some(suspension) = answered.side.suspension {
            *lock(&self.suspended) = Some(suspension);
        }
        if let Some(aside) = aside {
            aside.end().await;
        }
        answered.result
    }
}

/// A call from within another one, counted until this is dropped.
struct UnderWay<'c>(&'c AtomicUsize);

impl<'c> UnderWay<'c> {
    fn begin(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Nothing of the caller's runs under any of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        Box::pin(self.nested(from, call))
    }

    fn search(&self, question: &str, limit: usize) -> Vec<Arc<ToolDefinition>> {
        let found = self.turn.search(question, limit);
        found.iter().map(|tool| Arc::clone(tool.definition)).collect()
    }

    fn describe(&self, name: &str) -> Result<Arc<ToolDefinition>, ToolError> {
        pipeline::describe(&self.turn, name).map(Arc::clone)
    }

    fn read_beyond_key(&self) {
        self.left_key.store(true, Ordering::Release);
    }

    fn deadline(&self) -> Option<std::time::Instant> {
        self.deadline.get().copied().map(Instant::into_std)
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
        *lock(&self.result) = Some(output);
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
