//! One running worker: calls go in, and answers come out in any order.
//!
//! No task is needed to read answers: one of the waiting calls reads for all of them, and while no call waits, nobody
//! reads. A worker that writes unsolicited output fills its pipe and blocks.
//! The reader never waits for clients that watch: what a worker reports before its answer goes to the buffer of its call.

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use toolcrib_sandbox::{Captured, Child, ChildExit, ChildProcess, ChildStdin, ChildStdout};

use super::protocol::{self, WorkerLine, WorkerReply, WorkerReport};
use crate::confinement::facts;
use crate::output::live::WorkerTap;
use toolcrib_tool::ByteMasks;

/// How long a worker has to acknowledge a cancelled call.
pub(super) const CANCEL_WAIT: Duration = Duration::from_millis(500);
/// How long to wait for the exit of a worker that closed its output, to report how it ended.
const END_WAIT: Duration = Duration::from_millis(200);
/// The buffer size of one read, in bytes.
const CHUNK: usize = 8 * 1024;
/// After this number of lines the reader yields, so that timers and cancellation work even if a worker never pauses.
const LINES_AT_ONCE: u32 = 32;

/// Why a worker has ended.
#[derive(Debug, Clone)]
pub(super) struct WorkerExit {
    /// A clause after "the worker".
    pub(super) reason: String,
    /// The end of its standard error.
    pub(super) stderr: Captured,
}

type WorkerAnswer = Result<WorkerReply, Arc<WorkerExit>>;

/// A started worker.
pub(super) struct RunningWorker {
    /// Its confinement, as results report it.
    sandbox: Value,
    process: Mutex<Option<ChildProcess>>,
    input: tokio::sync::Mutex<ChildStdin>,
    output: tokio::sync::Mutex<OutputLines>,
    waiting: Mutex<PendingCalls>,
    /// Told when a cancelled call was acknowledged, or the worker is ended because it was not.
    acknowledged: Notify,
    /// The number of lines that reached their calls.
    delivered: AtomicU64,
    /// The number of reports that belonged to no waiting call.
    strays: AtomicU64,
    /// The program, for the log.
    program: String,
    /// A task that is aborted when the worker ends.
    watcher: Mutex<Option<AbortHandle>>,
    /// Masks secrets in messages about the worker.
    masks: Option<ByteMasks>,
}

#[derive(Debug, Default)]
struct PendingCalls {
    calls: HashMap<u64, InFlight>,
    /// Cancelled calls that it has not acknowledged.
    cancelling: usize,
    /// Whether the worker is being ended: nobody reads any more, and `gone` will be set.
    ending: bool,
    last_answer: Option<Instant>,
    gone: Option<Arc<WorkerExit>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct InFlight {
    answer: oneshot::Sender<WorkerAnswer>,
    /// The buffer for what the worker reports before its answer, if a client watches the call.
    tap: Option<WorkerTap>,
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        let watcher = self.watcher.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = watcher.take() {
            task.abort();
        }
    }
}

impl fmt::Debug for RunningWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningWorker")
            .field("process", &self.process)
            .field("waiting", &self.waiting)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}

impl RunningWorker {
    pub(super) fn new(
        kept: Child,
        program: String,
        line_bytes: usize,
        masks: Option<ByteMasks>,
    ) -> Self {
        Self {
            program,
            strays: AtomicU64::new(0),
            sandbox: facts(kept.process.enforced()),
            process: Mutex::new(Some(kept.process)),
            input: tokio::sync::Mutex::new(kept.input),
            output: tokio::sync::Mutex::new(OutputLines::new(kept.output, line_bytes)),
            waiting: Mutex::default(),
            acknowledged: Notify::new(),
            delivered: AtomicU64::new(0),
            watcher: Mutex::default(),
            masks,
        }
    }

