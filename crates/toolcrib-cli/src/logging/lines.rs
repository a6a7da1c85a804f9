//! Writes log lines to a standard error that may not be read, without blocking the server.
//!
//! An MCP client may start a server and ignore its standard error. When that pipe is full, writing
//! to it blocks forever. Therefore a separate thread writes, and lines that it cannot keep up with
//! are dropped and counted; the count is logged when somebody reads again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// The maximum number of bytes in the queue. Further lines are dropped.
const WAITING_MAX: usize = 1024 * 1024;

/// The queue of lines.
pub(super) struct Lines<W> {
    state: Mutex<LineQueue>,
    changed: Condvar,
    /// Opens the output.
    target: fn() -> W,
    /// The line that stands for so many dropped lines.
    describe_dropped: fn(u64) -> String,
}

#[derive(Default)]
struct LineQueue {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    dropped: u64,
    /// Whether a thread writes. Until then lines are written directly.
    has_thread: bool,
    is_writing: bool,
}

impl<W: Write + 'static> Lines<W> {
    pub(super) fn new(target: fn() -> W, describe_dropped: fn(u64) -> String) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), target, describe_dropped }
    }

    /// Starts the writing thread. Call it when threads may be started. If that fails, lines are
    /// still written directly.
    pub(super) fn start(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.has_thread {
            return;
        }
        let lines = Arc::clone(self);
        let thread = std::thread::Builder::new().name("toolcrib-log".to_owned());
        state.has_thread = thread.spawn(move || lines.write_all()).is_ok();
    }

    /// Queues a line; never blocks once a thread writes.
    pub(super) fn push(&self, line: Vec<u8>) {
        let mut state = self.lock();
        if !state.has_thread {
            drop(state);
            let _ = (self.target)().write_all(&line);
        } else if state.bytes + line.len() > WAITING_MAX {
            state.dropped += 1;
        } else {
            state.bytes += line.len();
            state.waiting.push_back(line);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits until all lines are written, but no longer than `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut state = self.lock();
        while state.is_writing || !state.waiting.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The loop of the writing thread, which ends with the process.
    fn write_all(&self) {
        let mut target = (self.target)();
        loop {
            let (lines, dropped) = self.next();
            for line in &lines {
                // Ignore a closed standard error.
                let _ = target.write_all(line);
            }
            if dropped > 0 {
                let _ = writeln!(target, "{}", (self.describe_dropped)(dropped));
            }
            let _ = target.flush();
        }
    }

    /// Waits for lines.
    fn next(&self) -> (VecDeque<Vec<u8>>, u64) {
        let mut state = self.lock();
        state.is_writing = false;
        self.changed.notify_all();
        while state.waiting.is_empty() && state.dropped == 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_writing = true;
        state.bytes = 0;
        (std::mem::take(&mut state.waiting), std::mem::take(&mut state.dropped))
    }

    fn lock(&self) -> MutexGuard<'_, LineQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that is being formatted; dropping it queues the line.
pub(super) struct PendingLine<W: Write + 'static> {
    text: Vec<u8>,
    lines: Arc<Lines<W>>,
}

impl<W: Write + 'static> Write for PendingLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write + 'static> Drop for PendingLine<W> {
    fn drop(&mut self) {
        if !self.text.is_empty() {
            self.lines.push(std::mem::take(&mut self.text));
        }
    }
}

/// Creates lines for the log.
pub(super) struct Writer<W>(pub(super) Arc<Lines<W>>);

impl<'a, W: Write + 'static> MakeWriter<'a> for Writer<W> {
    type Writer = PendingLine<W>;

    fn make_writer(&'a self) -> PendingLine<W> {
        PendingLine { text: Vec::new(), lines: Arc::clone(&self.0) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    static IS_READ: AtomicBool = AtomicBool::new(false);

    /// A pipe that nobody reads at first.
    struct Pipe;

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            while !IS_READ.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            WRITTEN.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_unread_log_blocks_nobody_and_dropped_lines_are_counted() {
        let lines = Arc::new(Lines::new(|| Pipe, |lines| format!("{lines} lines were dropped")));
        lines.start();
        let started = Instant::now();
        let line = vec![b'x'; 1024];
        for _ in 0..5_000 {
            lines.push(line.clone());
        }
        lines.flush(Duration::from_millis(10));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        IS_READ.store(true, Ordering::SeqCst);
        lines.flush(Duration::from_secs(10));
        let told = || String::from_utf8(WRITTEN.lock().unwrap().clone()).unwrap();
        while !told().contains("lines were dropped") {
            assert!(started.elapsed() < Duration::from_secs(20), "nobody was told");
            std::thread::sleep(Duration::from_millis(5));
        }
        lines.push(b"last\n".to_vec());
        lines.flush(Duration::from_secs(10));
        assert!(told().ends_with("last\n"));
    }
}
