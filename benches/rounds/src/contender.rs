//! One way of doing a piece of work, ready to be timed.

use std::fmt;
use std::time::Duration;

/// A way of doing a piece of work. Its set-up is done; only the work is timed.
pub struct Contender {
    name: &'static str,
    run: Box<dyn FnMut(u64) -> Duration>,
}

impl Contender {
    /// `run` does the work so many times and returns the time that took.
    pub fn new(name: &'static str, run: impl FnMut(u64) -> Duration + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }

    /// Who it is, such as `ours` or `rmcp`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Does the work `times` times; the time of all of them.
    pub fn run(&mut self, times: u64) -> Duration {
        (self.run)(times)
    }
}

impl fmt::Debug for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}
