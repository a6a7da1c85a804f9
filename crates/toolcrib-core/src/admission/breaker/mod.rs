//! The breaker: a tool that keeps timing out for someone is paused for them, then tried again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::{Equivalent, HashMap, HashSet};
use tokio::time::Instant;
use toolcrib_tool::ToolName;

/// How many entries, one per tool and identity, are tracked. Beyond that the least recently used
/// one is evicted, which closes its circuit.
const MAX_ENTRIES: usize = 10_000;

/// Counts consecutive timeouts per tool, identity and definition.
///
/// The definition's edition is part of the key: a changed definition starts from zero, and turns
/// that still hold the old one do not affect it.
#[derive(Debug)]
pub(super) struct Breaker {
    /// Consecutive timeouts that open the circuit; 0 means never.
    threshold: u32,
    cooldown: Duration,
    /// Number of entries in the table, readable without its lock: as long as nothing has timed out,
    /// a call takes no lock here.
    entries: AtomicUsize,
    table: Mutex<BreakerTable>,
}

#[derive(Debug, Default)]
struct BreakerTable {
    map: HashMap<BreakerKey, BreakerEntry>,
    /// Counts uses, to find the least recently used entry.
    uses: u64,
    trials: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BreakerKey {
    tool: Box<str>,
    identity: Box<str>,
    edition: u64,
}

/// A [`BreakerKey`] that borrows its fields. They are in the same order, so that both hash alike.
/// The name is not read before there is an entry to look for.
#[derive(Debug, Clone, Copy, Hash)]
struct BreakerKeyRef<'k> {
    tool: &'k ToolName,
    identity: &'k str,
    edition: u64,
}

impl Equivalent<BreakerKey> for BreakerKeyRef<'_> {
    fn equivalent(&self, key: &BreakerKey) -> bool {
        self.edition == key.edition
            && self.tool.as_str() == &*key.tool
            && self.identity == &*key.identity
    }
}

#[derive(Debug)]
struct BreakerEntry {
    used: u64,
    state: CircuitState,
}

#[derive(Debug, Clone, Copy)]
enum CircuitState {
    /// Calls pass; this many have timed out in a row.
    Closed { timeouts: u32 },
    /// Calls are paused until this time.
    Open { until: Instant },
    /// One probe call is under way, with this number; all others are paused.
    HalfOpen { trial: u64 },
}

/// Why a call is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paused {
    /// For this long.
    For(Duration),
    /// Until the probe call has ended.
    WhileTried,
}

impl Breaker {
    pub(super) fn new(threshold: u32, cooldown: Duration) -> Self {
        Self { threshold, cooldown, entries: AtomicUsize::new(0), table: Mutex::default() }
    }

