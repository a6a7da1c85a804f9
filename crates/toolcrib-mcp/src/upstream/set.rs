//! All upstreams of an executor.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::StoreError;
use toolcrib_core::{Change, Executor, SourceUnit};
use toolcrib_sandbox::finish_kills;
use toolcrib_tool::Layer;

use super::review::{NoReview, OfferedTool, Review};
use super::settings::Upstream;
use super::status::{UpstreamState, UpstreamStatus};
use crate::upstream::connection::link::Link;
use crate::upstream::connection::supervisor::{Keeper, Shared};
use crate::upstream::review::confidential::Confidential;
use crate::upstream::review::pins::PinStore;
use crate::upstream::settings::declared::Declared;
use crate::upstream::tool::linked_resources::LinkedResources;
use crate::upstream::tool::publish::{KnownBy, Publisher, Unaccepted};

/// How long what was dropped on the way may take to be gone.
const LAST_KILLS: Duration = Duration::from_secs(1);

/// Keeps an executor's registry supplied with the tools of other MCP servers.
///
/// Each is connected to in the background by a task of its own, and again after a growing pause
/// whenever the connection is lost: nobody waits for a slow one. While one is down, what is known of
/// its tools stays in the registry as unavailable, with the reason.
///
/// Dropping the last clone ends all connections and the programs behind them;
/// [`shutdown`](Self::shutdown) also waits for that.
#[derive(Clone)]
pub struct Upstreams(Arc<Inner>);

pub(super) struct Inner {
    executor: Executor,
    known_by: KnownBy,
    kept: Mutex<Room>,
    /// Held while the upstreams are changed, so that one set is applied after the other.
    setting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Room {
    kept: BTreeMap<String, Kept>,
    /// Nobody comes in any more.
    is_closed: bool,
}

struct Kept {
    upstream: Arc<Upstream>,
    link: Arc<Link>,
    declared: watch::Sender<Declared>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: JoinHandle<Vec<Value>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Upstreams {
    /// None yet; `pins` keeps what definitions were when they were first seen.
    pub fn new(executor: Executor, pins: Arc<dyn PinStore>) -> Self {
        Self::reviewed(executor, pins, Arc::new(NoReview))
    }

    /// As [`new`](Self::new), where definitions may have been reviewed.
    pub fn reviewed(executor: Executor, pins: Arc<dyn PinStore>, review: Arc<dyn Review>) -> Self {
        let (kept, setting) = (Mutex::default(), tokio::sync::Mutex::default());
        let known_by = KnownBy { review, pins };
        Self(Arc::new(Inner { executor, known_by, kept, setting }))
    }

    /// Has all definitions compared again with what was reviewed and with their pins.
    pub fn look_again(&self) {
        for kept in self.room().kept.values() {
            kept.shared.look_again.notify_one();
        }
    }

    /// What a server offers under names here, definitions that are refused left out; `None` unless it is
    /// connected.
    pub fn offered(&self, upstream: &str) -> Option<Vec<OfferedTool>> {
        let room = self.room();
        let kept = room.kept.get(upstream)?;
        if *kept.shared.state.borrow() != UpstreamState::Connected {
            return None;
        }
        let offered = kept.shared.offered.lock().unwrap_or_else(PoisonError::into_inner);
        Some(offered.clone())
    }

    /// Makes these the upstreams, and none besides, in the order that decides names among them. Those
    /// that are reached as they were keep their connection and the calls that run; what else is said of
    /// them, such as limits, labels or which tools are taken, holds from the next call on. Those that are
    /// reached otherwise are ended and connected to anew; until that is done, what is known of their tools
    /// is unavailable. Those that are gone are ended, and their tools
    /// removed, when this returns: within a second. Of two with one name, the first counts, and the
    /// other is named in the log.
    ///
    /// Does nothing after a [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O and time enabled.
    pub async fn set(&self, upstreams: impl IntoIterator<Item = Upstream>) {
        let mut wanted = BTreeMap::new();
        for (rank, upstream) in (0..).zip(upstreams) {
            if wanted.contains_key(&upstream.name) {
                tracing::warn!(
                    upstream = upstream.name,
                    declared = ?upstream.origin,
                    "two upstreams have one name; the first counts"
                );
                continue;
            }
            wanted.insert(upstream.name.clone(), (rank, upstream));
        }
        let _one_after_the_other = self.0.setting.lock().await;
        let gone: Vec<_> = {
            let mut room = self.room();
            let (stays, gone) = split(std::mem::take(&mut room.kept), &mut wanted);
            room.kept = stays;
            gone
        };
        let mut listed = end(gone).await;
        let removed = listed.keys().filter(|name| !wanted.contains_key(*name));
        let remove = |name: &String| Change::Remove {
            unit: SourceUnit::new(Layer::Upstream, name.as_str()),
        };
        let changes: Vec<_> = removed.map(remove).collect();
        // Whoever follows manifests sets them at every save: without a change there is no snapshot.
        if !changes.is_empty()
            && let Err(error) = self.0.executor.registry().apply(changes)
        {
            tracing::error!(%error, "tools of upstreams that are gone were not removed");
        }
        let mut room = self.room();
        if room.is_closed {
            return;
        }
        for (name, (rank, upstream)) in wanted {
            let listed = listed.remove(&name).unwrap_or_default();
            room.kept.insert(name, self.start(upstream, rank, listed));
        }
    }

    /// How it stands with each, sorted by name.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        let room = self.room();
        let status = room.kept.values().map(|kept| {
            let (tools, disabled) =
                *kept.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let state = kept.shared.state.borrow().clone();
            let left_out = kept.shared.left_out.load(Ordering::Relaxed);
            let name = kept.upstream.name.clone();
            UpstreamStatus { name, state, tools, disabled, left_out }
        });
        status.collect()
    }

