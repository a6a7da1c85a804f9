//! Whether a checked call may start now: breaker, slots and rate, in this order, by tool name.
//!
//! This state outlives turns and reloads. The limits come from the definition that each call holds,
//! so a reloaded definition applies from its first call on.

mod breaker;
mod fair_bucket;
mod fair_queue;
mod lineage;
mod rate;
mod refusal;
mod slots;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hashbrown::HashMap;
use toolcrib_tool::{ErrorKind, RateLimit, ToolDefinition, ToolError, ToolName};

use self::breaker::{Breaker, Watch};
use self::rate::Rates;
pub use self::rate::TokenBucket;
use crate::admission::slots::{Admittance, Gate, Queued};

pub(crate) use self::lineage::{Descent, Lineage};
pub(crate) use crate::admission::slots::ConcurrencySlot;

/// The maximum nesting depth of calls; a deeper one is `denied`.
pub(crate) const MAX_DEPTH: usize = 16;

/// Limits that apply to every tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdmissionConfig {
    /// Calls that may wait for a slot of one tool. Default 1,000; 0 means that no call waits. When
    /// as many wait, the newest call of the identity with the most waiting calls makes room for an
    /// identity that has fewer.
    pub(crate) max_queue: usize,
    /// How long a call waits for a slot at most. Default 30 s.
    pub(crate) queue_timeout: Duration,
    /// Consecutive timeouts that pause a tool for an identity. Default 3; 0 means never.
    pub(crate) consecutive_timeouts: u32,
    /// How long a paused tool rests before one call is tried. Default 60 s.
    pub(crate) cooldown: Duration,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            max_queue: 1000,
            queue_timeout: Duration::from_secs(30),
            consecutive_timeouts: 3,
            cooldown: Duration::from_secs(60),
        }
    }
}

/// Admits calls: each one passes here before it runs.
#[derive(Debug)]
pub(crate) struct Admission {
    config: AdmissionConfig,
    breaker: Breaker,
    /// Tools whose definitions state a limit, from the first such call on. The names come from
    /// definitions, never from a model. Names that are no longer called are removed when the map is
    /// full.
    tools: RwLock<HashMap<ToolName, Arc<ToolAdmission>>>,
}

/// The counters of one tool.
#[derive(Debug, Default)]
struct ToolAdmission {
    gate: Arc<Gate>,
    rates: Rates,
}

impl ToolAdmission {
    /// Whether it can be forgotten: no call runs or waits, and all rate limits are full.
    fn is_idle(&self) -> bool {
        // Slots and waiting calls hold a reference to the gate.
        Arc::strong_count(&self.gate) == 1 && self.rates.are_full()
    }
}

impl Admission {
    pub(crate) fn new(config: AdmissionConfig) -> Self {
        let breaker = Breaker::new(config.consecutive_timeouts, config.cooldown);
        Self { config, breaker, tools: RwLock::default() }
    }

