//! The set of upstream MCP servers of one executor.

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
use toolcrib_core::masking::LiveMask;
use toolcrib_core::suspension::StoreError;
use toolcrib_core::{Change, Executor, SourceUnit};
use toolcrib_sandbox::finish_kills;
use toolcrib_tool::Layer;

use super::offers::UpstreamOffers;
use super::review::{NoReview, OfferedTool, Review};
use super::settings::Upstream;
use super::status::{UpstreamState, UpstreamStatus};
use crate::upstream::connection::link::Link;
use crate::upstream::connection::supervisor::{Supervisor, SupervisorState};
use crate::upstream::review::confidential::Confidential;
use crate::upstream::review::pins::PinStore;
use crate::upstream::settings::declared::UpstreamDeclaration;
use crate::upstream::tool::linked_resources::LinkedResources;
use crate::upstream::tool::publish::{DefinitionChecks, NameClaims, Publisher, UnacceptedChange};

/// How long a shutdown waits for programs whose connection attempt was dropped.
const KILL_WAIT: Duration = Duration::from_secs(1);

/// Keeps an executor's registry supplied with the tools of other MCP servers.
///
/// Each upstream has a background task that connects, and reconnects with backoff when the
/// connection is lost: a slow upstream delays nobody. While an upstream is down, its known tools
/// stay in the registry as unavailable, with the reason.
///
/// Dropping the last clone ends all connections and the programs behind them;
/// [`shutdown`](Self::shutdown) also waits for that.
#[derive(Clone)]
pub struct Upstreams(Arc<Inner>);

pub(super) struct Inner {
    executor: Executor,
    checks: DefinitionChecks,
    kept: Mutex<UpstreamTable>,
    /// Held while the upstreams are changed, so that sets are applied one after another.
    changing: tokio::sync::Mutex<()>,
    /// Changes when a first connection attempt has ended, and when the upstreams were replaced.
    first_attempts: watch::Sender<()>,
    /// What the names of each upstream begin with.
    prefixes: Mutex<Arc<[String]>>,
    /// Changes when an upstream may offer other resources or prompts.
    offer_changes: watch::Sender<()>,
}

#[derive(Default)]
pub(super) struct UpstreamTable {
    pub(super) kept: BTreeMap<String, RunningUpstream>,
    /// After a shutdown no upstream is added.
    is_closed: bool,
}

pub(super) struct RunningUpstream {
    pub(super) upstream: Arc<Upstream>,
    pub(super) link: Arc<Link>,
    declared: watch::Sender<UpstreamDeclaration>,
    pub(super) shared: Arc<SupervisorState>,
    stop: CancellationToken,
    task: JoinHandle<Vec<Value>>,
}

impl Drop for RunningUpstream {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Upstreams {
    /// Starts without upstreams; `pins` stores the definitions that were first seen.
    pub fn new(executor: Executor, pins: Arc<dyn PinStore>) -> Self {
        Self::reviewed(executor, pins, Arc::new(NoReview))
    }

    /// Like [`new`](Self::new), with a review that decides before pins do.
    pub fn reviewed(executor: Executor, pins: Arc<dyn PinStore>, review: Arc<dyn Review>) -> Self {
        let (kept, changing) = (Mutex::default(), tokio::sync::Mutex::default());
        let checks = DefinitionChecks { review, pins };
        let (first_attempts, offer_changes) = (watch::Sender::new(()), watch::Sender::new(()));
        Self(Arc::new(Inner {
            executor,
            checks,
            kept,
            changing,
            first_attempts,
            prefixes: Mutex::new(Arc::default()),
            offer_changes,
        }))
    }

    /// Compares all definitions again with the review and with their pins.
    pub fn look_again(&self) {
        for kept in self.table().kept.values() {
            kept.shared.look_again.notify_one();
        }
    }

    /// The tools that a server offers under their names here, without refused definitions; `None`
    /// unless it is connected.
    pub fn offered(&self, upstream: &str) -> Option<Vec<OfferedTool>> {
        let table = self.table();
        let kept = table.kept.get(upstream)?;
        if *kept.shared.state.borrow() != UpstreamState::Connected {
            return None;
        }
        let offered = kept.shared.offered.lock().unwrap_or_else(PoisonError::into_inner);
        Some(offered.clone())
    }