    /// Waits until every first connection was made or has failed; says whether that came true in
    /// time.
    pub async fn settled(&self, limit: Duration) -> bool {
        self.wait(limit, |_| true).await
    }

    /// As [`settled`](Self::settled), for those upstreams only that may have a tool of this name.
    pub async fn settled_for(&self, tool: &str, limit: Duration) -> bool {
        self.wait(limit, |upstream| upstream.may_offer(tool)).await
    }

    async fn wait(&self, limit: Duration, which: impl Fn(&Upstream) -> bool) -> bool {
        let mut states: Vec<_> = {
            let room = self.room();
            let asked = room.kept.values().filter(|kept| which(&kept.upstream));
            asked.map(|kept| kept.shared.state.subscribe()).collect()
        };
        let all = async {
            for state in &mut states {
                // Fails only if the upstream is gone, and then there is nothing to wait for.
                let _ = state.wait_for(|state| *state != UpstreamState::Connecting).await;
            }
        };
        timeout(limit, all).await.is_ok()
    }

    /// The definition that a server offers now for a tool that is disabled because its definition
    /// changed since it was first seen, if there is such a tool: what a person looks at before
    /// accepting it.
    pub fn unaccepted(&self, tool: &str) -> Option<Unaccepted> {
        self.find_unaccepted(tool).map(|(_, offered, _)| offered)
    }

    /// What the server said of such a tool when its definition was pinned, if that was kept.
    pub async fn pinned_text(&self, tool: &str) -> Result<Option<Value>, StoreError> {
        let Some((upstream, ..)) = self.find_unaccepted(tool) else { return Ok(None) };
        self.0.known_by.pins.text(&upstream, tool).await
    }

    /// Accepts one definition of a tool that is disabled because its definition changed: this one can
    /// be called from now on, and no other, whatever the server offers meanwhile. Returns whether
    /// there is such a tool.
    pub async fn accept(&self, tool: &str, definition: Fingerprint) -> Result<bool, StoreError> {
        let Some((upstream, offered, shared)) = self.find_unaccepted(tool) else {
            return Ok(false);
        };
        let pins = &self.0.known_by.pins;
        pins.accept(&upstream, tool, definition).await?;
        if offered.fingerprint == definition {
            pins.keep_text(&upstream, tool, definition, &offered.says).await?;
        }
        shared.look_again.notify_one();
        Ok(true)
    }

    fn find_unaccepted(&self, tool: &str) -> Option<(String, Unaccepted, Arc<Shared>)> {
        let room = self.room();
        room.kept.values().find_map(|kept| {
            let unaccepted = kept.shared.unaccepted.lock().unwrap_or_else(PoisonError::into_inner);
            let offered = unaccepted.get(tool)?.clone();
            Some((kept.upstream.name.clone(), offered, Arc::clone(&kept.shared)))
        })
    }