    /// Waits until the call may start, or says why it may not: `denied` (too deep), `paused`,
    /// `unavailable` (queue full or too slow) or `rate_limited`; all but the first say when to
    /// try again.
    ///
    /// `edition` is a number that changes with the tool. `identity` is whose timeouts count together and
    /// whose share of the slots and the rate the call takes; `""` where there is none. `lineage` is the [`Descent`]'s of the call this one was
    /// made from. The wait is at most [`AdmissionConfig::queue_timeout`] and is no part of the
    /// tool's own time limit. Nested calls that hold slots and wait for each other's end there, too.
    /// Dropping the future leaves the queue.
    pub(crate) async fn admit<'a>(
        &'a self,
        definition: &'a ToolDefinition,
        edition: u64,
        identity: &'a Arc<str>,
        lineage: &'a Lineage,
    ) -> Result<Permit<'a>, ToolError> {
        if lineage.depth() > MAX_DEPTH {
            return Err(refusal::too_deep());
        }
        let tool = definition.tool_name();
        let mut permit = Permit { slot: None, watch: self.watch(tool, edition, identity)? };
        if let Some(limit) = definition.max_concurrent() {
            let (taken, waited) = match lineage.slot_of(tool) {
                Some(inherited) => (inherited, false),
                None => self.slot(tool, identity, limit).await?,
            };
            permit.slot = Some(taken);
            // Calls in front may have timed out in the meantime; a whole queue must not follow
            // them.
            if waited && !permit.watch.is_trial() {
                permit.watch = self.watch(tool, edition, identity)?;
            }
        }
        // Last, so that a call that does not start uses no token.
        if let Some(limit) = definition.rate() {
            self.take_token(tool, identity, limit)?;
        }
        Ok(permit)
    }

    fn watch<'a>(
        &'a self,
        tool: &'a ToolName,
        edition: u64,
        identity: &'a str,
    ) -> Result<Watch<'a>, ToolError> {
        let checked = self.breaker.check(tool, identity, edition);
        checked.map_err(|paused| refusal::paused(paused, self.config.consecutive_timeouts))
    }

    /// Forgets the timeouts of a tool for every identity, so that its calls pass again. Returns for
    /// how many identities it was paused.
    pub(crate) fn reset_breaker(&self, tool: &str) -> usize {
        self.breaker.reset(tool)
    }

    /// The paused tools, each with the longest time left for any identity.
    pub(crate) fn paused(&self) -> BTreeMap<String, Duration> {
        self.breaker.paused()
    }

    /// A slot, and whether the call had to wait for it.
    async fn slot(
        &self,
        tool: &ToolName,
        identity: &Arc<str>,
        limit: usize,
    ) -> Result<(Arc<ConcurrencySlot>, bool), ToolError> {
        match self.tool(tool).gate.enter(identity, limit, self.config.max_queue) {
            Admittance::Now(slot) => Ok((Arc::new(slot), false)),
            Admittance::Queued(place) => Ok((Box::pin(self.wait(place)).await?, true)),
            Admittance::Full => Err(refusal::queue_full(self.config.queue_timeout)),
        }
    }

    async fn wait(&self, mut place: Queued) -> Result<Arc<ConcurrencySlot>, ToolError> {
        let limit = self.config.queue_timeout;
        match tokio::time::timeout(limit, place.slot()).await {
            Ok(Some(slot)) => Ok(Arc::new(slot)),
            // Another identity, which had fewer calls there, has its place.
            Ok(None) => Err(refusal::queue_full(limit)),
            Err(_) => Err(refusal::queue_timeout(limit)),
        }
    }

    fn take_token(
        &self,
        tool: &ToolName,
        identity: &Arc<str>,
        limit: RateLimit,
    ) -> Result<(), ToolError> {
        let taken = self.tool(tool).rates.take(limit, identity);
        taken.map_err(|refused| refusal::rate_limited(limit, refused))
    }

    fn tool(&self, name: &ToolName) -> Arc<ToolAdmission> {
        // Nothing panics under these locks that could leave the map half changed.
        let known = self.tools.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.unwrap_or_else(|| {
            let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
            if tools.len() == tools.capacity() && !tools.contains_key(name) {
                tools.retain(|_, tool| Arc::strong_count(tool) > 1 || !tool.is_idle());
            }
            Arc::clone(tools.entry(name.clone()).or_default())
        })
    }
}

/// Takes lent slots back as soon as their tools have room. The order by tool name prevents
/// deadlocks between calls that take several slots back.
pub(crate) async fn take_back(mut slots: Vec<(ToolName, usize, Arc<ConcurrencySlot>)>) {
    slots.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    for (_, limit, slot) in &slots {
        match slot.ask_back(*limit) {
            None => {}
            Some(Admittance::Now(other)) => slot.take_over(&other),
            Some(Admittance::Queued(mut place)) => {
                if let Some(other) = place.slot().await {
                    slot.take_over(&other);
                }
            }
            // The queue of returning calls is unbounded.
            Some(Admittance::Full) => slot.take_back_now(),
        }
    }
}

/// A call that may run. Keep it until the call has ended, then report how with [`finish`]. If it is
/// dropped instead, the call counts as withdrawn.
///
/// [`finish`]: Self::finish
#[derive(Debug)]
#[must_use = "dropping it gives the permit back"]
pub(crate) struct Permit<'a> {
    slot: Option<Arc<ConcurrencySlot>>,
    watch: Watch<'a>,
}

impl Permit<'_> {
    /// The slot, for work that may outlive the answer to its call, as on the blocking pool: while a
    /// clone exists, the slot stays occupied. `None` where the tool states no limit.
    pub(crate) fn slot(&self) -> Option<&Arc<ConcurrencySlot>> {
        self.slot.as_ref()
    }

    /// Gives the permit back; `failure` is the error kind of a failed call. Only `timeout` counts
    /// towards a pause, `cancelled` is ignored, and everything else resets the count. Returns
    /// whether the tool is paused from now on.
    pub(crate) fn finish(self, failure: Option<ErrorKind>) -> bool {
        match failure {
            Some(ErrorKind::Timeout) => return self.watch.timed_out(),
            Some(ErrorKind::Cancelled) => drop(self.watch),
            _ => self.watch.ended(),
        }
        false
    }
}

#[cfg(test)]
mod tests;
