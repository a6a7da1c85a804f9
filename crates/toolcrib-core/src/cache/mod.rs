//! Calls that need not run because the same call was answered before, or is running now.
//!
//! [`Answers::ask`] is the only entry point: it returns an existing answer, waits for a running
//! call, or tells the caller to run the tool and then [`publish`](Answers::publish) the outcome. It
//! looks in this order:
//!
//! 1. the batch: the same call in one batch runs once (`dedupe: batch` and `session`, and `cache`);
//! 2. the session history (`dedupe: session`);
//! 3. the cache (`cache`);
//! 4. running calls anywhere in the process (`cache`).
//!
//! Tools that declare neither skip all of this.

mod entries;
mod key;
pub(crate) mod lru;
mod resource_versions;
mod session_history;
mod single_flight;
pub(crate) mod size;
mod spill_memo;

use std::sync::Arc;

use toolcrib_tool::{CachePolicy, Dedupe, Resources, ToolDefinition};

pub use crate::cache::entries::CacheStats;
pub(crate) use crate::cache::entries::{AnswerCache, CacheLimits, CachedAnswer, PendingWrite};
use crate::cache::resource_versions::ResourceVersion;
pub(crate) use crate::cache::session_history::{HistoryLimits, SessionHistory};
pub(crate) use crate::cache::single_flight::{Flights, SharedOutcome};
use crate::cache::single_flight::{FollowerResult, Leader, Role};
pub(crate) use key::{CacheKey, Callee};
pub(crate) use spill_memo::SpillMemo;

#[cfg(test)]
mod tests;

/// All answers that an executor keeps, of earlier and of running calls.
#[derive(Debug)]
pub(crate) struct Answers {
    cache: Arc<AnswerCache>,
    flights: Flights,
    history: SessionHistory,
}

/// Where a call comes from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookupScope<'a> {
    /// The session it belongs to.
    pub(crate) session: Option<&'a str>,
    /// The single-flight table of the batch that the call is part of.
    pub(crate) batch: Option<&'a Flights>,
    /// Whether a running tool made the call. Such a call never waits for calls outside its batch:
    /// they may be waiting for the tool that waits for this one.
    pub(crate) nested: bool,
}

/// The result of a lookup.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// The answer to an earlier call (`cached`).
    Hit(CachedAnswer),
    /// The answer of the same concurrent call (`skipped`), and where its text was spilled.
    Shared(SharedOutcome, Arc<SpillMemo>),
    /// The call has to run and to publish its outcome.
    Miss(LeaderDuty),
}

/// The duty to run a call. If it is dropped, one of the waiting followers runs instead.
#[derive(Debug)]
#[must_use = "others may wait for this call"]
pub(crate) struct LeaderDuty {
    key: CacheKey,
    version: ResourceVersion,
    /// The followers of the call, in the batch and in the process.
    in_batch: Option<Leader>,
    in_process: Option<Leader>,
}

impl Answers {
    /// Starts empty, with the cache's clock.
    pub(crate) fn new(cache: AnswerCache, history: HistoryLimits) -> Self {
        Self {
            cache: Arc::new(cache),
            flights: Flights::new(),
            history: SessionHistory::new(history),
        }
    }

    /// Looks a call up; waits if the same call is running.
    ///
    /// The caller limits the wait by dropping the future.
    pub(crate) async fn ask(&self, key: &CacheKey, scope: LookupScope<'_>) -> Lookup {
        let definition = key.definition();
        // Applies even if the cache is disabled: within a batch nothing becomes stale.
        let once = definition.dedupe() != Dedupe::None || definition.cache().is_some();
        let batch = scope.batch.filter(|_| once);
        let session = self.session(definition, scope.session);
        let is_cached = definition.cache().is_some() && self.cache.is_enabled();
        let version = self.cache.version(key);
        let mut run = LeaderDuty { key: key.clone(), version, in_batch: None, in_process: None };

        if let Some(batch) = batch {
            match lead_or_wait(batch.join(key, version)).await {
                FollowerResult::Answer(outcome, spilled) => {
                    return Lookup::Shared(outcome, spilled);
                }
                FollowerResult::Lead(leader) => run.in_batch = Some(leader),
                FollowerResult::Alone => {}
            }
        }
        if let Some(session) = session
            && let Some(kept) = self.history.get(session, key, version, self.cache.now())
        {
            return run.kept(kept);
        }
        let kept = |run: LeaderDuty, kept: CachedAnswer| {
            self.remember(&run, scope, &kept);
            run.kept(kept)
        };
        if is_cached {
            if let Some(found) = self.cache.get(key) {
                return kept(run, found);
            }
            if !scope.nested {
                match lead_or_wait(self.flights.join(key, version)).await {
                    FollowerResult::Answer(outcome, spilled) => {
                        if let Ok(output) = &outcome {
                            let (output, spilled) = (Arc::clone(output), Arc::clone(&spilled));
                            self.remember(&run, scope, &CachedAnswer { output, spilled });
                        }
                        run.publish(&outcome, &spilled);
                        return Lookup::Shared(outcome, spilled);
                    }
                    FollowerResult::Lead(leader) => run.in_process = Some(leader),
                    FollowerResult::Alone => return Lookup::Miss(run),
                }
                // The previous flight may have ended between the lookup and the join.
                if let Some(found) = self.cache.get_again(key) {
                    return kept(run, found);
                }
            }
        }
        Lookup::Miss(run)
    }