    /// Sets a task that is aborted when the worker ends.
    pub(super) fn watched_by(&self, task: AbortHandle) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    fn waiting(&self) -> MutexGuard<'_, PendingCalls> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self) -> MutexGuard<'_, Option<ChildProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls can be sent to it.
    pub(super) fn is_usable(&self) -> bool {
        !self.waiting().ending
            && self.process().as_ref().is_some_and(|process| !process.has_ended())
    }

    /// Waits until every cancelled call was acknowledged, or the worker is ended because one was not. A call that it
    /// gets before would end with it.
    pub(super) async fn acknowledged(&self) {
        loop {
            let mut acknowledged = pin!(self.acknowledged.notified());
            // Registered before the state is read, so that a change between the two is not missed.
            acknowledged.as_mut().enable();
            if self.waiting().cancelling == 0 {
                return;
            }
            acknowledged.await;
        }
    }

    /// Whether calls are waiting for an answer.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting().calls.is_empty()
    }

    /// When it last answered.
    pub(super) fn last_answer(&self) -> Option<Instant> {
        self.waiting().last_answer
    }

    /// How many lines reached their calls: answers, and reports before them.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Why it has ended, once that is known.
    pub(super) fn gone(&self) -> Option<Arc<WorkerExit>> {
        self.waiting().gone.clone()
    }

    /// Begins a call.
    pub(super) fn begin(self: &Arc<Self>, id: u64) -> Exchange {
        let (answer, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        match &waiting.gone {
            Some(gone) => drop(answer.send(Err(Arc::clone(gone)))),
            None => drop(waiting.calls.insert(id, InFlight { answer, tap: None })),
        }
        drop(waiting);
        Exchange {
            live: Arc::clone(self),
            id,
            receiver: Some(receiver),
            sent: SendProgress::Nothing,
        }
    }

    /// Ends it now. Every call in flight fails with the reason, a clause after "the worker".
    pub(super) fn end(&self, reason: String) {
        let Some(process) = self.take_process() else { return };
        self.tell(WorkerExit { reason, stderr: process.stderr() });
        // Dropping the process ends it without waiting.
        drop(process);
    }

    /// It closed its output, so it is about to exit: finds out how it ended.
    fn ended(self: &Arc<Self>) {
        let Some(process) = self.take_process() else { return };
        let live = Arc::clone(self);
        let find_out = async move {
            let ChildExit { status, stderr, .. } = process.stop(END_WAIT).await;
            let reason = match (status.code(), status.signal_name(), status.signal()) {
                (Some(code), ..) => format!("exited with code {code}"),
                (_, Some(name), _) => format!("was ended by {name}"),
                (_, _, Some(number)) => format!("was ended by signal {number}"),
                _ => "closed its output".to_owned(),
            };
            live.tell(WorkerExit { reason, stderr });
        };
        // In a separate task, because the call that noticed may be dropped while the others still need the reason.
        drop(tokio::spawn(find_out));
    }

    /// Takes the process, unless another caller has taken it. The caller that gets it ends it.
    fn take_process(&self) -> Option<ChildProcess> {
        self.waiting().ending = true;
        self.process().take()
    }

    fn tell(&self, gone: WorkerExit) {
        let gone = Arc::new(gone);
        let mut waiting = self.waiting();
        waiting.gone = Some(Arc::clone(&gone));
        for (_, call) in waiting.calls.drain() {
            // Callers that no longer wait do not matter.
            let _ = call.answer.send(Err(Arc::clone(&gone)));
        }
    }

    /// Reads a line and delivers it to its call.
    async fn read(self: &Arc<Self>, lines: &mut OutputLines) {
        match lines.next().await {
            Ok(Some(line)) => match protocol::line(line, self.masks.as_ref()) {
                Ok((id, WorkerLine::Report(report))) => self.deliver(id, report),
                Ok((id, WorkerLine::Answer(reply))) => {
                    let mut waiting = self.waiting();
                    let call = waiting.calls.remove(&id);
                    waiting.last_answer = Some(Instant::now());
                    drop(waiting);
                    match call {
                        Some(call) => {
                            self.delivered.fetch_add(1, Ordering::Relaxed);
                            let _ = call.answer.send(Ok(reply));
                        }
                        None => self.end(format!("answered call {id}, which is not waiting")),
                    }
                }
                Err(problem) => self.end(problem),
            },
            Ok(None) => self.ended(),
            Err(LineTooLong { bytes }) => self.end(format!(
                "wrote a line of more than {bytes} bytes; `limits.output` sets the limit"
            )),
        }
    }

    /// Puts a report into the buffer of its call. Never waits.
    fn deliver(&self, id: u64, report: WorkerReport) {
        let waiting = self.waiting();
        let Some(call) = waiting.calls.get(&id) else {
            drop(waiting);
            let strays = self.strays.fetch_add(1, Ordering::Relaxed) + 1;
            // A worker that never stops must not fill the log.
            if strays.is_power_of_two() {
                tracing::warn!(
                    program = self.program,
                    call = id,
                    dropped = strays,
                    "a worker wrote a line of a call that is not waiting; it was dropped"
                );
            }
            return;
        };
        self.delivered.fetch_add(1, Ordering::Relaxed);
        let Some(tap) = call.tap.clone() else { return };
        drop(waiting);
        if let Some(chunk) = report.chunk {
            tap.chunk(&chunk);
        }
        if let Some(update) = report.update {
            tap.update(update);
        }
    }

    /// Cancels a call and waits for the acknowledgement; ends the worker if none comes.
    async fn cancel(cancelled: Cancelled) {
        let Cancelled { live, id, mut receiver, unacknowledged } = cancelled;
        let asked = async {
            live.input.lock().await.write_all(&protocol::cancel(id)).await.ok()?;
            wait(&live, &mut receiver).await.ok()
        };
        if timeout(CANCEL_WAIT, asked).await.ok().flatten().is_none() {
            live.end("was ended: it did not acknowledge a cancelled call".to_owned());
        }
        drop(unacknowledged);
    }
}