    /// Ends all connections and returns when nothing is left of the programs behind them: within a
    /// second. Their tools answer `unavailable` from then on.
    pub async fn shutdown(&self) {
        let all = {
            let mut room = self.room();
            room.is_closed = true;
            std::mem::take(&mut room.kept)
        };
        end(all.into_values()).await;
        // Those that a change is ending are on their way already.
        drop(self.0.setting.lock().await);
        // Those that were being started went with their future.
        let _ = spawn_blocking(|| finish_kills(LAST_KILLS)).await;
    }

    fn start(&self, upstream: Upstream, rank: u32, listed: Vec<Value>) -> Kept {
        let upstream = Arc::new(upstream);
        let link = Arc::new(Link::new(&upstream.name));
        let shared = Arc::new(Shared::default());
        let stop = CancellationToken::new();
        let declared = Declared { upstream: Arc::clone(&upstream), rank };
        let (executor, known_by) = (self.0.executor.clone(), self.0.known_by.clone());
        let publisher = Publisher::new(&declared, executor, known_by, Arc::clone(&link), listed);
        let declared = watch::Sender::new(declared);
        let keeper = Keeper {
            confidential: Confidential::of(&upstream, self.0.executor.mask()),
            upstream: Arc::clone(&upstream),
            link: Arc::clone(&link),
            shared: Arc::clone(&shared),
            publisher,
            declared: declared.subscribe(),
            stop: stop.clone(),
        };
        Kept { upstream, link, declared, shared, stop, task: tokio::spawn(keeper.run()) }
    }

    /// Reads what links in results of their tools lead to.
    pub fn linked(&self) -> LinkedResources {
        LinkedResources::of(&self.0)
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.room()
    }
}

impl Inner {
    fn room(&self) -> MutexGuard<'_, Room> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to an upstream, if there is one of that name.
    pub(super) fn link(&self, upstream: &str) -> Option<Arc<Link>> {
        self.room().kept.get(upstream).map(|kept| Arc::clone(&kept.link))
    }
}

/// Those that are reached as they are wanted to be, which are wanted no more then and told of the rest,
/// and those that end.
fn split(
    kept: BTreeMap<String, Kept>,
    wanted: &mut BTreeMap<String, (u32, Upstream)>,
) -> (BTreeMap<String, Kept>, Vec<Kept>) {
    let mut gone = Vec::new();
    let mut stays = BTreeMap::new();
    for (name, mut one) in kept {
        let is_reached_so = |(_, other): &(u32, Upstream)| other.is_reached_as(&one.upstream);
        if !wanted.get(&name).is_some_and(is_reached_so) {
            gone.push(one);
            continue;
        }
        if let Some((rank, upstream)) = wanted.remove(&name) {
            one.upstream = Arc::new(upstream);
            let now = Declared { upstream: Arc::clone(&one.upstream), rank };
            one.declared.send_if_modified(|declared| {
                let is_another = *declared != now;
                *declared = now;
                is_another
            });
        }
        stays.insert(name, one);
    }
    (stays, gone)
}

/// Stops keepers, all at the same time; what each upstream said of its tools last.
async fn end(kept: impl IntoIterator<Item = Kept>) -> BTreeMap<String, Vec<Value>> {
    let mut kept: Vec<_> = kept.into_iter().collect();
    for one in &kept {
        one.stop.cancel();
    }
    let mut listed = BTreeMap::new();
    for one in &mut kept {
        let of_one = (&mut one.task).await.unwrap_or_default();
        listed.insert(one.upstream.name.clone(), of_one);
    }
    listed
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").field("status", &self.status()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_core::Registry;

    use super::*;
    use crate::upstream::MemoryPins;

    #[tokio::test]
    async fn what_is_set_again_unchanged_is_no_new_snapshot() {
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        let upstreams = Upstreams::new(executor.clone(), Arc::new(MemoryPins::default()));
        let before = executor.registry().snapshot();
        upstreams.set([]).await;
        assert!(Arc::ptr_eq(&before, &executor.registry().snapshot()));
    }
}