    /// Decides whether a call may pass. Report how the call ended to the [`Watch`].
    pub(super) fn check<'b>(
        &'b self,
        tool: &'b ToolName,
        identity: &'b str,
        edition: u64,
    ) -> Result<Watch<'b>, Paused> {
        let key = BreakerKeyRef { tool, identity, edition };
        let watch = |trial| Watch { breaker: self, key, trial };
        if self.entries.load(Ordering::Relaxed) == 0 {
            return Ok(watch(None));
        }
        let mut table = self.lock();
        let number = table.trials;
        let Some(entry) = table.touch(&key) else { return Ok(watch(None)) };
        match entry.state {
            CircuitState::Closed { .. } => return Ok(watch(None)),
            CircuitState::HalfOpen { .. } => return Err(Paused::WhileTried),
            CircuitState::Open { until } => {
                let left = until.saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    return Err(Paused::For(left));
                }
            }
        }
        entry.state = CircuitState::HalfOpen { trial: number };
        table.trials += 1;
        Ok(watch(Some(number)))
    }

    /// Forgets the timeouts of a tool, for every identity.
    pub(super) fn reset(&self, tool: &str) -> usize {
        let mut table = self.lock();
        let mut paused = HashSet::new();
        table.map.retain(|key, entry| {
            let is_reset = *key.tool == *tool;
            if is_reset && !matches!(entry.state, CircuitState::Closed { .. }) {
                paused.insert(key.identity.clone());
            }
            !is_reset
        });
        self.entries.store(table.map.len(), Ordering::Relaxed);
        paused.len()
    }

    /// The paused tools by name, each with the longest time left for any identity; zero while a
    /// probe call is under way.
    pub(super) fn paused(&self) -> BTreeMap<String, Duration> {
        let mut paused = BTreeMap::new();
        if self.entries.load(Ordering::Relaxed) == 0 {
            return paused;
        }
        let now = Instant::now();
        for (key, entry) in &self.lock().map {
            let left = match entry.state {
                CircuitState::Open { until } if until > now => until - now,
                CircuitState::HalfOpen { .. } => Duration::ZERO,
                // Its next call passes.
                CircuitState::Open { .. } | CircuitState::Closed { .. } => continue,
            };
            let longest = paused.entry(key.tool.to_string()).or_insert(left);
            *longest = left.max(*longest);
        }
        paused
    }

    /// Records a timeout. Returns whether it opened the circuit.
    fn timed_out(&self, key: &BreakerKeyRef<'_>, trial: Option<u64>) -> bool {
        if self.threshold == 0 {
            return false;
        }
        let opened = CircuitState::Open { until: later(self.cooldown) };
        let after = |timeouts| {
            if timeouts >= self.threshold { opened } else { CircuitState::Closed { timeouts } }
        };
        let mut table = self.lock();
        let is_open = |entry: &BreakerEntry| matches!(entry.state, CircuitState::Open { .. });
        let was_open = table.map.get(key).is_some_and(is_open);
        match (table.touch(key), trial) {
            (Some(entry), trial) => match (entry.state, trial) {
                (CircuitState::HalfOpen { trial: current }, Some(trial)) if current == trial => {
                    entry.state = opened;
                }
                (CircuitState::Closed { timeouts }, None) => {
                    entry.state = after(timeouts.saturating_add(1));
                }
                // The call began before the circuit opened: nothing new.
                _ => {}
            },
            (None, None) => table.insert(key, after(1)),
            // A probe of an entry that was reset in the meantime.
            (None, Some(_)) => return false,
        }
        self.entries.store(table.map.len(), Ordering::Relaxed);
        // Later timeouts find the circuit open already.
        !was_open && table.map.get(key).is_some_and(is_open)
    }

    fn ended(&self, key: &BreakerKeyRef<'_>, trial: Option<u64>) {
        if self.entries.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut table = self.lock();
        let closes = table.map.get(key).is_some_and(|entry| match (entry.state, trial) {
            (CircuitState::Closed { .. }, None) => true,
            (CircuitState::HalfOpen { trial: current }, Some(trial)) => current == trial,
            // The call began before the circuit opened, so it says nothing about the tool now.
            _ => false,
        });
        if closes {
            table.map.remove(key);
            self.entries.store(table.map.len(), Ordering::Relaxed);
        }
    }

    /// Makes the next call the probe.
    fn give_up(&self, key: &BreakerKeyRef<'_>, trial: u64) {
        if let Some(entry) = self.lock().map.get_mut(key)
            && matches!(entry.state, CircuitState::HalfOpen { trial: current } if current == trial)
        {
            entry.state = CircuitState::Open { until: Instant::now() };
        }
    }

    fn lock(&self) -> MutexGuard<'_, BreakerTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the cooldown, or a century: an `Instant` cannot hold every duration.
fn later(cooldown: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + cooldown.min(CENTURY)
}

impl BreakerTable {
    fn touch(&mut self, key: &BreakerKeyRef<'_>) -> Option<&mut BreakerEntry> {
        let entry = self.map.get_mut(key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(entry)
    }

    fn insert(&mut self, key: &BreakerKeyRef<'_>, state: CircuitState) {
        // Scanning all entries is slow, but it happens only after a timeout, which took longer.
        if self.map.len() >= MAX_ENTRIES
            && let Some(oldest) = self.map.iter().min_by_key(|(_, entry)| entry.used)
        {
            let oldest = oldest.0.clone();
            self.map.remove(&oldest);
        }
        self.uses += 1;
        let BreakerKeyRef { tool, identity, edition } = *key;
        let key = BreakerKey { tool: tool.as_str().into(), identity: identity.into(), edition };
        self.map.insert(key, BreakerEntry { used: self.uses, state });
    }
}

/// A call that passed. If it is dropped without reporting an outcome, the call is not counted, and
/// a probe may be repeated.
#[derive(Debug)]
#[must_use = "if it is dropped, the call is not counted"]
pub(super) struct Watch<'b> {
    breaker: &'b Breaker,
    key: BreakerKeyRef<'b>,
    trial: Option<u64>,
}

impl Watch<'_> {
    /// Whether this call is the probe.
    pub(super) fn is_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// The call ran into its time limit. Returns whether that pauses the tool.
    pub(super) fn timed_out(mut self) -> bool {
        self.breaker.timed_out(&self.key, self.trial.take())
    }

    /// The call ended without a timeout.
    pub(super) fn ended(mut self) {
        self.breaker.ended(&self.key, self.trial.take());
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if let Some(trial) = self.trial {
            self.breaker.give_up(&self.key, trial);
        }
    }
}

#[cfg(test)]
mod tests;
