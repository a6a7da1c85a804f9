//! Calls that need not run: the same call answered before, or being answered now.
//!
//! [`Answers::ask`] is the one door: it says whether there is an answer already, waits for the one
//! that is on its way, or tells the caller to run the tool and, when it has,
//! [`publish`](Answers::publish) what came of it. In the order it looks:
//!
//! 1. the batch: the same call in one batch runs once (`dedupe: batch` and `session`, and `cache`);
//! 2. the session: it has had this answer (`dedupe: session`);
//! 3. the cache: somebody has, not long ago (`cache`);
//! 4. calls under way anywhere in the process (`cache`).
//!
//! A tool that has declared neither goes straight through.

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

/// Everything an executor keeps of earlier calls, and of those under way.
#[derive(Debug)]
pub(crate) struct Answers {
    cache: Arc<AnswerCache>,
    flights: Flights,
    history: SessionHistory,
}

/// From where a call comes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookupScope<'a> {
    /// The session it belongs to.
    pub(crate) session: Option<&'a str>,
    /// The flights of the batch it is part of.
    pub(crate) batch: Option<&'a Flights>,
    /// Whether a running tool has made it. Such a call waits for no call outside its batch: the
    /// other may be waiting for a tool that waits for this one.
    pub(crate) nested: bool,
}

/// What is to be done about a call.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// Nothing: this is the answer to an earlier call (`cached`).
    Hit(CachedAnswer),
    /// Nothing: the same call ran for this one too (`skipped`). With where its text was spilled.
    Shared(SharedOutcome, Arc<SpillMemo>),
    /// To run it, and to publish what comes of it.
    Miss(LeaderDuty),
}

/// A call that must run. Dropped, it is as if it had not been asked, and one of those that wait
/// for the same runs instead.
#[derive(Debug)]
#[must_use = "others may wait for this call"]
pub(crate) struct LeaderDuty {
    key: CacheKey,
    version: ResourceVersion,
    /// Those who wait for the call, in the batch and in the process.
    in_batch: Option<Leader>,
    in_process: Option<Leader>,
}

impl Answers {
    /// Keeps nothing yet. The clock is the cache's.
    pub(crate) fn new(cache: AnswerCache, history: HistoryLimits) -> Self {
        Self {
            cache: Arc::new(cache),
            flights: Flights::new(),
            history: SessionHistory::new(history),
        }
    }

    /// Finds out what is to be done about a call, waiting for the same call elsewhere if need be.
    ///
    /// The wait is part of the caller's time: it sets the limit and drops the future.
    pub(crate) async fn ask(&self, key: &CacheKey, scope: LookupScope<'_>) -> Lookup {
        let definition = key.definition();
        // Switching the cache off does not end this: within a batch nothing grows old.
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
                // The one before may have landed between the look and the join.
                if let Some(found) = self.cache.get_again(key) {
                    return kept(run, found);
                }
            }
        }
        Lookup::Miss(run)
    }

    /// Whether an answer is there; counts nothing.
    pub(crate) fn is_there(&self, key: &CacheKey, session: Option<&str>) -> bool {
        let definition = key.definition();
        let version = self.cache.version(key);
        let told = self.session(definition, session).is_some_and(|session| {
            self.history.get(session, key, version, self.cache.now()).is_some()
        });
        told || definition.cache().is_some() && self.cache.is_enabled() && self.cache.holds(key)
    }

    /// Gives the outcome of a call to whoever waits for it, and keeps it if it is a success. Returns
    /// where all who get it remember that it was spilled. The output is the whole one, before any
    /// budget has cut it.
    ///
    /// An outcome that depends on more than its key (`shareable` is false) is neither kept nor given
    /// to other turns, unless the definition says that it may be; the calls of one batch share it.
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
        // Before those who wait are told, so that whoever comes after them finds it.
        if let Ok(output) = outcome {
            let kept = CachedAnswer { output: Arc::clone(output), spilled: Arc::clone(&spilled) };
            self.cache.insert(&run.key, run.version, &kept);
            self.remember(&run, scope, &kept);
        }
        run.publish(outcome, &spilled);
        spilled
    }

    /// To be held while a tool runs, by the call and by whatever may outlive it; see
    /// [`AnswerCache::writing`].
    pub(crate) fn writing(&self, resources: &Resources) -> Option<PendingWrite> {
        self.cache.writing(resources)
    }

    /// A resource has changed by other ways than a call.
    pub(crate) fn invalidate_resource(&self, name: &str) {
        self.cache.invalidate_resource(name);
    }

    /// A session is over.
    pub(crate) fn forget_session(&self, session: &str) {
        self.history.forget(session);
    }

    /// Forgets all answers, those of calls under way too.
    pub(crate) fn clear(&self) {
        self.cache.clear();
        self.history.clear();
    }

    /// What the cache holds and has done.
    pub(crate) fn stats(&self) -> CacheStats {
        self.cache.stats()
    }

    /// Keeps a success for the session, from wherever it came.
    fn remember(&self, run: &LeaderDuty, scope: LookupScope<'_>, kept: &CachedAnswer) {
        if let Some(session) = self.session(run.key.definition(), scope.session)
            && let Some(expires) = self.cache.expiry(&run.key)
        {
            self.history.insert(session, &run.key, run.version, kept.clone(), expires);
        }
    }

    /// The session, if the tool's answers are kept for it. Switching the cache off ends that too.
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

    /// Shares the outcome with calls of the same batch; others that wait run for themselves.
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
