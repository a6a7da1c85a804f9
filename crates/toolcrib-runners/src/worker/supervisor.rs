//! When a worker is started, replaced and let go.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use toolcrib_manifest::declaration::{SandboxSpec, WorkerSpec};
use toolcrib_sandbox::{Capture, Command, Confinement, ControlPlane, Places, SealedFile, keep};
use toolcrib_tool::{ByteMasks, ErrorKind, ToolError};

use super::live::{Exchange, Live};
use crate::RunnerHost;
use crate::command::not_started;
use crate::command::script;
use crate::confinement::grants;
use crate::expansion::lasting;
use crate::trust::Renewal;
use crate::trust::deciding_files;
use crate::trust::deciding_files::{Deciding, is_behind_a_link};

/// The wait after a start that failed; doubled with every further one.
const BACKOFF: Duration = Duration::from_millis(100);
/// The longest wait.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Between asking a worker to end and ending it.
const GRACE: Duration = Duration::from_millis(500);
/// What is kept of a worker's standard error: its end.
const STDERR_BYTES: usize = 16 * 1024;

/// Keeps one worker running while it is used.
#[derive(Debug)]
pub(super) struct Supervisor {
    spec: WorkerSpec,
    sandbox: SandboxSpec,
    host: RunnerHost,
    /// Files that decide what the worker is.
    deciding: Deciding,
    /// What to do after one of them has changed.
    renewal: Renewal,
    next_id: AtomicU64,
    /// Held during a start: there is one at a time, and the others take the worker it gives.
    starting: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Current>,
    /// Starts after which no call was answered, one after another.
    failures: u32,
    /// Before this no other start is tried.
    not_before: Option<Instant>,
    last_failure: String,
    closed: bool,
}

#[derive(Debug)]
struct Current {
    live: Arc<Live>,
    calls: u64,
    used: Instant,
}

fn removed() -> ToolError {
    ToolError::unavailable("the tool was removed")
}

impl Supervisor {
    /// The files that decide what the worker is, with their digests.
    pub(super) fn code(&self) -> String {
        deciding_files::contents(&self.deciding.all())
    }

