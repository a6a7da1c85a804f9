//! Ctrl-C during a run: the first one pauses it, the second one leaves at once.

use std::fmt;
use std::time::{Duration, Instant};

use toolcrib::agent::RunControl;

use crate::screen;
use crate::serving::stop;

/// Within this time a second Ctrl-C leaves at once.
const AGAIN: Duration = Duration::from_secs(2);

/// Watches for Ctrl-C and SIGTERM.
#[derive(Default)]
pub(super) struct Interrupt {
    control: RunControl,
    last: Option<Instant>,
}

/// The person wants to leave at once. The journal is whole anyway.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeaveNow;

impl fmt::Display for LeaveNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for LeaveNow {}

impl Interrupt {
    /// The control of the run.
    pub(super) fn control(&self) -> &RunControl {
        &self.control
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn is_stopped(&self) -> bool {
        self.last.is_some()
    }

    /// Does the work. Ctrl-C pauses the run, and the work ends by itself soon after.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, LeaveNow> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                () = stop::requested() => {
                    if self.last.is_some_and(|last| last.elapsed() < AGAIN) {
                        return Err(LeaveNow);
                    }
                    self.last = Some(Instant::now());
                    self.control.pause("interrupted at the terminal");
                    screen::note("\npausing the run; press Ctrl-C again within 2 s to leave at once");
                }
            }
        }
    }

    /// Waits for an answer at the terminal. Ctrl-C leaves: nothing runs meanwhile.
    pub(super) async fn unless_pressed<T>(&mut self, answer: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            answer = answer => Some(answer),
            () = stop::requested() => {
                self.last = Some(Instant::now());
                screen::note("");
                None
            }
        }
    }
}
