//! Ctrl-C during a run: the first one pauses it, the second one leaves at once.

use std::time::{Duration, Instant};

use toolcrib::agent::RunControl;

use crate::screen;
use crate::serving::stop::{self, Interrupted};

/// Within this time a second Ctrl-C leaves at once.
const AGAIN: Duration = Duration::from_secs(2);

/// Watches for Ctrl-C and SIGTERM.
#[derive(Default)]
pub(super) struct Interrupt {
    control: RunControl,
    last: Option<Instant>,
}

impl Interrupt {
    /// The control of the run.
    pub(super) fn control(&self) -> &RunControl {
        &self.control
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn is_stopped(&self) -> bool {
        self.last.is_some()
    }

    /// Does the work. Ctrl-C pauses the run, and the work ends by itself soon after. Fails if the person wants to leave
    /// at once: the journal is whole anyway.
    pub(super) async fn during<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Interrupted> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                () = stop::requested() => {
                    if self.last.is_some_and(|last| last.elapsed() < AGAIN) {
                        return Err(Interrupted);
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
