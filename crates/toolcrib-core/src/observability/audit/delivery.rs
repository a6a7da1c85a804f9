//! Delivers audit records to a receiver that may be unavailable for a while.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::AuditRecord;

/// Records that may wait for their receiver.
const QUEUE: usize = 4096;

/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// How long waiting records are still sent at the end, and how long a flush waits.
const LAST: Duration = Duration::from_secs(2);

/// How records reach their receiver. It is used by one thread, which it may block.
pub trait AuditTransport: Send + 'static {
    /// How many records it takes at once at most.
    const BATCH: usize;

    /// Sends the first of these records, as many as it can at once, and returns how many those are.
    fn send(&mut self, records: &[AuditRecord]) -> Result<usize, AuditSendError>;
}

/// Why records were not sent.
#[derive(Debug)]
pub enum AuditSendError {
    /// The receiver will never accept the first ones. They are lost.
    Refused {
        /// How many.
        records: usize,
        /// Why.
        reason: String,
    },
    /// The receiver does not accept records now. They are sent again.
    Unavailable(String),
}

/// Sends records from a thread of its own, in order.
///
/// Whoever records never waits. Up to 4,096 records wait while the receiver is unavailable, and sending is tried again
/// every second; further records are lost and counted. Dropping it sends what waits, for two seconds at most.
pub struct AuditDelivery {
    /// `None` only while it is dropped.
    queue: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<DeliveryState>,
}

enum Message {
    Record(Box<AuditRecord>),
    /// To be answered when everything before it is sent, or given up.
    Flush(SyncSender<()>),
}

/// How a delivery is getting on.
#[derive(Debug)]
pub struct DeliveryState {
    /// What receives the records, as logs name it.
    receiver: &'static str,
    lost: AtomicU64,
    was_logged: AtomicBool,
    /// Until when waiting records are still sent, once the server ends.
    until: OnceLock<Instant>,
    problem: Mutex<Option<String>>,
}

impl DeliveryState {
    /// Of a delivery to a receiver, which logs call `receiver`.
    pub fn new(receiver: &'static str) -> Arc<Self> {
        Arc::new(Self {
            receiver,
            lost: AtomicU64::new(0),
            was_logged: AtomicBool::new(false),
            until: OnceLock::new(),
            problem: Mutex::new(None),
        })
    }

    /// Whether the server has been ending for so long that nothing is waited for any more.
    pub fn is_over(&self) -> bool {
        self.until.get().is_some_and(|until| Instant::now() >= *until)
    }

    /// What is wrong until the next success, for reports.
    fn problem(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts records that the receiver will never have.
    pub fn lose(&self, records: usize, reason: &str) {
        self.count_lost(records);
        if records > 0 && !self.was_logged.swap(true, Ordering::Relaxed) {
            let receiver = self.receiver;
            tracing::error!(%reason, "audit records for {receiver} are lost; this is logged once");
        }
    }

    fn count_lost(&self, records: usize) {
        self.lost.fetch_add(u64::try_from(records).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn end_soon(&self) {
        // An earlier end holds.
        let _ = self.until.set(Instant::now() + LAST);
    }

    fn set_problem(&self, problem: Option<String>) {
        let receiver = self.receiver;
        let mut known = self.problem();
        match (&*known, &problem) {
            (None, Some(problem)) => {
                tracing::warn!(%problem, "audit records cannot be sent to {receiver} and wait");
            }
            (Some(_), None) => tracing::info!("audit records are sent to {receiver} again"),
            _ => {}
        }
        *known = problem;
    }
}

impl AuditDelivery {
    /// Starts delivering.
    pub fn start(state: Arc<DeliveryState>, transport: impl AuditTransport) -> io::Result<Self> {
        let (queue, messages) = sync_channel(QUEUE);
        let sender = Sender { transport, state: Arc::clone(&state), unsent: 0 };
        let thread = std::thread::Builder::new()
            .name("toolcrib-audit".into())
            .spawn(move || sender.run(&messages))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), state })
    }

    /// Takes a record, without waiting.
    pub fn record(&self, record: &AuditRecord) {
        let Some(queue) = &self.queue else { return };
        if let Err(error) = queue.try_send(Message::Record(Box::new(record.clone()))) {
            self.state.lose(1, &error.to_string());
        }
    }

    /// How many records were lost.
    pub fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }

    /// Why records cannot be sent now, if they cannot.
    pub fn problem(&self) -> Option<String> {
        self.state.problem().clone()
    }

    /// Waits until everything recorded so far is sent or lost, at most two seconds. Blocks the thread.
    pub fn flush(&self) {
        let (done, sent) = sync_channel(1);
        let is_asked =
            self.queue.as_ref().is_some_and(|queue| queue.try_send(Message::Flush(done)).is_ok());
        if is_asked {
            // An error means that the thread is gone, or that the receiver does not answer.
            let _ = sent.recv_timeout(LAST);
        }
    }

    /// As [`flush`](Self::flush), and what cannot be sent soon is given up, counted as lost, and its number logged.
    pub fn finish(&self) {
        self.state.end_soon();
        let Some(queue) = &self.queue else { return };
        let (done, sent) = sync_channel(1);
        // A full queue is empty after `LAST`.
        if queue.send(Message::Flush(done)).is_ok() {
            // An error means that the thread is gone, or that the receiver does not answer.
            let _ = sent.recv_timeout(2 * LAST);
        }
    }
}

impl Drop for AuditDelivery {
    fn drop(&mut self) {
        self.state.end_soon();
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by itself.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for AuditDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditDelivery").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The thread that sends.
struct Sender<T> {
    transport: T,
    state: Arc<DeliveryState>,
    /// Records that could not be sent before the end, and that were not logged yet.
    unsent: usize,
}

impl<T: AuditTransport> Sender<T> {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            let (mut records, mut waiting) = (Vec::new(), Vec::new());
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Record(record) => records.push(*record),
                    Message::Flush(done) => waiting.push(done),
                }
                next = if records.len() < T::BATCH { messages.try_recv().ok() } else { None };
            }
            self.deliver(&records);
            if !waiting.is_empty() {
                self.report_unsent();
            }
            for done in waiting {
                // The caller may have stopped waiting.
                let _ = done.send(());
            }
        }
        self.report_unsent();
    }

    /// Sends records as soon as the receiver accepts them. After the end each is tried once more, until one fails.
    fn deliver(&mut self, mut records: &[AuditRecord]) {
        while !records.is_empty() && (self.unsent == 0 || !self.state.is_over()) {
            match self.transport.send(records) {
                Ok(sent) => {
                    self.state.set_problem(None);
                    records = records.get(sent..).unwrap_or_default();
                }
                Err(AuditSendError::Refused { records: refused, reason }) => {
                    self.state.lose(refused, &reason);
                    *self.state.problem() = Some(reason);
                    records = records.get(refused..).unwrap_or_default();
                }
                Err(AuditSendError::Unavailable(problem)) => {
                    self.state.set_problem(Some(problem));
                    if self.state.is_over() {
                        break;
                    }
                    let failed_at = Instant::now();
                    while failed_at.elapsed() < RETRY && !self.state.is_over() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            }
        }
        self.unsent += records.len();
        self.state.count_lost(records.len());
    }

    fn report_unsent(&mut self) {
        let records = std::mem::take(&mut self.unsent);
        if records > 0 {
            let receiver = self.state.receiver;
            tracing::error!(
                records,
                "audit records were not sent to {receiver} before the server ended; `audit.file` has them if it is set"
            );
        }
    }
}
