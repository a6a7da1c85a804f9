//! Which instances this process holds: one body per instance, across registries.
//!
//! An instance is known by its address. The table keeps a weak pointer to it, which keeps the
//! allocation, so that no other instance can have the address while the entry is there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hashbrown::hash_map::{Entry, HashMap};
use toolcrib_tool::{Tool, ToolName};

use super::LiveBody;

struct Known {
    tool: Weak<dyn Tool>,
    /// Gone while `tool` is not: the instance was closed, and its maker still holds it.
    body: Weak<LiveBody>,
}

static KNOWN: Mutex<Option<HashMap<usize, Known>>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<HashMap<usize, Known>>> {
    // Nothing panics under this lock that could leave the table half changed.
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(tool: &Arc<dyn Tool>) -> usize {
    Arc::as_ptr(tool).addr()
}

/// The body of an instance.
pub(super) fn unify(tool: &Arc<dyn Tool>, name: &ToolName) -> Arc<LiveBody> {
    let mut known = lock();
    let known = known.get_or_insert_with(HashMap::new);
    // Forgetting is paid for by growth: looked over only when the table is full.
    if known.len() == known.capacity() {
        known.retain(|_, known| known.tool.strong_count() > 0);
    }
    match known.entry(address(tool)) {
        Entry::Vacant(vacant) => {
            let body = LiveBody::fresh(tool, name);
            vacant.insert(Known { tool: Arc::downgrade(tool), body: Arc::downgrade(&body) });
            body
        }
        Entry::Occupied(mut occupied) => {
            if let Some(body) = occupied.get().body.upgrade()
                && body.take_up()
            {
                return body;
            }
            tracing::debug!(tool = name.as_str(), "an instance that was closed is used again");
            let body = LiveBody::spent(tool, name);
            occupied.get_mut().body = Arc::downgrade(&body);
            body
        }
    }
}

/// Drops what is known of an instance, if nobody holds it any more.
pub(super) fn forget(address: usize) {
    if let Some(known) = lock().as_mut()
        && let Entry::Occupied(occupied) = known.entry(address)
        && occupied.get().tool.strong_count() == 0
    {
        occupied.remove();
    }
}
