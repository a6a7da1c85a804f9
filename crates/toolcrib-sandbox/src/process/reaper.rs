//! The reaper thread, which ends the process trees of dropped calls.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::tree::ProcessTree;

/// The interval between checks of trees in their grace period.
const TICK: Duration = Duration::from_millis(10);
/// How long the kernel may take to carry out a SIGKILL before the thread turns to other trees.
const KILL_WAIT: Duration = Duration::from_secs(1);

/// A tree that got its SIGTERM.
struct KillJob {
    tree: Arc<ProcessTree>,
    kill_at: Instant,
}

/// The number of unfinished trees.
static PENDING: Mutex<usize> = Mutex::new(0);
static FINISHED: Condvar = Condvar::new();

/// Takes over a tree that got its SIGTERM when its call was dropped.
pub(super) fn submit(tree: Arc<ProcessTree>) {
    *PENDING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let job = KillJob { kill_at: Instant::now() + tree.grace(), tree };
    let refused = match queue() {
        Some(queue) => queue.send(job).err().map(|refused| refused.0),
        None => Some(job),
    };
    if let Some(job) = refused {
        // No thread is available. Blocking here is better than leaving processes running.
        job.tree.signal(Signal::KILL);
        finish(&job);
    }
}

/// Waits until the trees of all dropped calls are gone; returns whether that succeeded in time.
///
/// Processes that are about to exit call this: otherwise programs of dropped [`run`](super::run)
/// futures only get SIGTERM. Blocks the thread.
pub fn finish_kills(timeout: Duration) -> bool {
    let pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let (pending, _) = FINISHED
        .wait_timeout_while(pending, timeout, |pending| *pending > 0)
        .unwrap_or_else(PoisonError::into_inner);
    *pending == 0
}

/// The sender to the thread, which starts with its first job; `None` if it cannot start.
fn queue() -> Option<&'static Sender<KillJob>> {
    static QUEUE: OnceLock<Option<Sender<KillJob>>> = OnceLock::new();
    QUEUE
        .get_or_init(|| {
            let (sender, receiver) = channel();
            let thread = thread::Builder::new().name("toolcrib-reaper".to_owned());
            thread.spawn(move || work(&receiver)).ok().map(|_| sender)
        })
        .as_ref()
}

/// The thread runs as long as the process.
fn work(queue: &Receiver<KillJob>) {
    let mut jobs: Vec<KillJob> = Vec::new();
    loop {
        if jobs.is_empty() {
            let Ok(job) = queue.recv() else { return };
            jobs.push(job);
        } else {
            match queue.recv_timeout(TICK) {
                Ok(job) => jobs.push(job),
                Err(RecvTimeoutError::Timeout) => {}
                // The sender is in a static, so the channel never closes.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        jobs.extend(queue.try_iter());
        let now = Instant::now();
        let (due, waiting): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| job.kill_at <= now || job.tree.wait(Duration::ZERO));
        jobs = waiting;
        // All trees get their SIGKILL before the first sweep, which takes time.
        for job in &due {
            job.tree.signal(Signal::KILL);
        }
        jobs.extend(due.into_iter().filter(|job| !finish(job)));
    }
}

/// Finishes a tree after its SIGKILL: sweeps, reaps, cleans up, and counts down. Returns `false` if
/// the program still exists.
fn finish(job: &KillJob) -> bool {
    if !job.tree.wait(KILL_WAIT) {
        return false;
    }
    job.tree.sweep();
    job.tree.reap();
    drop(job.tree.take_full_scratch());
    *PENDING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    FINISHED.notify_all();
    true
}
