//! Running one program until its whole process tree has ended.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::pipes::Pipes;
use super::scratch::remove_full;
use super::start::{Started, StdinSource, start};
use super::sweep::SweepResult;
use super::tree::{ProcessTree, TreeGuard};
use super::{Captured, Command, Finished, KillReport, SpawnError, Status};

/// How long other processes may hold the outputs open after the program's end.
const DRAIN_GUARD: Duration = Duration::from_millis(500);
/// How long the kernel may take to carry out a SIGKILL.
pub(super) const KILL_WAIT: Duration = Duration::from_secs(1);
/// How long to read the rest of the output after every possible writer has ended.
const LAST_READ: Duration = Duration::from_millis(100);

/// Runs a command and returns when none of its processes is left.
///
/// When `stop` completes, the process group gets SIGTERM and, after the command's [grace
/// period](Command::grace), SIGKILL; processes that left the group are searched for and killed.
/// `run` then returns the output so far with [`stopped`](Finished::stopped) set, usually some
/// milliseconds after the grace period. If the program ends by itself but other processes keep its
/// outputs open, they get 500 ms to finish before they are ended too.
///
/// Dropping the future ends the tree in the same way without waiting: it sends SIGTERM at once, and
/// a background thread does the rest (see [`finish_kills`](super::finish_kills)).
///
/// The program is started on a thread that may block. If that takes longer than ten seconds, the
/// start fails ([`SpawnError::Late`]).
///
/// # Panics
///
/// Outside a tokio runtime with I/O and time enabled.
pub async fn run(command: Command, stop: impl Future<Output = ()>) -> Result<Finished, SpawnError> {
    let started_at = Instant::now();
    let program = command.program.to_string_lossy().into_owned();
    let (command, started) = start(command, StdinSource::Text).await?;
    follow(command, started, started_at, stop).await.map_err(|error| match error {
        // The program has run.
        SpawnError::Resources(source) => SpawnError::Unfollowed { program, source },
        error => error,
    })
}

/// Reads what a started program prints, and ends it.
async fn follow(
    command: Command,
    started: Started,
    started_at: Instant,
    stop: impl Future<Output = ()>,
) -> Result<Finished, SpawnError> {
    let Started { guard, stdin, stdout, stderr, enforced } = started;
    let mut pipes = Pipes::new(
        stdin,
        command.stdin,
        (stdout, command.stdout),
        (stderr, command.stderr),
        command.filters.as_ref(),
        command.tap.as_ref(),
    )?;

    let mut stop = std::pin::pin!(stop);
    let stopped = tokio::select! {
        biased;
        ended = guard.tree().ended() => { ended?; false }
        () = &mut stop => true,
        () = drain_forever(&mut pipes) => false,
    };
    let end = if stopped {
        end_stopped(guard, pipes).await?
    } else {
        end_exited(guard, pipes, stop.as_mut()).await?
    };
    Ok(Finished {
        status: end.status,
        stopped,
        stdout: end.stdout,
        stderr: end.stderr,
        duration: started_at.elapsed(),
        kill: end.kill,
        enforced,
    })
}

/// Runs a command on its own thread and waits for it, at most `limit` plus the time that ending it
/// takes. It is for callers that are not async, also inside a runtime. Blocks the calling thread.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_sandbox::{Command, run_blocking};
///
/// let finished = run_blocking(Command::new("echo").arg("a"), Duration::from_secs(10))?;
/// assert_eq!(finished.stdout.text(), "a\n");
/// # Ok::<(), toolcrib_sandbox::SpawnError>(())
/// ```
pub fn run_blocking(command: Command, limit: Duration) -> Result<Finished, SpawnError> {
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let finished = runtime.block_on(async { run(command, sleep(limit)).await });
        // A start that was given up may still occupy a thread.
        runtime.shutdown_background();
        finished
    };
    // A runtime cannot be entered inside another one, so this needs a thread.
    let thread = std::thread::Builder::new().name("toolcrib-run".to_owned()).spawn(work)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread ended early").into()))
}

/// How a tree ended.
struct TreeEnd {
    status: Status,
    stdout: Captured,
    stderr: Captured,
    kill: KillReport,
}

