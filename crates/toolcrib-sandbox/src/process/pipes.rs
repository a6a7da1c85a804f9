//! Feeding standard input and draining both outputs at the same time.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::{Receiver, Sender};

use super::capture::Recorder;
use super::{Capture, Captured, OutputFilters, OutputKind, OutputTap};

/// The maximum size of one read: the usual size of a pipe.
const CHUNK: usize = 64 * 1024;

/// Our ends of a program's pipes. Every method is cancel-safe and can be called again.
pub(crate) struct Pipes {
    stdin: InputPipe,
    stdout: OutputPipe,
    stderr: OutputPipe,
}

impl Pipes {
    /// Wraps our ends and makes them non-blocking; the child's ends stay blocking, as programs expect. Both outputs
    /// pass through the filters, if there are any, and then through the tap. Must be called inside a tokio runtime with
    /// I/O enabled.
    pub(crate) fn new(
        stdin: Option<OwnedFd>,
        text: Vec<u8>,
        stdout: (OwnedFd, Capture),
        stderr: (OwnedFd, Capture),
        filters: Option<&OutputFilters>,
        tap: Option<&OutputTap>,
    ) -> io::Result<Self> {
        let recorder = |capture, kind| Recorder::new(capture, filters).tapped(kind, tap);
        let pipe = match stdin {
            Some(fd) => Some(Sender::from_owned_fd(fd)?),
            None => None,
        };
        Ok(Self {
            stdin: InputPipe { pipe, text, written: 0 },
            stdout: OutputPipe::new(stdout.0, recorder(stdout.1, OutputKind::Stdout))?,
            stderr: OutputPipe::new(stderr.0, recorder(stderr.1, OutputKind::Stderr))?,
        })
    }

    /// Completes when both outputs have ended. Meanwhile it writes standard input, which a program
    /// need not read.
    pub(crate) async fn drain(&mut self) {
        let Self { stdin, stdout, stderr } = self;
        let outputs = async {
            tokio::join!(stdout.drain(), stderr.drain());
        };
        let feeding = async {
            stdin.feed().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = outputs => {}
            () = feeding => {}
        }
    }

    /// Closes the pipes and returns what was captured of standard output and standard error.
    pub(crate) fn close(self) -> (Captured, Captured) {
        (self.stdout.recorder.finish(), self.stderr.recorder.finish())
    }
}

/// Our end of standard input.
struct InputPipe {
    pipe: Option<Sender>,
    text: Vec<u8>,
    written: usize,
}

impl InputPipe {
    /// Writes the rest, then closes the pipe. It is no error if the reader has gone: not every
    /// program reads its input to the end.
    async fn feed(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        while self.written < self.text.len() {
            if pipe.writable().await.is_err() {
                break;
            }
            match pipe.try_write(&self.text[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if is_passing(&error) => {}
                Err(_) => break,
            }
            tokio::task::coop::consume_budget().await;
        }
        self.pipe = None;
        self.text = Vec::new();
        self.written = 0;
    }
}

/// Our end of standard output or standard error.
struct OutputPipe {
    pipe: Option<Receiver>,
    buffer: Vec<u8>,
    recorder: Recorder,
}

impl OutputPipe {
    fn new(fd: OwnedFd, recorder: Recorder) -> io::Result<Self> {
        let pipe = Some(Receiver::from_owned_fd(fd)?);
        Ok(Self { pipe, buffer: Vec::new(), recorder })
    }

    /// Reads to the end.
    async fn drain(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        loop {
            if pipe.readable().await.is_err() {
                break;
            }
            // Many programs write nothing to standard error, so no buffer is allocated before the
            // first byte.
            self.buffer.resize(CHUNK, 0);
            match pipe.try_read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => self.recorder.push(&self.buffer[..count]),
                Err(error) if is_passing(&error) => {}
                Err(_) => break,
            }
            // A program that floods its output must not delay the check of `stop`.
            tokio::task::coop::consume_budget().await;
        }
        self.pipe = None;
        self.buffer = Vec::new();
    }
}

/// Whether a retry may succeed.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
