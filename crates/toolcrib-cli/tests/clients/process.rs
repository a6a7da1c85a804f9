//! Child processes that end with their test: killed on drop, and awaited only with a time limit.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long one run of a client may take.
pub(crate) const CLIENT_LIMIT: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(10);

/// A process with no input whose output goes to files: a grandchild that outlives it cannot keep a
/// pipe open and a reader waiting.
pub(crate) struct Running {
    child: Child,
    output: TempDir,
}

/// The result of a process.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(program: &Path, configure: impl FnOnce(&mut Command)) -> Self {
        let output = TempDir::new().unwrap();
        let file = |name| File::create(output.path().join(name)).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "the test starts clients and the binary itself"
        )]
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        configure(&mut command);
        let child = command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        Self { child, output }
    }

    /// Waits for the end of the process.
    pub(crate) fn finish(mut self, limit: Duration) -> Finished {
        let status = self.wait_until(limit, "ended", |running| running.child.try_wait().unwrap());
        Finished { status, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Waits for the first whole line on standard output.
    pub(crate) fn first_line(&mut self, limit: Duration) -> String {
        self.wait_until(limit, "written a line", |running| {
            // This is checked before the output is read, so that the last line is not missed.
            let ended = running.child.try_wait().unwrap();
            let line = running.stdout().split_once('\n').map(|(line, _)| line.to_owned());
            if let (Some(status), None) = (ended, &line) {
                panic!("the process ended ({status}):\n{}", running.stderr());
            }
            line
        })
    }

    pub(crate) fn stderr(&self) -> String {
        self.read("stderr")
    }

    pub(crate) fn stdout(&self) -> String {
        self.read("stdout")
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.output.path().join(name)).unwrap()).into_owned()
    }

    fn wait_until<T>(
        &mut self,
        limit: Duration,
        what: &str,
        mut ready: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(found) = ready(self) {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "the process has not {what} within {limit:?}:\n{}{}",
                self.stdout(),
                self.stderr()
            );
            sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail only if the process has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
