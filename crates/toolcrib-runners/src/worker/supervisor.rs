//! Starts, replaces and stops a worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcrib_manifest::declaration::{SandboxSpec, WorkerSpec};
use toolcrib_sandbox::{Capture, Command, Confinement, ControlPlane, Places, SealedFile, spawn};
use toolcrib_tool::{ByteMasks, ErrorKind, ToolError};

use super::running::{Exchange, RunningWorker};
use crate::RunnerHost;
use crate::command::not_started;
use crate::command::script;
use crate::command::started::by_texts;
use crate::confinement::grants;
use crate::expansion::expand_without_call;
use crate::trust::TrustRenewal;
use crate::trust::deciding_files;
use crate::trust::deciding_files::{DecidingFiles, is_behind_a_link};

/// The backoff after a failed start; doubled for each further failure.
const BACKOFF: Duration = Duration::from_millis(100);
/// The longest backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// The grace period between the request to end and the kill.
const GRACE: Duration = Duration::from_millis(500);
/// How many bytes at the end of a worker's standard error are kept.
const STDERR_BYTES: usize = 16 * 1024;

/// Keeps one worker running while it is used.
#[derive(Debug)]
pub(super) struct WorkerSupervisor {
    spec: WorkerSpec,
    sandbox: SandboxSpec,
    host: RunnerHost,
    /// The files that decide what the worker runs.
    deciding: DecidingFiles,
    /// What to do after one of them has changed.
    renewal: TrustRenewal,
    next_id: AtomicU64,
    /// Held during a start: one start at a time, and waiting calls use the worker it yields.
    starting: tokio::sync::Mutex<()>,
    state: Mutex<SupervisorState>,
}

#[derive(Debug, Default)]
struct SupervisorState {
    current: Option<CurrentWorker>,
    /// Consecutive starts of workers that wrote no valid line.
    failures: u32,
    /// No start is tried before this time.
    not_before: Option<Instant>,
    last_failure: String,
    closed: bool,
}

#[derive(Debug)]
struct CurrentWorker {
    live: Arc<RunningWorker>,
    calls: u64,
    used: Instant,
}

fn removed() -> ToolError {
    ToolError::unavailable("the tool was removed")
}

impl WorkerSupervisor {
    /// The files that decide what the worker runs, with their digests.
    pub(super) fn code(&self) -> String {
        deciding_files::contents(&self.deciding.all())
    }

