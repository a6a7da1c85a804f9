//! The audit log as messages to syslog (RFC 5424).

mod address;
mod connection;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use toolcrib_core::audit::{AuditRecord, AuditSink, rfc3339};

pub use address::SyslogAddress;
use connection::{Connection, SendError};

/// Records that may wait for syslog.
const QUEUE: usize = 4096;

/// How long after a failure the connection is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long what waits is still sent at the end.
const LAST: Duration = Duration::from_secs(2);

/// Sends every record as a message to syslog, from a thread of its own: facility 13 (log audit), severity info, the
/// application `toolcrib`, the message ID `audit`, and as text the same JSON as in the file.
///
/// A call never waits for syslog. While it is away, up to 4,096 records wait for it, and the connection is tried
/// again every second; further records are lost, counted ([`lost`](AuditSink::lost)) and logged once. A record that
/// is too large for one message is sent without its arguments.
///
/// ```
/// use std::os::unix::net::UnixDatagram;
/// use std::time::SystemTime;
/// use toolcrib::core::audit::{AuditRecord, AuditSink};
/// use toolcrib::stores::SyslogAudit;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("log");
/// let syslog = UnixDatagram::bind(&path)?;
/// let audit = SyslogAudit::start(path.to_string_lossy().parse()?)?;
/// audit.record(&AuditRecord::new(SystemTime::UNIX_EPOCH, "call_1", "calculator"));
/// let mut message = [0; 1024];
/// let length = syslog.recv(&mut message)?;
/// let message = std::str::from_utf8(&message[..length])?;
/// assert!(message.starts_with("<110>1 1970-01-01T00:00:00.000Z "), "{message}");
/// assert!(message.contains(r#" audit - {"v":1,"#), "{message}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SyslogAudit {
    address: SyslogAddress,
    header: String,
    /// `None` only while it is dropped.
    queue: Option<SyncSender<SenderMessage>>,
    sender: Option<JoinHandle<()>>,
    state: Arc<SenderState>,
}

#[derive(Debug)]
enum SenderMessage {
    Record(Message),
    /// To be answered when everything before it is sent, or given up.
    Flush(SyncSender<()>),
}

/// A message, and the one that is sent if it is too large.
#[derive(Debug)]
struct Message {
    text: String,
    short: Option<String>,
}

#[derive(Debug, Default)]
struct SenderState {
    lost: AtomicU64,
    said: AtomicBool,
    /// Until when what waits is still sent, once the server ends.
    until: OnceLock<Instant>,
    problem: Mutex<Option<String>>,
}

impl SenderState {
    /// Whether the server has been ending for long enough.
    fn is_over(&self) -> bool {
        self.until.get().is_some_and(|until| Instant::now() >= *until)
    }

    fn lose(&self, records: u64, reason: &str) {
        self.lost.fetch_add(records, Ordering::Relaxed);
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::error!(%reason, "audit records for syslog are lost; this is said once");
        }
    }

    fn set_problem(&self, problem: Option<String>, address: &SyslogAddress) {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &problem) {
            (None, Some(problem)) => {
                tracing::warn!(%address, %problem, "audit records cannot be sent to syslog and wait");
            }
            (Some(_), None) => tracing::info!(%address, "audit records are sent to syslog again"),
            _ => {}
        }
        *known = problem;
    }
}

impl SyslogAudit {
    /// Starts sending to an address. Whether anybody listens there shows with the first record
    /// ([`problem`](AuditSink::problem)).
    pub fn start(address: SyslogAddress) -> io::Result<Self> {
        let state = Arc::new(SenderState::default());
        let (queue, messages) = sync_channel(QUEUE);
        let thread = SyslogSender {
            connection: Connection::new(address.clone()),
            address: address.clone(),
            state: Arc::clone(&state),
            unsent: 0,
        };
        let sender = std::thread::Builder::new()
            .name("toolcrib-syslog".into())
            .spawn(move || thread.run(&messages))?;
        let header = format!("{} toolcrib {} audit - ", host(), std::process::id());
        Ok(Self { address, header, queue: Some(queue), sender: Some(sender), state })
    }

    /// Where records are sent.
    pub fn address(&self) -> &SyslogAddress {
        &self.address
    }

