//! Long-running child programs and their pipes.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::capture::Recorder;
use super::run::{KILL_WAIT, off_thread, report};
use super::scratch::remove_full;
use super::start::{Started, StdinSource, start};
use super::sys::watch_owned;
use super::tree::{ProcessTree, TreeGuard};
use super::{Captured, Command, KillReport, SpawnError, Status};
use crate::Enforced;
use crate::program::ChildExit;

/// The maximum size of one read of standard error.
const CHUNK: usize = 4 * 1024;

/// A program that has just been started: its process and its pipes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Child {
    /// The process. Dropping it ends the program.
    pub process: ChildProcess,
    /// Its standard input. Dropping it closes the pipe; a well-behaved program then ends.
    pub input: ChildStdin,
    /// Its standard output.
    pub output: ChildStdout,
}

/// Starts a command and leaves it running.
///
/// The program is started as [`run`](super::run) starts it. The caller has to read the
/// [`ChildStdout`]: a program whose pipe is full waits. Standard error is read continuously; the
/// command's [`capture_stderr`](Command::capture_stderr) determines how much of it is kept. The
/// command's own [`stdin`](Command::stdin) text is not used.
///
/// The program is started on a thread that may block. If that takes longer than ten seconds, the
/// start fails ([`SpawnError::Late`]).
///
/// ```
/// use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
/// use toolcrib_sandbox::{Command, spawn};
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut cat = spawn(&Command::new("cat")).await?;
/// cat.input.write_all(b"one line\n").await?;
/// let mut line = String::new();
/// BufReader::new(&mut cat.output).read_line(&mut line).await?;
/// assert_eq!(line, "one line\n");
///
/// drop(cat.input);
/// let ended = cat.process.stop(Duration::from_secs(5)).await;
/// assert_eq!(ended.status.code(), Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// Outside a tokio runtime with I/O and time enabled.
pub async fn spawn(command: &Command) -> Result<Child, SpawnError> {
    let (command, started) = start(command.clone(), StdinSource::Pipe).await?;
    // From here on, any failure drops the guard, which ends the program.
    let Started { guard, stdin, stdout, stderr, enforced } = started;
    let ended = watch_owned(guard.tree().end_handle()?)?;
    let stdin = stdin.ok_or_else(|| io::Error::other("the program has no standard input"))?;
    let input = ChildStdin(Sender::from_owned_fd(stdin)?);
    let output = ChildStdout(Receiver::from_owned_fd(stdout)?);
    let errors =
        StderrReader::drain(stderr, Recorder::new(command.stderr, command.filters.as_ref()))?;
    Ok(Child { process: ChildProcess { guard, ended, errors, enforced }, input, output })
}

/// A child process that is running or has ended by itself.
///
/// Dropping it ends its process tree without waiting: it sends SIGTERM at once, and a background
/// thread does the rest (see [`finish_kills`](super::finish_kills)).
#[derive(Debug)]
pub struct ChildProcess {
    guard: TreeGuard,
    ended: AsyncFd<OwnedFd>,
    errors: StderrReader,
    enforced: Enforced,
}

impl ChildProcess {
    /// Completes when the program itself has ended; processes that it started may still run. Any
    /// number of tasks may wait.
    pub async fn ended(&self) {
        // This fails only if the runtime is shutting down, which ends all waiting tasks too.
        if let Ok(mut ready) = self.ended.readable().await {
            ready.retain_ready();
        }
    }

    /// The restrictions that the kernel enforces on it.
    pub fn enforced(&self) -> &Enforced {
        &self.enforced
    }

    /// Whether the program itself has ended.
    pub fn has_ended(&self) -> bool {
        self.guard.tree().wait(Duration::ZERO)
    }

    /// The captured part of its standard error so far.
    pub fn stderr(&self) -> Captured {
        self.errors.so_far()
    }

    /// Ends the program and everything it started, and returns when none of its processes is left.
    ///
    /// First it waits up to `patience` for the program to end by itself, which a well-behaved program
    /// does once its input is closed. Then it sends SIGTERM, and after the command's
    /// [grace period](Command::grace) SIGKILL.
    pub async fn stop(self, patience: Duration) -> ChildExit {
        if !self.has_ended() {
            let _ = timeout(patience, self.ended()).await;
        }
        let by_itself = self.has_ended();
        let Self { guard, ended, errors, .. } = self;
        let went = async |time| {
            let _ = timeout(time, ended.readable()).await;
        };
        let rung = guard.tree().rung();
        let unknown = KillReport { rung, forced: false, survivors_killed: 0, complete: false };
        let mut forced = false;
        let guard = if by_itself {
            guard
        } else {
            let Ok((guard, ())) = off_thread(guard, ProcessTree::identify).await else {
                // The runtime is shutting down; the guard has ended the processes.
                return ChildExit {
                    status: Status::Unknown,
                    stderr: errors.so_far(),
                    kill: unknown,
                };
            };
            guard.tree().signal(Signal::TERM);
            went(guard.tree().grace()).await;
            forced = !guard.tree().wait(Duration::ZERO);
            guard
        };
        guard.tree().signal(Signal::KILL);
        went(KILL_WAIT).await;
        let gone = guard.tree().wait(Duration::ZERO);
        let Ok((mut guard, swept)) = off_thread(guard, ProcessTree::sweep).await else {
            return ChildExit { status: Status::Unknown, stderr: errors.so_far(), kill: unknown };
        };
        let mut kill = report(guard.tree(), forced, swept);
        if !gone {
            // It is stuck in the kernel. The guard hands it to the reaper, which keeps waiting.
            kill.complete = false;
            return ChildExit { status: Status::Unknown, stderr: errors.so_far(), kill };
        }
        let status = guard.tree().reap();
        guard.disarm();
        if let Some(scratch) = guard.tree().take_full_scratch() {
            remove_full(scratch).await;
        }
        ChildExit { status, stderr: errors.all().await, kill }
    }
}

/// The standard input of a child program.
#[derive(Debug)]
pub struct ChildStdin(Sender);

/// The standard output of a child program.
#[derive(Debug)]
pub struct ChildStdout(Receiver);

impl AsyncWrite for ChildStdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl AsyncRead for ChildStdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

/// How long to read remaining output after a program's end.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(500);

/// Reads standard error to its end in a background task.
#[derive(Debug)]
struct StderrReader {
    recorder: Arc<Mutex<Recorder>>,
    task: JoinHandle<()>,
}

impl StderrReader {
    fn drain(stderr: OwnedFd, recorder: Recorder) -> io::Result<Self> {
        let mut pipe = Receiver::from_owned_fd(stderr)?;
        let recorder = Arc::new(Mutex::new(recorder));
        let shared = Arc::clone(&recorder);
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; CHUNK];
            while let Ok(count) = pipe.read(&mut buffer).await
                && count > 0
            {
                shared.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
            }
            shared.lock().unwrap_or_else(PoisonError::into_inner).end();
        });
        Ok(Self { recorder, task })
    }

    /// The complete output once the program has ended: reads what the pipe still holds. If another
    /// process keeps the pipe open, it waits only for a short time.
    async fn all(mut self) -> Captured {
        let _ = timeout(LAST_WORDS_WAIT, &mut self.task).await;
        self.so_far()
    }

    fn so_far(&self) -> Captured {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner).so_far()
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}