/// The program has ended by itself; its group may still have members.
async fn end_exited(
    guard: TreeGuard,
    mut pipes: Pipes,
    stop: impl Future<Output = ()>,
) -> Result<TreeEnd, SpawnError> {
    let drained = tokio::select! {
        biased;
        () = pipes.drain() => true,
        () = stop => false,
        () = sleep(DRAIN_GUARD) => false,
    };
    guard.tree().signal(Signal::KILL);
    let (stdout, stderr) = pipes.close();
    if drained {
        let status = guard.tree().reap();
        // The usual case: the program left nothing behind, so `/proc` need not be read.
        if !guard.tree().group_lingers() {
            let kill = report(guard.tree(), false, NOTHING_FOUND);
            return finish(guard, status, stdout, stderr, kill).await;
        }
        let (guard, swept) = off_thread(guard, ProcessTree::sweep).await?;
        let kill = report(guard.tree(), false, swept);
        return finish(guard, status, stdout, stderr, kill).await;
    }
    let (guard, swept) = off_thread(guard, ProcessTree::sweep).await?;
    let status = guard.tree().reap();
    let kill = report(guard.tree(), false, swept);
    finish(guard, status, stdout, stderr, kill).await
}

/// The program has to end now.
async fn end_stopped(guard: TreeGuard, mut pipes: Pipes) -> Result<TreeEnd, SpawnError> {
    let (guard, ()) = off_thread(guard, ProcessTree::identify).await?;
    guard.tree().signal(Signal::TERM);
    let went = timeout(guard.tree().grace(), async {
        let (ended, ()) = tokio::join!(guard.tree().ended(), pipes.drain());
        ended
    });
    // Output is still open after the grace period, or the program still runs: both end in the same
    // way.
    let _ = went.await;
    let forced = !guard.tree().wait(Duration::ZERO);
    guard.tree().signal(Signal::KILL);
    let ended = tokio::select! {
        ended = timeout(KILL_WAIT, guard.tree().ended()) => matches!(ended, Ok(Ok(()))),
        () = drain_forever(&mut pipes) => false,
    };
    let (guard, swept) = off_thread(guard, ProcessTree::sweep).await?;
    let _ = timeout(LAST_READ, pipes.drain()).await;
    let (stdout, stderr) = pipes.close();
    if !ended {
        // It is stuck in the kernel. The guard hands it to the reaper, which keeps waiting.
        let kill = report(guard.tree(), forced, SweepResult { complete: false, ..swept });
        return Ok(TreeEnd { status: Status::Unknown, stdout, stderr, kill });
    }
    let status = guard.tree().reap();
    let kill = report(guard.tree(), forced, swept);
    finish(guard, status, stdout, stderr, kill).await
}

const NOTHING_FOUND: SweepResult = SweepResult { killed: 0, complete: true };

pub(super) fn report(tree: &ProcessTree, forced: bool, swept: SweepResult) -> KillReport {
    KillReport {
        rung: tree.rung(),
        forced,
        survivors_killed: swept.killed,
        complete: swept.complete,
    }
}

/// After both outputs have ended, waits forever, so that only other events end a select.
async fn drain_forever(pipes: &mut Pipes) {
    pipes.drain().await;
    std::future::pending::<()>().await;
}

/// Does blocking work on the tree. If the caller is dropped meanwhile, the guard is dropped after
/// the work, and then ends the tree.
pub(super) async fn off_thread<T: Send + 'static>(
    guard: TreeGuard,
    work: fn(&ProcessTree) -> T,
) -> Result<(TreeGuard, T), SpawnError> {
    spawn_blocking(move || {
        let result = work(guard.tree());
        (guard, result)
    })
    .await
    .map_err(|error| SpawnError::Resources(io::Error::other(error)))
}

/// The program is reaped: only its scratch directory is left.
async fn finish(
    mut guard: TreeGuard,
    status: Status,
    stdout: Captured,
    stderr: Captured,
    kill: KillReport,
) -> Result<TreeEnd, SpawnError> {
    guard.disarm();
    if let Some(scratch) = guard.tree().take_full_scratch() {
        remove_full(scratch).await;
    }
    Ok(TreeEnd { status, stdout, stderr, kill })
}