    /// Waits until everything recorded so far is sent, at most two seconds. Blocks the thread.
    pub fn flush(&self) {
        let (done, sent) = sync_channel(1);
        let asked = self
            .queue
            .as_ref()
            .is_some_and(|queue| queue.try_send(SenderMessage::Flush(done)).is_ok());
        if asked {
            // An error means that the sender is gone, or syslog away.
            let _ = sent.recv_timeout(LAST);
        }
    }

    fn message(&self, record: &AuditRecord) -> Message {
        let head = format!("<110>1 {} {}", rfc3339(record.time), self.header);
        let text = format!("{head}{}", record.to_json());
        let short = record.arguments.as_ref().map(|arguments| {
            let mut record = record.clone();
            let bytes = arguments.to_string().len();
            record.arguments = Some(format!("[{bytes} bytes, too large for syslog]").into());
            format!("{head}{}", record.to_json())
        });
        Message { short: short.filter(|short| short.len() < text.len()), text }
    }
}

impl AuditSink for SyslogAudit {
    fn record(&self, record: &AuditRecord) {
        let Some(queue) = &self.queue else { return };
        let message = SenderMessage::Record(self.message(record));
        if let Err(error) = queue.try_send(message) {
            self.state.lose(1, &error.to_string());
        }
    }

    fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }

    fn name(&self) -> String {
        self.address.to_string()
    }

    fn problem(&self) -> Option<String> {
        self.state.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn flush(&self) {
        Self::flush(self);
    }

    fn finish(&self) {
        let _ = self.state.until.set(Instant::now() + LAST);
        let Some(queue) = &self.queue else { return };
        let (done, sent) = sync_channel(1);
        // A full queue is empty after `LAST`.
        if queue.send(SenderMessage::Flush(done)).is_ok() {
            // An error means that the sender is gone, or that connecting takes longer.
            let _ = sent.recv_timeout(2 * LAST);
        }
    }
}

impl Drop for SyslogAudit {
    fn drop(&mut self) {
        let _ = self.state.until.set(Instant::now() + LAST);
        drop(self.queue.take());
        if let Some(sender) = self.sender.take() {
            // A panic of the sender has been reported by its own thread.
            let _ = sender.join();
        }
    }
}

/// The host's name, as a word of a header.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let word: String = name.chars().filter(char::is_ascii_graphic).take(255).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

/// The thread that sends.
struct SyslogSender {
    connection: Connection,
    address: SyslogAddress,
    state: Arc<SenderState>,
    /// Records that could not be sent before the end, and that were not logged yet.
    unsent: u64,
}

impl SyslogSender {
    fn run(mut self, messages: &Receiver<SenderMessage>) {
        while let Ok(message) = messages.recv() {
            match message {
                SenderMessage::Record(message) => self.deliver(&message),
                SenderMessage::Flush(done) => {
                    self.report_unsent();
                    // Who asked may have stopped waiting.
                    let _ = done.send(());
                }
            }
        }
        self.report_unsent();
    }

    fn report_unsent(&mut self) {
        let records = std::mem::take(&mut self.unsent);
        if records > 0 {
            tracing::error!(
                address = %self.address,
                records,
                "audit records were not sent to syslog before the server ended; `audit.file` has them if it is set"
            );
        }
    }

    /// Sends a message, as soon as syslog takes it.
    fn deliver(&mut self, message: &Message) {
        // After the end each record is tried once more, as long as syslog takes them.
        while self.unsent == 0 || !self.state.is_over() {
            let sent = match self.connection.send(&message.text) {
                Err(SendError::TooLarge) => match &message.short {
                    Some(short) => self.connection.send(short),
                    None => Err(SendError::TooLarge),
                },
                sent => sent,
            };
            match sent {
                Ok(()) => return self.state.set_problem(None, &self.address),
                Err(SendError::TooLarge) => {
                    return self.state.lose(1, "a record is too large for one message");
                }
                Err(SendError::Away(problem)) => {
                    self.state.set_problem(Some(problem), &self.address);
                }
            }
            if self.state.is_over() {
                break;
            }
            let failed_at = Instant::now();
            while failed_at.elapsed() < RETRY && !self.state.is_over() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.unsent += 1;
        self.state.lost.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