    pub(super) fn new(
        spec: WorkerSpec,
        sandbox: SandboxSpec,
        host: RunnerHost,
        deciding: DecidingFiles,
        renewal: TrustRenewal,
    ) -> Self {
        Self {
            spec,
            sandbox,
            host,
            deciding,
            renewal,
            next_id: AtomicU64::new(1),
            starting: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, SupervisorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: returns its number and its exchange with the worker, which is started if necessary. `masks` hides
    /// secrets in the worker's standard error and in invalid lines.
    pub(super) async fn begin(
        self: &Arc<Self>,
        masks: Option<ByteMasks>,
    ) -> Result<(u64, Exchange), ToolError> {
        let live = self.state().current.as_ref().map(|current| Arc::clone(&current.live));
        if let Some(live) = live {
            live.acknowledged().await;
        }
        if let Some(begun) = self.join()? {
            return Ok(begun);
        }
        let _starting = self.starting.lock().await;
        if let Some(begun) = self.join()? {
            return Ok(begun);
        }
        self.state().may_start()?;
        let started = self.start(masks).await;
        let mut state = self.state();
        match started {
            // Dropping the worker ends it.
            Ok(_) if state.closed => return Err(removed()),
            Ok(live) => {
                let used = Instant::now();
                state.current = Some(CurrentWorker { live, calls: 0, used });
            }
            Err(error) => {
                state.failed(error.message().to_owned());
                return Err(error);
            }
        }
        self.exchange(&mut state).ok_or_else(|| ToolError::internal("no worker is running"))
    }

    /// Begins a call with the running worker, if there is one.
    fn join(&self) -> Result<Option<(u64, Exchange)>, ToolError> {
        let mut state = self.state();
        if state.closed {
            return Err(removed());
        }
        if state.current.as_ref().is_some_and(|current| !current.live.is_usable()) {
            state.clear_exited();
        }
        Ok(self.exchange(&mut state))
    }

    fn exchange(&self, state: &mut SupervisorState) -> Option<(u64, Exchange)> {
        let current = state.current.as_mut()?;
        current.calls += 1;
        current.used = Instant::now();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let exchange = current.live.begin(id);
        // Its last call: it ends when its calls are answered, and the next call starts another.
        if self.spec.max_calls.is_some_and(|max| current.calls >= max) {
            state.current = None;
        }
        Some((id, exchange))
    }

    async fn start(
        self: &Arc<Self>,
        masks: Option<ByteMasks>,
    ) -> Result<Arc<RunningWorker>, ToolError> {
        let [program, arguments @ ..] = self.spec.argv.as_slice() else {
            return Err(ToolError::internal("the tool's declaration names no program"));
        };
        // Absolute, because a relative program path is resolved against the working directory.
        let folder = std::path::absolute(&self.spec.folder)
            .or_else(|_| std::env::current_dir())
            .map_err(|error| ToolError::unavailable(format!("no working directory: {error}")))?;
        deciding_files::check(&self.host.control_plane, self.deciding.all())?;
        let linked = self.deciding.linked.iter();
        let linked = linked.filter(|file| is_behind_a_link(file, &self.host.workspace_root));
        if let Some(problem) = deciding_files::linked(&linked.cloned().collect::<Vec<_>>()) {
            return Err(ToolError::unavailable(format!("the tool {problem}")));
        }
        // Before the grants are computed: a file that appears in between counts as new.
        let before = self.host.control_plane.places();
        let grants = grants(&self.sandbox, &self.host).job_control(false).read(&folder);
        let programs = by_texts(self.spec.argv.iter().map(String::as_str));
        let grants = programs.into_iter().fold(grants, Confinement::starts);
        let mut command = Command::new(program)
            .confine(grants.clone().control_plane(&self.host.control_plane))
            .pass_env(&self.spec.pass_env)
            .cwd(folder)
            .capture_stderr(Capture { head: 0, tail: STDERR_BYTES })
            .filter_output(masks.clone())
            .grace(GRACE);
        // A bare name is looked up on PATH, whatever is beside the manifest.
        if program.contains('/')
            && let Some(sealed) = self.pinned(program)?
        {
            command = command.sealed(sealed);
        }
        for argument in arguments {
            command = match self.pinned(argument)? {
                Some(sealed) => command.sealed_arg(sealed),
                None => command.arg(argument),
            };
        }
        if let Some((name, value)) = self.deciding.python_safe_path() {
            command = command.env(name, value);
        }
        for variable in &self.spec.pass_env {
            crate::expansion::may_pass(&self.host, variable)?;
        }
        for (name, template) in &self.spec.env {
            command = command.env(name, expand_without_call(template, &self.host)?);
        }
        let kept = spawn(&command).await.map_err(not_started)?;
        let live = Arc::new(RunningWorker::new(kept, program.clone(), self.spec.line_bytes, masks));
        let supervisor = Arc::downgrade(self);
        let watched = Arc::downgrade(&live);
        drop(tokio::spawn(stop_when_idle(supervisor, watched, self.spec.idle)));
        let outgrown = end_when_grants_are_outdated(
            self.host.control_plane.clone(),
            before,
            grants,
            Arc::downgrade(&live),
        );
        live.watched_by(tokio::spawn(outgrown).abort_handle());
        Ok(live)
    }

    /// If files are pinned: a copy of the file that the worker gets under this name, which must be unchanged since the
    /// manifest was loaded.
    fn pinned(&self, name: &str) -> Result<Option<SealedFile>, ToolError> {
        let file = self.spec.files.get(name).filter(|_| self.host.pinned_scripts);
        let Some(file) = file else { return Ok(None) };
        let sealed = script::unchanged(file, || self.renewal.advice(&self.host))
            .and_then(|bytes| script::sealed(file, &bytes));
        let refused = |problem| ToolError::unavailable(format!("the tool {problem}"));
        sealed.map(Some).map_err(refused)
    }

    /// Ends the worker if it has been idle for so long; else returns the remaining time.
    fn stop_if_idle(&self, live: &Weak<RunningWorker>, idle: Duration) -> Option<Duration> {
        let mut state = self.state();
        let current = state.current.as_ref()?;
        if !std::ptr::eq(Arc::as_ptr(&current.live), live.as_ptr()) {
            return None;
        }
        let used = current.live.last_answer().map_or(current.used, |last| last.max(current.used));
        let left = idle.saturating_sub(used.elapsed());
        if current.live.is_busy() {
            return Some(left.max(Duration::from_millis(100)));
        }
        if left.is_zero() {
            state.current = None;
            return None;
        }
        Some(left)
    }

    /// Ends the worker and starts no other.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let current = state.current.take();
        drop(state);
        if let Some(current) = current {
            current.live.end("was ended: the tool was removed".to_owned());
        }
    }
}

impl SupervisorState {
    /// Forgets a worker that has ended. If it has written a line for a call, another may start at once.
    fn clear_exited(&mut self) {
        let Some(CurrentWorker { live, .. }) = self.current.take() else { return };
        if live.delivered() > 0 {
            self.failures = 0;
            self.not_before = None;
            return;
        }
        let reason = live.gone().map_or_else(
            || "ended before it answered a call".to_owned(),
            |gone| gone.reason.clone(),
        );
        self.failed(format!("the worker {reason}"));
    }

    fn failed(&mut self, reason: String) {
        let wait = BACKOFF.saturating_mul(1 << self.failures.min(10)).min(BACKOFF_MAX);
        self.failures += 1;
        self.not_before = Some(Instant::now() + wait);
        self.last_failure = reason;
    }

    /// Fails during the backoff after a worker that could not start or answered nothing.
    fn may_start(&self) -> Result<(), ToolError> {
        let left = self.not_before.and_then(|at| at.checked_duration_since(Instant::now()));
        let Some(left) = left else { return Ok(()) };
        let message = format!(
            "the worker did not come up, {} in a row; the next try is in {:.1} s. The last time: {}",
            if self.failures == 1 { "once".to_owned() } else { format!("{} times", self.failures) },
            left.as_secs_f64(),
            self.last_failure
        );
        Err(ToolError::new(ErrorKind::Unavailable, message).with_retryable(true))
    }
}

/// Ends the worker once a file that decides what the server runs has come into its grants, which stay in force as long
/// as it runs. The next call starts another.
async fn end_when_grants_are_outdated(
    plane: ControlPlane,
    before: Arc<Places>,
    grants: Confinement,
    live: Weak<RunningWorker>,
) {
    plane.outgrown(&before, &grants).await;
    if let Some(live) = live.upgrade() {
        live.end("was ended: it could have changed files that the server runs now".to_owned());
    }
}

/// Runs as long as the worker may still be ended for being idle.
async fn stop_when_idle(
    supervisor: Weak<WorkerSupervisor>,
    live: Weak<RunningWorker>,
    idle: Duration,
) {
    let mut wait = idle;
    loop {
        tokio::time::sleep(wait).await;
        let Some(supervisor) = supervisor.upgrade() else { return };
        match supervisor.stop_if_idle(&live, idle) {
            Some(left) => wait = left,
            None => return,
        }
    }
}