/// A cancelled call that the worker has to acknowledge.
struct Cancelled {
    live: Arc<RunningWorker>,
    id: u64,
    receiver: oneshot::Receiver<WorkerAnswer>,
    unacknowledged: Unacknowledged,
}

/// Counts a cancelled call until it is acknowledged or the worker is ended.
struct Unacknowledged(Arc<RunningWorker>);

impl Unacknowledged {
    fn begin(live: &Arc<RunningWorker>) -> Self {
        live.waiting().cancelling += 1;
        Self(Arc::clone(live))
    }
}

impl Drop for Unacknowledged {
    fn drop(&mut self) {
        self.0.waiting().cancelling -= 1;
        self.0.acknowledged.notify_waiters();
    }
}

/// Waits for an answer, and reads for all waiting calls while nobody else does.
async fn wait(
    live: &Arc<RunningWorker>,
    receiver: &mut oneshot::Receiver<WorkerAnswer>,
) -> WorkerAnswer {
    tokio::select! {
        biased;
        answer = &mut *receiver => return answer.unwrap_or_else(|_| Err(lost())),
        mut lines = live.output.lock() => {
            let mut lines_read = 0_u32;
            while !live.waiting().ending {
                if lines_read == LINES_AT_ONCE {
                    lines_read = 0;
                    tokio::task::yield_now().await;
                }
                lines_read += 1;
                match receiver.try_recv() {
                    Ok(answer) => return answer,
                    Err(oneshot::error::TryRecvError::Closed) => return Err(lost()),
                    Err(oneshot::error::TryRecvError::Empty) => live.read(&mut lines).await,
                }
            }
        }
    }
    // Somebody else ends it and reports the reason.
    receiver.await.unwrap_or_else(|_| Err(lost()))
}

fn lost() -> Arc<WorkerExit> {
    Arc::new(WorkerExit { reason: "was given up".to_owned(), stderr: Captured::default() })
}

/// How much of a call's line has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendProgress {
    Nothing,
    Part,
    All,
}