    pub(super) fn new(
        spec: WorkerSpec,
        sandbox: SandboxSpec,
        host: RunnerHost,
        deciding: Deciding,
        renewal: Renewal,
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call's number, and its way to a worker, which is started if none is there. What that one says
    /// on standard error, and in lines that are no answers, is masked by `masks`.
    pub(super) async fn begin(
        self: &Arc<Self>,
        masks: Option<ByteMasks>,
    ) -> Result<(u64, Exchange), ToolError> {
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
                state.current = Some(Current { live, calls: 0, used });
            }
            Err(error) => {
                state.failed(error.message().to_owned());
                return Err(error);
            }
        }
        self.exchange(&mut state).ok_or_else(|| ToolError::internal("no worker is there"))
    }

    /// The same with the worker that is there, if one is.
    fn join(&self) -> Result<Option<(u64, Exchange)>, ToolError> {
        let mut state = self.state();
        if state.closed {
            return Err(removed());
        }
        if state.current.as_ref().is_some_and(|current| !current.live.is_usable()) {
            state.bury();
        }
        Ok(self.exchange(&mut state))
    }

    fn exchange(&self, state: &mut State) -> Option<(u64, Exchange)> {
        let current = state.current.as_mut()?;
        current.calls += 1;
        current.used = Instant::now();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let exchange = current.live.begin(id);
        // Its last call: it goes when the calls it has are answered, and the next starts another.
        if self.spec.max_calls.is_some_and(|max| current.calls >= max) {
            state.current = None;
        }
        Some((id, exchange))
    }

    async fn start(self: &Arc<Self>, masks: Option<ByteMasks>) -> Result<Arc<Live>, ToolError> {
        let [program, arguments @ ..] = self.spec.argv.as_slice() else {
            return Err(ToolError::internal("the tool's declaration names no program"));
        };
        // Absolute: a program with a path of its own is looked up from where it starts.
        let folder = std::path::absolute(&self.spec.folder)
            .or_else(|_| std::env::current_dir())
            .map_err(|error| ToolError::unavailable(format!("no working directory: {error}")))?;
        deciding_files::check(&self.host.control_plane, self.deciding.all())?;
        let linked = self.deciding.linked.iter();
        let linked = linked.filter(|file| is_behind_a_link(file, &self.host.workspace_root));
        if let Some(problem) = deciding_files::linked(&linked.cloned().collect::<Vec<_>>()) {
            return Err(ToolError::unavailable(format!("the tool {problem}")));
        }
        // Before the grants are worked out: what comes in between counts as new.
        let before = self.host.control_plane.places();
        let grants = grants(&self.sandbox, &self.host).job_control(false).read(&folder);
        let mut command = Command::new(program)
            .confine(grants.clone().control_plane(&self.host.control_plane))
            .pass_env(&self.spec.pass_env)
            .cwd(folder)
            .capture_stderr(Capture { head: 0, tail: STDERR_BYTES })
            .filter_output(masks.clone())
            .grace(GRACE);
        // A bare name is a program's on PATH, whatever stands beside the manifest.
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
        for variable in &self.spec.pass_env {
            crate::expansion::may_pass(&self.host, variable)?;
        }
        for (name, template) in &self.spec.env {
            command = command.env(name, lasting(template, &self.host)?);
        }
        let kept = keep(&command).await.map_err(not_started)?;
        let live = Arc::new(Live::new(kept, self.spec.line_bytes, masks));
        let supervisor = Arc::downgrade(self);
        let watched = Arc::downgrade(&live);
        drop(tokio::spawn(let_go_when_idle(supervisor, watched, self.spec.idle)));
        let outgrown = end_when_outgrown(
            self.host.control_plane.clone(),
            before,
            grants,
            Arc::downgrade(&live),
        );
        live.watched_by(tokio::spawn(outgrown).abort_handle());
        Ok(live)
    }

    /// Where files are pinned: a copy of the one that the worker is given under this name, which has to
    /// be what it was when the manifest was loaded.
    fn pinned(&self, name: &str) -> Result<Option<SealedFile>, ToolError> {
        let file = self.spec.files.get(name).filter(|_| self.host.pinned_scripts);
        let Some(file) = file else { return Ok(None) };
        let sealed = script::unchanged(file, || self.renewal.advice(&self.host))
            .and_then(|bytes| script::sealed(file, &bytes));
        let refused = |problem| ToolError::unavailable(format!("the tool {problem}"));
        sealed.map(Some).map_err(refused)
    }

    /// Lets the worker go if it has not been used for so long; else says how long that still takes.
    fn let_go(&self, live: &Weak<Live>, idle: Duration) -> Option<Duration> {
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

    /// Lets the worker go, and starts no other.
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

impl State {
    /// Forgets a worker that is gone. One that has answered may be started again at once.
    fn bury(&mut self) {
        let Some(Current { live, .. }) = self.current.take() else { return };
        if live.answered() > 0 {
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

    /// Fails while a worker that could not be started, or answered nothing, is left alone.
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

/// Ends the worker once what decides what the server runs has come into its grants, which it keeps for
/// as long as it runs. The next call starts another.
async fn end_when_outgrown(
    plane: ControlPlane,
    before: Arc<Places>,
    grants: Confinement,
    live: Weak<Live>,
) {
    plane.outgrown(&before, &grants).await;
    if let Some(live) = live.upgrade() {
        live.end("was ended: it could have changed files that the server runs now".to_owned());
    }
}

/// Runs as long as the worker may still be let go for being idle.
async fn let_go_when_idle(supervisor: Weak<Supervisor>, live: Weak<Live>, idle: Duration) {
    let mut wait = idle;
    loop {
        tokio::time::sleep(wait).await;
        let Some(supervisor) = supervisor.upgrade() else { return };
        match supervisor.let_go(&live, idle) {
            Some(left) => wait = left,
            None => return,
        }
    }
}
