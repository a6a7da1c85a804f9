//! One running worker: calls go in, answers come out, in any order.
//!
//! Nobody reads while nobody waits, so that an answer needs no second task: of the calls in flight
//! one reads for all. What a worker says unasked fills its pipe and stops it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use toolcrib_sandbox::{Captured, Ended, Kept, KeptInput, KeptOutput, KeptProcess};

use super::protocol::{self, Reply};
use crate::confinement::facts;
use toolcrib_tool::ByteMasks;

/// How long a worker has to answer a call that was cancelled.
pub(super) const CANCEL_WAIT: Duration = Duration::from_millis(500);
/// How long the end of a worker that closed its output is waited for, to say how it ended.
const END_WAIT: Duration = Duration::from_millis(200);
/// Room made for one read.
const CHUNK: usize = 8 * 1024;

/// Why a worker answers no more.
#[derive(Debug, Clone)]
pub(super) struct Gone {
    /// A clause after "the worker".
    pub(super) reason: String,
    /// What it said last on standard error.
    pub(super) stderr: Captured,
}

type Answer = Result<Reply, Arc<Gone>>;

/// A worker that was started.
pub(super) struct Live {
    /// What holds it, as results tell it.
    sandbox: Value,
    process: Mutex<Option<KeptProcess>>,
    input: tokio::sync::Mutex<KeptInput>,
    output: tokio::sync::Mutex<Lines>,
    waiting: Mutex<Waiting>,
    answered: AtomicU64,
    /// A task that is of no use once the worker is gone.
    watcher: Mutex<Option<AbortHandle>>,
    /// What hides secrets in what is told of it.
    masks: Option<ByteMasks>,
}

#[derive(Debug, Default)]
struct Waiting {
    calls: HashMap<u64, oneshot::Sender<Answer>>,
    /// The worker is being ended: nobody reads any more, and `gone` will be told.
    ending: bool,
    last_answer: Option<Instant>,
    gone: Option<Arc<Gone>>,
}

impl Drop for Live {
    fn drop(&mut self) {
        let watcher = self.watcher.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = watcher.take() {
            task.abort();
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("process", &self.process)
            .field("waiting", &self.waiting)
            .field("answered", &self.answered)
            .finish_non_exhaustive()
    }
}

impl Live {
    pub(super) fn new(kept: Kept, line_bytes: usize, masks: Option<ByteMasks>) -> Self {
        Self {
            sandbox: facts(kept.process.enforced()),
            process: Mutex::new(Some(kept.process)),
            input: tokio::sync::Mutex::new(kept.input),
            output: tokio::sync::Mutex::new(Lines::new(kept.output, line_bytes)),
            waiting: Mutex::default(),
            answered: AtomicU64::new(0),
            watcher: Mutex::default(),
            masks,
        }
    }

    /// Has a task end with the worker.
    pub(super) fn watched_by(&self, task: AbortHandle) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self) -> MutexGuard<'_, Option<KeptProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls can be given to it.
    pub(super) fn is_usable(&self) -> bool {
        !self.waiting().ending
            && self.process().as_ref().is_some_and(|process| !process.has_ended())
    }

    /// Whether calls wait for an answer.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting().calls.is_empty()
    }

    /// When it answered last.
    pub(super) fn last_answer(&self) -> Option<Instant> {
        self.waiting().last_answer
    }

    /// How many answers it has given.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Why it is gone, once that is known.
    pub(super) fn gone(&self) -> Option<Arc<Gone>> {
        self.waiting().gone.clone()
    }

    /// Begins a call.
    pub(super) fn begin(self: &Arc<Self>, id: u64) -> Exchange {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        match &waiting.gone {
            Some(gone) => drop(sender.send(Err(Arc::clone(gone)))),
            None => drop(waiting.calls.insert(id, sender)),
        }
        drop(waiting);
        Exchange { live: Arc::clone(self), id, receiver: Some(receiver), sent: Sent::Nothing }
    }

    /// Ends it now: every call in flight fails with the reason, a clause after "the worker".
    pub(super) fn end(&self, reason: String) {
        let Some(process) = self.take_process() else { return };
        self.tell(Gone { reason, stderr: process.stderr() });
        // Dropped, it is ended without waiting.
        drop(process);
    }

    /// It closed its output, which no worker does that goes on: finds out how it ended.
    fn ended(self: &Arc<Self>) {
        let Some(process) = self.take_process() else { return };
        let live = Arc::clone(self);
        let find_out = async move {
            let Ended { status, stderr, .. } = process.stop(END_WAIT).await;
            let reason = match (status.code(), status.signal_name(), status.signal()) {
                (Some(code), ..) => format!("exited with code {code}"),
                (_, Some(name), _) => format!("was ended by {name}"),
                (_, _, Some(number)) => format!("was ended by signal {number}"),
                _ => "closed its output".to_owned(),
            };
            live.tell(Gone { reason, stderr });
        };
        // Not inside the call that noticed: it may be dropped, and the others want to know, too.
        drop(tokio::spawn(find_out));
    }

    /// The process, taken by whoever ends it; the first to come does.
    fn take_process(&self) -> Option<KeptProcess> {
        self.waiting().ending = true;
        self.process().take()
    }

    fn tell(&self, gone: Gone) {
        let gone = Arc::new(gone);
        let mut waiting = self.waiting();
        waiting.gone = Some(Arc::clone(&gone));
        for (_, call) in waiting.calls.drain() {
            // Whoever does not wait any more need not know.
            let _ = call.send(Err(Arc::clone(&gone)));
        }
    }

    /// Reads until an answer to somebody has come, and hands it over.
    async fn read(self: &Arc<Self>, lines: &mut Lines) {
        match lines.next().await {
            Ok(Some(line)) => match protocol::answer(line, self.masks.as_ref()) {
                Ok((id, reply)) => {
                    let mut waiting = self.waiting();
                    let call = waiting.calls.remove(&id);
                    waiting.last_answer = Some(Instant::now());
                    drop(waiting);
                    match call {
                        Some(call) => {
                            self.answered.fetch_add(1, Ordering::Relaxed);
                            let _ = call.send(Ok(reply));
                        }
                        None => self.end(format!("answered call {id}, for which nobody waits")),
                    }
                }
                Err(problem) => self.end(problem),
            },
            Ok(None) => self.ended(),
            Err(TooLong { bytes }) => self.end(format!(
                "wrote a line of more than {bytes} bytes; `limits.output` says how long one may be"
            )),
        }
    }

    /// Asks it to give up a call and waits for its answer to that; ends it if none comes.
    async fn cancel(self: Arc<Self>, id: u64, mut receiver: oneshot::Receiver<Answer>) {
        let asked = async {
            self.input.lock().await.write_all(&protocol::cancel(id)).await.ok()?;
            wait(&self, &mut receiver).await.ok()
        };
        if timeout(CANCEL_WAIT, asked).await.ok().flatten().is_none() {
            self.end("was ended: it did not answer a call that was cancelled".to_owned());
        }
    }
}

