//! The logs of responses that are being made, and of some that have ended.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{ResponseId, ResponseLog};

/// How many logs of ended responses are kept, and how many bytes of them.
const ENDED: usize = 128;
const ENDED_BYTES: usize = 32 * 1024 * 1024;

/// The logs of responses.
#[derive(Clone, Default)]
pub(crate) struct LiveResponses(Arc<Mutex<Logs>>);

#[derive(Default)]
struct Logs {
    by_id: HashMap<ResponseId, ResponseLog>,
    /// Those that have ended, oldest first, with their sizes.
    ended: VecDeque<(ResponseId, usize)>,
    ended_bytes: usize,
}

impl LiveResponses {
    fn open(&self) -> MutexGuard<'_, Logs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: &ResponseId) -> Option<ResponseLog> {
        self.open().by_id.get(id).cloned()
    }

    /// Keeps the log of a response on which work begins.
    pub(super) fn begin(&self, id: &ResponseId, log: &ResponseLog) {
        let mut logs = self.open();
        logs.forget(id);
        logs.by_id.insert(id.clone(), log.clone());
    }

    /// Notes that nothing more is added to the log of a response. The oldest such logs are forgotten.
    pub(super) fn end(&self, id: &ResponseId) {
        let mut logs = self.open();
        let Some(bytes) = logs.by_id.get(id).map(ResponseLog::bytes) else { return };
        logs.ended.push_back((id.clone(), bytes));
        logs.ended_bytes += bytes;
        while logs.ended.len() > ENDED || logs.ended_bytes > ENDED_BYTES {
            let Some((oldest, bytes)) = logs.ended.pop_front() else { break };
            logs.ended_bytes -= bytes;
            logs.by_id.remove(&oldest);
        }
    }

    /// Forgets the log of a response.
    pub(super) fn remove(&self, id: &ResponseId) {
        let mut logs = self.open();
        logs.forget(id);
        logs.by_id.remove(id);
    }
}

impl Logs {
    fn forget(&mut self, id: &ResponseId) {
        if let Some(at) = self.ended.iter().position(|(ended, _)| ended == id)
            && let Some((_, bytes)) = self.ended.remove(at)
        {
            self.ended_bytes -= bytes;
        }
    }
}