    /// Whether an answer exists; not counted as a lookup.
    pub(crate) fn is_there(&self, key: &CacheKey, session: Option<&str>) -> bool {
        let definition = key.definition();
        let version = self.cache.version(key);
        let told = self.session(definition, session).is_some_and(|session| {
            self.history.get(session, key, version, self.cache.now()).is_some()
        });
        told || definition.cache().is_some() && self.cache.is_enabled() && self.cache.holds(key)
    }

    /// Gives the outcome of a call to its followers, and stores it if it is a success. Returns the
    /// memo in which all who get the answer record its spill. The output is complete, before any
    /// budget cuts it.
    ///
    /// An outcome that depends on more than its key (`shareable` is false) is neither stored nor
    /// given to other turns, unless the definition allows it; the calls of one batch share it.
    pub(crate) fn publish(
        &self,
        run: LeaderDuty,
        scope: LookupScope<'_>,
        outcome: &SharedOutcome,
        shareable: bool,
    ) -> Arc<SpillMemo> {
        let spilled = Arc::<SpillMemo>::default();
        let policy = run.key.definition().cache();
        let shareable = shareable || policy.is_some_and(CachePolicy::is_shared);
        if !shareable {
            run.publish_in_batch(outcome, &spilled);
            return spilled;
        }
        // Before the followers wake, so that later calls find it.
        if let Ok(output) = outcome {
            let kept = CachedAnswer { output: Arc::clone(output), spilled: Arc::clone(&spilled) };
            self.cache.insert(&run.key, run.version, &kept);
            self.remember(&run, scope, &kept);
        }
        run.publish(outcome, &spilled);
        spilled
    }

    /// A guard to hold while a tool runs, by the call and by anything that may outlive it; see
    /// [`AnswerCache::writing`].
    pub(crate) fn writing(&self, resources: &Resources) -> Option<PendingWrite> {
        self.cache.writing(resources)
    }

    /// A resource has changed other than by a call.
    pub(crate) fn invalidate_resource(&self, name: &str) {
        self.cache.invalidate_resource(name);
    }

    /// A session has ended.
    pub(crate) fn forget_session(&self, session: &str) {
        self.history.forget(session);
    }

    /// Invalidates all answers, including those of running calls.
    pub(crate) fn clear(&self) {
        self.cache.clear();
        self.history.clear();
    }

    /// Statistics of the cache.
    pub(crate) fn stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Stores a success in the session's history, wherever it came from.
    fn remember(&self, run: &LeaderDuty, scope: LookupScope<'_>, kept: &CachedAnswer) {
        if let Some(session) = self.session(run.key.definition(), scope.session)
            && let Some(expires) = self.cache.expiry(&run.key)
        {
            self.history.insert(session, &run.key, run.version, kept.clone(), expires);
        }
    }

    /// The session, if the tool's answers are stored for it. Disabling the cache also disables
    /// this.
    fn session<'s>(
        &self,
        definition: &ToolDefinition,
        session: Option<&'s str>,
    ) -> Option<&'s str> {
        session.filter(|_| definition.dedupe() == Dedupe::Session && self.cache.is_enabled())
    }
}

impl LeaderDuty {
    fn publish(self, outcome: &SharedOutcome, spilled: &Arc<SpillMemo>) {
        for leader in [self.in_process, self.in_batch].into_iter().flatten() {
            leader.publish(outcome, spilled);
        }
    }

    /// Shares the outcome with calls of the same batch; other followers run for themselves.
    fn publish_in_batch(self, outcome: &SharedOutcome, spilled: &Arc<SpillMemo>) {
        if let Some(leader) = self.in_process {
            leader.keep_to_itself();
        }
        if let Some(leader) = self.in_batch {
            leader.publish(outcome, spilled);
        }
    }

    fn kept(self, kept: CachedAnswer) -> Lookup {
        self.publish(&Ok(Arc::clone(&kept.output)), &kept.spilled);
        Lookup::Hit(kept)
    }
}

async fn lead_or_wait(role: Role) -> FollowerResult {
    match role {
        Role::Leader(leader) => FollowerResult::Lead(leader),
        Role::Follower(follower) => follower.await,
    }
}
