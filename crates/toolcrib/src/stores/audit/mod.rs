//! The audit log: a file of JSON lines, and messages to syslog.

mod open;
mod rotation;
mod sinks;
mod syslog;
mod tail;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use toolcrib_core::audit::{AuditRecord, AuditSink};

pub use rotation::Rotation;
pub(crate) use sinks::AuditSinks;
pub use syslog::{SyslogAddress, SyslogAudit};

/// Records that may wait for the disk.
const QUEUE: usize = 4096;

/// How often the ages of files are looked at while nothing is recorded.
const LOOK: Duration = Duration::from_secs(60);

/// Bytes written at once at most.
const BATCH: usize = 256 * 1024;

/// Appends a line of JSON per call to a file, from a thread of its own.
///
/// A new file has mode 0600; an existing one keeps its mode, and a warning says if other users can reach it. The file
/// must be a regular file: links, FIFOs, sockets and devices are refused, when it is opened for the first time and later.
///
/// A call never waits for the disk: when 4,096 records wait, further ones are lost, counted
/// ([`lost`](AuditSink::lost)) and logged once. When the file is moved away or removed, as log
/// rotation does, a new one is begun; [`rotating`](Self::rotating) does it by itself. Dropping it
/// writes what waits. What is written is with the operating system; it is not forced onto the disk.
///
/// ```
/// use std::time::SystemTime;
/// use toolcrib::core::audit::{AuditRecord, AuditSink};
/// use toolcrib::stores::FileAudit;
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("audit.jsonl");
/// let audit = FileAudit::open(&path)?;
/// audit.record(&AuditRecord::new(SystemTime::now(), "call_1", "calculator"));
/// audit.flush();
/// assert!(std::fs::read_to_string(&path)?.contains(r#""tool":"calculator""#));
/// assert_eq!(audit.lost(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileAudit {
    path: PathBuf,
    rotation: Arc<Mutex<Rotation>>,
    /// `None` only while it is dropped.
    queue: Option<SyncSender<WriterMessage>>,
    writer: Option<JoinHandle<()>>,
    losses: Arc<Losses>,
}

#[derive(Debug)]
enum WriterMessage {
    Line(String),
    /// To be answered when everything before it is written.
    Flush(SyncSender<()>),
}

#[derive(Debug, Default)]
struct Losses {
    records: AtomicU64,
    said: AtomicBool,
    /// Why records cannot be written now.
    problem: Mutex<Option<String>>,
}

impl Losses {
    fn add(&self, records: u64, reason: &dyn std::fmt::Display) {
        self.records.fetch_add(records, Ordering::Relaxed);
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::error!(%reason, "audit records are lost; this is said once");
        }
    }

    fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FileAudit {
    /// Opens the file for appending, made if it is not there. A line that an earlier process did
    /// not finish is ended.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::open_as(path.into(), Rotation::NEVER)
    }

    /// As [`open`](Self::open), and moves the file away when it has grown enough.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use toolcrib::core::audit::{AuditRecord, AuditSink};
    /// use toolcrib::stores::{FileAudit, Rotation};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("audit.jsonl");
    /// let rotation = Rotation { max_bytes: Some(100), keep: 2, max_age: None };
    /// let audit = FileAudit::rotating(&path, rotation)?;
    /// for call in ["call_1", "call_2"] {
    ///     audit.record(&AuditRecord::new(SystemTime::now(), call, "calculator"));
    ///     audit.flush();
    /// }
    /// assert!(std::fs::read_to_string(dir.path().join("audit.jsonl.1"))?.contains("call_2"));
    /// let last = audit.tail(1)?;
    /// assert_eq!(last[0]["call_id"], "call_2");
    /// # Ok(())
    /// # }
    /// ```
    pub fn rotating(path: impl Into<PathBuf>, rotation: Rotation) -> io::Result<Self> {
        Self::open_as(path.into(), rotation)
    }

    /// Moves the file aside by these rules from now on.
    pub fn rotate_by(&self, rotation: Rotation) {
        *self.rotation.lock().unwrap_or_else(PoisonError::into_inner) = rotation;
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last records, the oldest first, at most so many; those in files that were rotated away
    /// included, as far as 4 MiB of each go. Waits until what was recorded is written. Blocks the
    /// thread.
    pub fn tail(&self, records: usize) -> io::Result<Vec<Value>> {
        self.flush();
        let rotation = *self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        tail::last(&self.path, rotation, records)
    }

    fn open_as(path: PathBuf, rotation: Rotation) -> io::Result<Self> {
        let log = OpenLog::open(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("the audit log {}: {error}", path.display()))
        })?;
        let losses = Arc::new(Losses::default());
        let (queue, messages) = sync_channel(QUEUE);
        let rotation = Arc::new(Mutex::new(rotation));
        let writer = AuditWriter {
            path: path.clone(),
            rotation: Arc::clone(&rotation),
            log: Some(log),
            cleared: None,
            losses: Arc::clone(&losses),
        };
        let writer = std::thread::Builder::new()
            .name("toolcrib-audit".into())
            .spawn(move || writer.run(&messages))?;
        Ok(Self { path, rotation, queue: Some(queue), writer: Some(writer), losses })
    }

    /// Waits until everything recorded so far is written, or lost and counted. Blocks the thread.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        let asked =
            self.queue.as_ref().is_some_and(|queue| queue.send(WriterMessage::Flush(done)).is_ok());
        if asked {
            // An error means that the writer is gone: there is nothing to wait for.
            let _ = written.recv();
        }
    }
}