/// One call to a worker. If it is dropped before its answer has come, the call is cancelled, and the worker is ended if
/// it does not acknowledge.
#[derive(Debug)]
pub(super) struct Exchange {
    live: Arc<RunningWorker>,
    id: u64,
    /// `None` once the answer has come.
    receiver: Option<oneshot::Receiver<WorkerAnswer>>,
    sent: SendProgress,
}

impl Exchange {
    /// The worker's confinement, as results report it.
    pub(super) fn sandbox(&self) -> &Value {
        &self.live.sandbox
    }

    /// Whether the worker has not written a valid line since it was started.
    pub(super) fn worker_has_never_answered(&self) -> bool {
        self.live.delivered() == 0
    }

    /// Collects there what the worker reports before its answer.
    pub(super) fn watch(&self, tap: WorkerTap) {
        if let Some(call) = self.live.waiting().calls.get_mut(&self.id) {
            call.tap = Some(tap);
        }
    }

    /// Sends the line and waits for its answer.
    pub(super) async fn run(&mut self, line: &[u8]) -> WorkerAnswer {
        let written = {
            let mut input = self.live.input.lock().await;
            self.sent = SendProgress::Part;
            input.write_all(line).await
        };
        self.sent = SendProgress::All;
        if written.is_err() {
            // The pipe is closed; reading the output tells how the worker ended.
            self.live.ended();
        }
        let Some(receiver) = &mut self.receiver else { return Err(lost()) };
        let answer = wait(&self.live, receiver).await;
        self.receiver = None;
        answer
    }

    /// Cancels the call; returns when the worker has acknowledged or is being ended.
    pub(super) async fn cancel(mut self) {
        if let Some(cancelled) = self.take_unanswered() {
            RunningWorker::cancel(cancelled).await;
        }
    }

    /// What must be cancelled, if the worker knows the call.
    fn take_unanswered(&mut self) -> Option<Cancelled> {
        let receiver = self.receiver.take()?;
        match self.sent {
            SendProgress::All => {
                let (live, id) = (Arc::clone(&self.live), self.id);
                let unacknowledged = Unacknowledged::begin(&live);
                return Some(Cancelled { live, id, receiver, unacknowledged });
            }
            // Half a line would corrupt the next one.
            SendProgress::Part => {
                self.live.end("was ended: it did not read a call in time".to_owned());
            }
            SendProgress::Nothing => {
                self.live.waiting().calls.remove(&self.id);
            }
        }
        None
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(cancelled) = self.take_unanswered() else { return };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(RunningWorker::cancel(cancelled))),
            Err(_) => cancelled.live.end("was ended: a call was given up".to_owned()),
        }
    }
}

/// A line longer than the limit.
#[derive(Debug)]
struct LineTooLong {
    bytes: usize,
}

/// Standard output, line by line. A read may be dropped halfway and restarted.
#[derive(Debug)]
struct OutputLines {
    output: ChildStdout,
    buffer: Vec<u8>,
    /// The length of the line returned last; it is removed before the next read.
    given: usize,
    /// How far the buffer was searched for a line end.
    searched: usize,
    max: usize,
}

impl OutputLines {
    fn new(output: ChildStdout, max: usize) -> Self {
        Self { output, buffer: Vec::new(), given: 0, searched: 0, max }
    }

    /// The next line without its end; `None` at the end of the output.
    async fn next(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        if self.given > 0 {
            self.buffer.drain(..self.given);
            self.given = 0;
            self.searched = 0;
        }
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + found;
                if end > self.max {
                    return Err(LineTooLong { bytes: self.max });
                }
                self.given = end + 1;
                return Ok(Some(&self.buffer[..end]));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > self.max {
                return Err(LineTooLong { bytes: self.max });
            }
            self.buffer.reserve(CHUNK);
            // Treat a read error as the end of the output: how the worker ended explains more.
            if !matches!(self.output.read_buf(&mut self.buffer).await, Ok(1..)) {
                return Ok(None);
            }
        }
    }
}
