//! The executor's side of a call context: cancellation, services, nested calls.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::{
    Arguments, BoxFuture, ByteMasks, CallHost, CallId, Content, ErrorKind, Services, StatusUpdate,
    ToolCall, ToolDefinition, ToolError, ToolFile, ToolOutput, ToolResult,
};

use crate::Turn;
use crate::admission::{Descent, Permit};
use crate::cache::LeaderDuty;
use crate::call::batch::Presence;
use crate::call::cancellation::Cancellation;
use crate::call::nested::{Next, Repetition, RunningCall};
use crate::call::pipeline;
use crate::call::pipeline::Origin;
use crate::events::EmitterHandle;
use crate::events::masked_stream::MaskedOutput;
use crate::output::masking::Mask;
use crate::registry::ToolSlot;
use crate::suspension::{Grant, MadeCall, Suspension, Waiting};

/// The host of one call.
pub(crate) struct ExecutorHost {
    /// A child of the turn's token, or of the parent call's.
    cancellation: Cancellation,
    turn: Turn,
    descent: Descent,
    /// The call has ended: work that its tool left behind may no longer act for it.
    over: AtomicBool,
    /// Running nested calls.
    nested: AtomicUsize,
    /// The part that nested calls share.
    at_work: Arc<RunningCall>,
    /// The result the tool set before it returned.
    result: Mutex<Option<ToolOutput>>,
    unfinished: Mutex<Unfinished>,
    /// Whether the tool used anything that is not part of the cache key.
    left_key: AtomicBool,
    /// Whether a nested call was answered `timeout`.
    timed_out_within: AtomicBool,
    /// Set if a nested call was decided on and this call is made again.
    repetition: Option<Repetition>,
    /// Present if there are listeners.
    speech: Option<MaskedOutput>,
}

/// What a call waits for whose tool has returned.
#[derive(Default)]
pub(crate) struct Unfinished {
    /// What the tool waits for, if it returned without a result.
    pub(crate) waiting: Option<Waiting>,
    /// The call that this one was delegated to, if it waits.
    pub(crate) suspended: Option<Box<Suspension>>,
}

impl ExecutorHost {
    /// The host of a call of this tool.
    pub(crate) fn new(
        turn: &Turn,
        origin: &Origin<'_>,
        tool: &Arc<ToolSlot>,
        id: &CallId,
        emitter: Option<EmitterHandle>,
    ) -> Self {
        let mask = || Mask::clone(&turn.state.shared.mask.load());
        let at_work = Arc::new(RunningCall::new(id, tool, origin.made.cloned()));
        if let Some(emitter) = emitter.as_ref().filter(|_| origin.lineage.depth() == 0) {
            origin.lineage.outermost().set_emitter(emitter);
        }
        Self {
            cancellation: origin.cancellation().child(),
            turn: turn.clone(),
            descent: Descent::new(origin.lineage, &tool.entry.definition),
            at_work,
            over: AtomicBool::new(false),
            nested: AtomicUsize::new(0),
            result: Mutex::default(),
            unfinished: Mutex::default(),
            left_key: AtomicBool::new(false),
            timed_out_within: AtomicBool::new(false),
            repetition: origin.repetition.cloned(),
            speech: emitter.map(|emitter| MaskedOutput::new(emitter, mask())),
        }
    }

    /// Records what the tool waits for. The error only ends this run of the tool.
    pub(crate) fn wait_for(&self, waiting: Waiting) -> ToolError {
        lock(&self.unfinished).waiting = Some(self.turn.state.shared.mask.load().waiting(waiting));
        ToolError::new(ErrorKind::RequiresApproval, "the tool waits for an answer")
    }

    /// What the call still waits for, if anything.
    pub(crate) fn take_unfinished(&self) -> Unfinished {
        std::mem::take(&mut *lock(&self.unfinished))
    }

    /// The result the tool has set, if any.
    pub(crate) fn take_result(&self) -> Option<ToolOutput> {
        lock(&self.result).take()
    }

    /// Emits the output that masking has held back, when the work has ended.
    pub(crate) async fn finish_speech(&self) {
        if let Some(speech) = &self.speech {
            speech.finish().await;
        }
    }

    /// The part that nested calls share.
    pub(crate) fn at_work(&self) -> &RunningCall {
        &self.at_work
    }

    /// Starts the call: it has its permit and has passed the barrier, and its time limit begins. A
    /// call starts once; retries keep all of it. `delegate` is the tool that it is delegated to, if
    /// any.
    pub(crate) fn begin(
        &self,
        permit: &Permit<'_>,
        presence: Presence,
        arguments: Arguments,
        limit: Option<(Instant, Duration)>,
        delegate: Option<String>,
        owed: Option<LeaderDuty>,
    ) {
        if let Some(slot) = permit.slot() {
            self.descent.hold(slot);
        }
        self.at_work.begin(arguments, limit, permit.slot(), presence, delegate, owed);
    }

    /// Records the wind-down time of the tool when its work begins.
    pub(crate) fn needs(&self, wind_down: Duration) {
        self.cancellation.needs(wind_down);
    }