    /// Replaces the set of upstreams.
    ///
    /// Which upstream gets a name does not depend on how fast the servers start. A name belongs to the
    /// upstreams with the longest prefix that it begins with; others leave it out. Among upstreams with
    /// one prefix, or without, the first in this order gets it: as long as the first connection attempt
    /// of an upstream is under way, later ones with that prefix do not get a name that it may offer. If
    /// the attempt fails, they do. An upstream keeps a name that it has.
    ///
    /// An upstream that is reached in the same way keeps its connection and its running calls; its
    /// other settings, such as limits, labels and filters, apply from the next call on. An upstream
    /// that is reached in another way is stopped and connected again; its tools are unavailable
    /// until then. An upstream that is no longer listed is stopped and its tools are removed within
    /// a second, before this returns. If two upstreams have the same name, the first wins and the
    /// other is logged.
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
                    "two upstreams have the same name; the first one is used"
                );
                continue;
            }
            wanted.insert(upstream.name.clone(), (rank, upstream));
        }
        let _one_after_the_other = self.0.changing.lock().await;
        *self.0.prefixes.lock().unwrap_or_else(PoisonError::into_inner) =
            wanted.values().map(|(_, upstream)| upstream.names_begin_with()).collect();
        let gone: Vec<_> = {
            let mut table = self.table();
            let (stays, gone) = split(std::mem::take(&mut table.kept), &mut wanted);
            table.kept = stays;
            gone
        };
        let mut listed = end(gone).await;
        let removed = listed.keys().filter(|name| !wanted.contains_key(*name));
        let remove = |name: &String| Change::Remove {
            unit: SourceUnit::new(Layer::Upstream, name.as_str()),
        };
        let changes: Vec<_> = removed.map(remove).collect();
        // Callers set the upstreams at every save of a manifest: without a change, publish no
        // snapshot.
        if !changes.is_empty()
            && let Err(error) = self.0.executor.registry().apply(changes)
        {
            tracing::error!(%error, "tools of removed upstreams could not be removed from the registry");
        }
        let mut table = self.table();
        if table.is_closed {
            return;
        }
        for (name, (rank, upstream)) in wanted {
            let listed = listed.remove(&name).unwrap_or_default();
            table.kept.insert(name, self.start(upstream, rank, listed));
        }
        drop(table);
        self.0.first_attempts.send_replace(());
        self.0.offers_changed();
    }

    /// The status of each upstream, sorted by name.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        let table = self.table();
        let status = table.kept.values().map(|kept| {
            let (tools, disabled) =
                *kept.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let state = kept.shared.state.borrow().clone();
            let left_out = kept.shared.left_out.load(Ordering::Relaxed);
            let name = kept.upstream.name.clone();
            let unmatched = &kept.shared.unmatched;
            let unmatched = unmatched.lock().unwrap_or_else(PoisonError::into_inner).clone();
            UpstreamStatus { name, state, tools, disabled, left_out, unmatched }
        });
        status.collect()
    }

    /// Waits until every first connection has succeeded or failed. Returns false if that takes
    /// longer than `limit`.
    pub async fn settled(&self, limit: Duration) -> bool {
        self.wait(limit, |_| true).await
    }

    /// Like [`settled`](Self::settled), only for upstreams that may have a tool of this name.
    pub async fn settled_for(&self, tool: &str, limit: Duration) -> bool {
        self.wait(limit, |upstream| upstream.may_offer(tool)).await
    }

    async fn wait(&self, limit: Duration, which: impl Fn(&Upstream) -> bool) -> bool {
        let mut states: Vec<_> = {
            let table = self.table();
            let asked = table.kept.values().filter(|kept| which(&kept.upstream));
            asked.map(|kept| kept.shared.state.subscribe()).collect()
        };
        let all = async {
            for state in &mut states {
                // Fails only if the upstream was removed, and then there is nothing to wait for.
                let _ = state.wait_for(|state| *state != UpstreamState::Connecting).await;
            }
        };
        timeout(limit, all).await.is_ok()
    }

    /// The definition that a server offers for a tool that is disabled because its definition
    /// changed, if there is such a tool. A person reviews it before accepting it.
    pub fn unaccepted(&self, tool: &str) -> Option<UnacceptedChange> {
        self.find_changed_tool(tool).map(|(_, offered, _)| offered)
    }

    /// What the server said about such a tool when its definition was pinned, if that was stored.
    pub async fn pinned_text(&self, tool: &str) -> Result<Option<Value>, StoreError> {
        let Some((upstream, offered, _)) = self.find_changed_tool(tool) else { return Ok(None) };
        self.0.checks.pins.text(&upstream, &offered.pinned_as).await
    }

    /// Accepts one definition of a tool that is disabled because its definition changed. Only this
    /// definition can be called from now on, whatever the server offers in the meantime. Returns
    /// whether there is such a tool.
    pub async fn accept(&self, tool: &str, definition: Fingerprint) -> Result<bool, StoreError> {
        let Some((upstream, offered, shared)) = self.find_changed_tool(tool) else {
            return Ok(false);
        };
        let pins = &self.0.checks.pins;
        let pin = &offered.pinned_as;
        pins.accept(&upstream, pin, definition).await?;
        if offered.fingerprint == definition {
            pins.keep_text(&upstream, pin, definition, &offered.says).await?;
        }
        shared.look_again.notify_one();
        Ok(true)
    }

    fn find_changed_tool(
        &self,
        tool: &str,
    ) -> Option<(String, UnacceptedChange, Arc<SupervisorState>)> {
        let table = self.table();
        table.kept.values().find_map(|kept| {
            let unaccepted = kept.shared.unaccepted.lock().unwrap_or_else(PoisonError::into_inner);
            let offered = unaccepted.get(tool)?.clone();
            Some((kept.upstream.name.clone(), offered, Arc::clone(&kept.shared)))
        })
    }

    /// Closes all connections and waits, at most a second, until no program behind them is left.
    /// Their tools answer `unavailable` from then on.
    pub async fn shutdown(&self) {
        let all = {
            let mut table = self.table();
            table.is_closed = true;
            std::mem::take(&mut table.kept)
        };
        end(all.into_values()).await;
        // Wait for upstreams that a concurrent `set` is stopping.
        drop(self.0.changing.lock().await);
        // Programs that were being started are killed when their future is dropped.
        let _ = spawn_blocking(|| finish_kills(KILL_WAIT)).await;
    }

    fn start(&self, upstream: Upstream, rank: u32, listed: Vec<Value>) -> RunningUpstream {
        let upstream = Arc::new(upstream);
        let link = Arc::new(Link::new(&upstream.name));
        let shared = Arc::new(SupervisorState::default());
        let stop = CancellationToken::new();
        let declared = UpstreamDeclaration { upstream: Arc::clone(&upstream), rank };
        let (executor, checks) = (self.0.executor.clone(), self.0.checks.clone());
        let publisher = Publisher::new(&declared, executor, checks, Arc::clone(&link), listed);
        let declared = watch::Sender::new(declared);
        let supervisor = Supervisor {
            confidential: Confidential::of(&upstream, self.0.executor.mask()),
            upstream: Arc::clone(&upstream),
            link: Arc::clone(&link),
            shared: Arc::clone(&shared),
            publisher,
            declared: declared.subscribe(),
            set: Arc::downgrade(&self.0),
            first_attempts: self.0.first_attempts.subscribe(),
            withholds: false,
            stop: stop.clone(),
        };
        RunningUpstream {
            upstream,
            link,
            declared,
            shared,
            stop,
            task: tokio::spawn(supervisor.run()),
        }
    }

    /// Returns a reader for resources that results of these tools link to.
    pub fn linked(&self) -> LinkedResources {
        LinkedResources::of(&self.0)
    }

    pub(super) fn table(&self) -> MutexGuard<'_, UpstreamTable> {
        self.0.table()
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, UpstreamTable> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What upstreams offer besides tools. Of equal addresses and names, the upstream that is declared
    /// first has them.
    pub(super) fn offers(&self) -> UpstreamOffers {
        let mask = self.mask();
        let mut offers = UpstreamOffers::default();
        let table = self.table();
        let mut by_rank: Vec<_> = table.kept.values().collect();
        by_rank.sort_by_key(|kept| kept.declared.borrow().rank);
        for kept in by_rank {
            let listed = kept.shared.listed.lock().unwrap_or_else(PoisonError::into_inner);
            offers.add(&kept.upstream, &listed, &mask);
        }
        offers.sorted()
    }

    /// Has those who show clients what upstreams offer besides tools look again.
    pub(super) fn offers_changed(&self) {
        self.offer_changes.send_replace(());
    }

    /// A receiver that is notified when the result of [`offers`](Self::offers) may have changed.
    pub(super) fn offer_changes(&self) -> watch::Receiver<()> {
        self.offer_changes.subscribe()
    }

    /// Masks the executor's secrets.
    pub(super) fn mask(&self) -> LiveMask {
        self.executor.mask()
    }

    /// What the upstream of this rank must respect when it takes names.
    pub(super) fn claims(&self, rank: u32) -> NameClaims {
        let prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let table = self.table();
        let earlier = table.kept.values().filter(|kept| kept.declared.borrow().rank < rank);
        let connecting =
            earlier.filter(|kept| *kept.shared.state.borrow() == UpstreamState::Connecting);
        let connecting = connecting.map(|kept| Arc::clone(&kept.upstream)).collect();
        NameClaims { prefixes, connecting }
    }

    /// Has the upstreams look again which names they may have: a first connection attempt has ended.
    pub(super) fn first_attempt_ended(&self) {
        self.first_attempts.send_replace(());
    }

    /// The link to the upstream of that name, if there is one.
    pub(super) fn link(&self, upstream: &str) -> Option<Arc<Link>> {
        self.table().kept.get(upstream).map(|kept| Arc::clone(&kept.link))
    }
}

/// Splits the running upstreams: those whose connection can stay are taken out of `wanted` and told
/// their new settings; the others are returned to be stopped.
fn split(
    kept: BTreeMap<String, RunningUpstream>,
    wanted: &mut BTreeMap<String, (u32, Upstream)>,
) -> (BTreeMap<String, RunningUpstream>, Vec<RunningUpstream>) {
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
            let now = UpstreamDeclaration { upstream: Arc::clone(&one.upstream), rank };
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

/// Stops supervisors concurrently. Returns what each upstream last said about its tools.
async fn end(kept: impl IntoIterator<Item = RunningUpstream>) -> BTreeMap<String, Vec<Value>> {
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
    async fn setting_the_same_upstreams_publishes_no_snapshot() {
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        let upstreams = Upstreams::new(executor.clone(), Arc::new(MemoryPins::default()));
        let before = executor.registry().snapshot();
        upstreams.set([]).await;
        assert!(Arc::ptr_eq(&before, &executor.registry().snapshot()));
    }
}