impl AuditSink for FileAudit {
    fn record(&self, record: &AuditRecord) {
        let Some(queue) = &self.queue else { return };
        if let Err(error) = queue.try_send(WriterMessage::Line(record.to_json())) {
            self.losses.add(1, &error);
        }
    }

    fn lost(&self) -> u64 {
        self.losses.records.load(Ordering::Relaxed)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn problem(&self) -> Option<String> {
        self.losses.problem()
    }

    fn flush(&self) {
        Self::flush(self);
    }
}

impl Drop for FileAudit {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been reported by its own thread.
            let _ = writer.join();
        }
    }
}

/// The thread that writes.
struct AuditWriter {
    path: PathBuf,
    rotation: Arc<Mutex<Rotation>>,
    /// `None` after a failure, until it can be opened again.
    log: Option<OpenLog>,
    /// By which rules old files were last removed, and when.
    cleared: Option<(Rotation, Instant)>,
    losses: Arc<Losses>,
}

impl AuditWriter {
    fn run(mut self, messages: &Receiver<WriterMessage>) {
        self.rotate();
        loop {
            let first = match messages.recv_timeout(LOOK) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.rotate();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let (mut lines, mut count, mut waiting) = (String::new(), 0, Vec::new());
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    WriterMessage::Line(line) => {
                        lines.push_str(&line);
                        lines.push('\n');
                        count += 1;
                    }
                    WriterMessage::Flush(done) => waiting.push(done),
                }
                next = if lines.len() < BATCH { messages.try_recv().ok() } else { None };
            }
            if count > 0 {
                let written = self.write(&lines);
                if let Err(error) = &written {
                    self.losses.add(count, error);
                    self.log = None;
                }
                self.losses.set_problem(written.err().map(|error| error.to_string()));
            }
            for done in waiting {
                // Who asked may have stopped waiting.
                let _ = done.send(());
            }
        }
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        let mut log = match self.log.take() {
            Some(log) if log.is_at(&self.path) => log,
            _ => OpenLog::open(&self.path)?,
        };
        log.file.write_all(lines.as_bytes())?;
        self.log = Some(log);
        self.rotate();
        Ok(())
    }

    /// Moves the file aside if it is long or old enough, and removes files that are too old.
    fn rotate(&mut self) {
        let rotation = *self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(log) = &mut self.log else { return };
        let done = rotation.apply(&self.path, log).and_then(|was_moved| {
            let is_recent =
                |(rules, at): &(Rotation, Instant)| *rules == rotation && at.elapsed() < LOOK;
            if was_moved || !self.cleared.as_ref().is_some_and(is_recent) {
                self.cleared = Some((rotation, Instant::now()));
                rotation.clear(&self.path)?;
            }
            Ok(())
        });
        if let Err(error) = done {
            // The records are written; the file is longer than it should be.
            tracing::warn!(%error, "the audit log could not be rotated");
        }
    }
}

/// The open file, and which one it is.
struct OpenLog {
    file: File,
    identity: (u64, u64),
    /// When its first record was made, once that is known.
    began_at: Option<SystemTime>,
}

impl OpenLog {
    fn open(path: &Path) -> io::Result<Self> {
        let (mut file, found) = open::for_appending(path)?;
        if found.len() > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file, identity: (found.dev(), found.ino()), began_at: None })
    }

    fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }
}

#[cfg(test)]
mod tests;
