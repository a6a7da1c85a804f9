//! Where client and server work.
//!
//! With one call in flight they take turns. Whether the system leaves them on one processor or gives each
//! its own, which sleeps while the other works and has to be woken for each call, decides over most of what
//! such a call costs, and comes out differently from run to run. So they are given one.

use std::fs;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::client::Process;
use crate::program::Failure;

/// As long as this is there, the client stays on one processor, with its servers.
#[derive(Debug)]
pub(crate) struct OneProcessor {
    /// Where the client may work otherwise.
    before: CpuSet,
    one: CpuSet,
}

impl OneProcessor {
    /// Keeps this thread, and those that it starts, on one processor.
    pub(crate) fn share() -> Result<Self, Failure> {
        let before = sched_getaffinity(None)?;
        let last = (0..CpuSet::MAX_CPU).rfind(|processor| before.is_set(*processor));
        let mut one = CpuSet::new();
        one.set(last.ok_or("no processor")?);
        sched_setaffinity(None, &one)?;
        Ok(Self { before, one })
    }

    /// Keeps a server there. It has as many threads as it has made for all processors.
    pub(crate) fn keep(&self, server: &Process) -> Result<(), Failure> {
        for thread in fs::read_dir(server.threads())? {
            let name = thread?.file_name();
            let thread = name.to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
            sched_setaffinity(Some(thread.ok_or("a thread without a number")?), &self.one)?;
        }
        Ok(())
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // What was allowed before is allowed.
        let _ = sched_setaffinity(None, &self.before);
    }
}