    /// How long the work may take to wind down after an interruption: the longest wind-down of its
    /// tool and of the nested calls that it waits for.
    pub(crate) fn wind_down(&self, own: Duration) -> Duration {
        if self.nested.load(Ordering::Acquire) == 0 {
            return own;
        }
        self.cancellation.wind_down()
    }

    /// The tool has returned. With `is_over`, no work that continues elsewhere may act for the
    /// call.
    pub(crate) fn end(&self, is_over: bool) {
        self.at_work.end();
        if is_over {
            self.over.store(true, Ordering::Release);
            self.cancellation.set();
        }
    }

    /// Whether the tool used its session, services, files, other tools, or undeclared values, so
    /// that its answer depends on more than the cache key.
    pub(crate) fn has_left_key(&self) -> bool {
        self.left_key.load(Ordering::Acquire)
    }

    /// Whether a nested call was answered `timeout`. If this call fails with `timeout` too, it only
    /// passes that on.
    pub(crate) fn has_timed_out_within(&self) -> bool {
        self.timed_out_within.load(Ordering::Acquire)
    }

    /// Why nested calls are refused, if they are.
    fn refusal(&self) -> Option<ToolError> {
        let over = self.over.load(Ordering::Acquire);
        (over || self.cancellation.is_cancelled()).then(|| {
            ToolError::new(ErrorKind::Cancelled, "the call that would make this one is over")
                .with_hint("Nothing was run.")
        })
    }

    /// Makes a nested call.
    async fn nested(&self, from: &ToolDefinition, call: ToolCall) -> ToolResult {
        if let Some(error) = self.refusal() {
            let (id, name, _) = call.into_parts();
            return ToolResult::failure(id, name, error, Duration::ZERO);
        }
        let _under_way = NestedCallGuard::begin(&self.nested);
        let presence = self.at_work.presence();
        let aside = presence.as_ref().map(|presence| presence.step_aside());
        let made = MadeCall::of(&call);
        let result = match self.repetition.as_ref().map(|repetition| repetition.next(&made)) {
            Some(Next::Finished(result)) => *result,
            Some(Next::Decided(grant)) => {
                let call = grant.call();
                self.made(from, call, &made, Some(grant), None).await
            }
            Some(Next::Again(repetition)) => {
                self.made(from, call, &made, None, Some(repetition)).await
            }
            Some(Next::New) | None => self.made(from, call, &made, None, None).await,
        };
        if result.error_kind() == Some(ErrorKind::Timeout) {
            self.timed_out_within.store(true, Ordering::Release);
        }
        if self.cancellation.is_cancelled() {
            // The tool should notice the cancellation before it continues with the answer of a
            // cancelled call.
            tokio::task::yield_now().await;
        }
        if let Some(aside) = aside {
            aside.end().await;
        }
        self.at_work.keep(made, &result);
        result
    }

    /// Makes a nested call. If it has to wait for somebody, so does this call.
    async fn made(
        &self,
        from: &ToolDefinition,
        call: ToolCall,
        made: &MadeCall,
        grant: Option<Arc<Grant>>,
        repetition: Option<Repetition>,
    ) -> ToolResult {
        let lineage = self.descent.lineage(from.tool_name(), Some(Arc::clone(&self.at_work)));
        let (mut call, mut grant, mut repetition) = (call, grant, repetition);
        let mut turn = self.turn.clone();
        loop {
            let origin = Origin {
                maker: Some(&self.cancellation),
                made: Some(made),
                grant: grant.as_deref(),
                repetition: repetition.as_ref(),
                ..Origin::alone(&lineage)
            };
            let answered = pipeline::run_boxed(&turn, call, origin).await;
            let result = answered.result;
            let Some(wait) = answered.side.wait else {
                if let Some(suspension) = answered.side.suspension {
                    lock(&self.unfinished).suspended = Some(suspension);
                }
                return result;
            };
            match wait.decision(&self.cancellation).await {
                Ok(decided) => {
                    // The decision must match the current definition.
                    turn = self.turn.on_the_current_snapshot();
                    call = decided.call();
                    (grant, repetition) = (Some(Arc::new(decided)), None);
                }
                Err(error) => {
                    let (id, tool) = (result.call_id().clone(), result.tool().to_owned());
                    return ToolResult::failure(id, tool, error, result.duration());
                }
            }
        }
    }
}

/// Counts a nested call until it is dropped.
struct NestedCallGuard<'c>(&'c AtomicUsize);

impl<'c> NestedCallGuard<'c> {
    fn begin(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for NestedCallGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// No foreign code runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CallHost for ExecutorHost {
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
        let own = self.at_work.limit_end().map(|(at, _)| at);
        own.into_iter().chain(self.descent.parent().deadline()).min().map(Instant::into_std)
    }

    fn status(&self, update: StatusUpdate) {
        if let Some(speech) = &self.speech {
            speech.status(update);
        }
    }

    fn is_watched(&self) -> bool {
        self.speech.is_some()
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