/// Waits for an answer, and reads for all who wait while nobody else does.
async fn wait(live: &Arc<Live>, receiver: &mut oneshot::Receiver<Answer>) -> Answer {
    tokio::select! {
        biased;
        answer = &mut *receiver => return answer.unwrap_or_else(|_| Err(lost())),
        mut lines = live.output.lock() => {
            while !live.waiting().ending {
                match receiver.try_recv() {
                    Ok(answer) => return answer,
                    Err(oneshot::error::TryRecvError::Closed) => return Err(lost()),
                    Err(oneshot::error::TryRecvError::Empty) => live.read(&mut lines).await,
                }
            }
        }
    }
    // It is being ended; whoever does that tells.
    receiver.await.unwrap_or_else(|_| Err(lost()))
}

fn lost() -> Arc<Gone> {
    Arc::new(Gone { reason: "was given up".to_owned(), stderr: Captured::default() })
}

/// How much of a call's line the worker has been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    Part,
    All,
}

/// One call with a worker. Dropped before its answer has come, the worker is asked to give it up,
/// and ended if it does not.
#[derive(Debug)]
pub(super) struct Exchange {
    live: Arc<Live>,
    id: u64,
    /// Gone once the answer has come.
    receiver: Option<oneshot::Receiver<Answer>>,
    sent: Sent,
}

impl Exchange {
    /// What holds the worker, as results tell it.
    pub(super) fn sandbox(&self) -> &Value {
        &self.live.sandbox
    }

    /// Sends the line and waits for its answer.
    pub(super) async fn run(&mut self, line: &[u8]) -> Answer {
        let written = {
            let mut input = self.live.input.lock().await;
            self.sent = Sent::Part;
            input.write_all(line).await
        };
        self.sent = Sent::All;
        if written.is_err() {
            // Nobody reads at the other end: how it ended is what its output's end tells.
            self.live.ended();
        }
        let Some(receiver) = &mut self.receiver else { return Err(lost()) };
        let answer = wait(&self.live, receiver).await;
        self.receiver = None;
        answer
    }

    /// Gives the call up, and returns when the worker has agreed or is being ended.
    pub(super) async fn cancel(mut self) {
        if let Some((live, id, receiver)) = self.take_up() {
            live.cancel(id, receiver).await;
        }
    }

    /// What there is to give up, if the worker knows of the call.
    fn take_up(&mut self) -> Option<(Arc<Live>, u64, oneshot::Receiver<Answer>)> {
        let receiver = self.receiver.take()?;
        match self.sent {
            Sent::All => return Some((Arc::clone(&self.live), self.id, receiver)),
            // Half a line would spoil the next one.
            Sent::Part => self.live.end("was ended: it did not take a call in time".to_owned()),
            Sent::Nothing => {
                self.live.waiting().calls.remove(&self.id);
            }
        }
        None
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some((live, id, receiver)) = self.take_up() else { return };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(live.cancel(id, receiver))),
            Err(_) => live.end("was ended: a call was given up".to_owned()),
        }
    }
}

/// A line longer than it may be.
#[derive(Debug)]
struct TooLong {
    bytes: usize,
}

/// Standard output, line by line. A read may be dropped halfway and begun again.
#[derive(Debug)]
struct Lines {
    output: KeptOutput,
    buffer: Vec<u8>,
    /// The line that was given last, which goes before the next is read.
    given: usize,
    /// How far no line end was found.
    searched: usize,
    max: usize,
}

impl Lines {
    fn new(output: KeptOutput, max: usize) -> Self {
        Self { output, buffer: Vec::new(), given: 0, searched: 0, max }
    }

    /// The next line without its end; none at the end of the output.
    async fn next(&mut self) -> Result<Option<&[u8]>, TooLong> {
        if self.given > 0 {
            self.buffer.drain(..self.given);
            self.given = 0;
            self.searched = 0;
        }
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + found;
                if end > self.max {
                    return Err(TooLong { bytes: self.max });
                }
                self.given = end + 1;
                return Ok(Some(&self.buffer[..end]));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > self.max {
                return Err(TooLong { bytes: self.max });
            }
            self.buffer.reserve(CHUNK);
            // A failure to read is an end, too: how the worker ended says more.
            if !matches!(self.output.read_buf(&mut self.buffer).await, Ok(1..)) {
                return Ok(None);
            }
        }
    }
}
