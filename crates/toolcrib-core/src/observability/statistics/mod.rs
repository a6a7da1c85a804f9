//! Statistics of calls, per tool: counts, failures by kind, durations, calls in flight.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;
use toolcrib_tool::{ErrorKind, ToolDefinition, ToolName, ToolOutput};

/// The label that counts all calls of unknown names together, because a model can invent any number
/// of names. No tool can have this name.
pub const UNKNOWN_TOOLS: &str = "(unknown)";

/// The label of all tools beyond the first 10,000. No tool can have this name.
pub const OTHER_TOOLS: &str = "(other)";

/// How many tools are counted separately. A tool that is called often costs 2 KiB if calls take
/// less than a millisecond, and up to 14 KiB if they take an hour.
const MAX_TOOLS: usize = 10_000;

/// The maximum duration in the quantiles, in microseconds: an hour. The total uses the full
/// duration.
const LONGEST_MICROS: u64 = 3_600_000_000;

/// Significant decimal digits of the quantiles.
const DIGITS: u8 = 2;

/// Counts the outcomes of calls. Cloning it is cheap; clones share the counters.
///
/// Counting takes one uncontended lock per tool and allocates only when a tool is called for the
/// first time.
#[derive(Clone, Default)]
pub struct Statistics {
    tools: Arc<RwLock<HashMap<ToolName, Arc<ToolCounters>>>>,
    unknown: Arc<ToolCounters>,
    other: Arc<ToolCounters>,
}

/// The statistics of one tool at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolStatistics {
    /// The tool's name, or [`UNKNOWN_TOOLS`], or [`OTHER_TOOLS`].
    pub tool: String,
    /// Calls that were not answered from the cache: the sum of `successes`, `failures`, `refused`
    /// and `denied`.
    pub executions: u64,
    /// Calls in which the tool ran and succeeded.
    pub successes: u64,
    /// Calls in which the tool ran and failed.
    pub failures: u64,
    /// Calls that were refused before the tool ran, other than by a person or a rule: invalid
    /// arguments, a missing value, a limit, an unavailable tool. They have no duration.
    pub refused: u64,
    /// Calls that a person or a rule denied before the tool ran. They have no duration.
    pub denied: u64,
    /// Unsuccessful calls (failures, refusals and denials) by the stable name of the error kind,
    /// without zero entries.
    pub errors_by_kind: BTreeMap<&'static str, u64>,
    /// Calls that ran into a time limit: failures of kind `timeout`, and successes with partial
    /// output.
    pub timeouts: u64,
    /// Calls answered from an earlier call or from the same concurrent call.
    pub cache_hits: u64,
    /// Calls not yet answered, including those that wait for a permit.
    pub in_flight: u64,
    /// Total duration of all runs, in seconds.
    pub total_seconds: f64,
    /// Average duration of a run, in seconds; absent before the first.
    pub average_seconds: Option<f64>,
    /// Median duration of a run, in seconds, to two digits; longer runs count as an hour. Absent
    /// before the first.
    pub p50_seconds: Option<f64>,
    /// 99th percentile of the duration, in seconds, like [`p50_seconds`](Self::p50_seconds).
    pub p99_seconds: Option<f64>,
}

/// How many runs are needed before the failure rate is reported.
const TELLING: u64 = 10;

impl ToolStatistics {
    /// How often the tool ran: its successes and failures.
    pub fn runs(&self) -> u64 {
        self.successes + self.failures
    }

    /// A line for models if at least 3 of 10 runs failed, once there are enough runs. Refused and
    /// denied calls do not count.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use toolcrib_core::Registry;
    /// use toolcrib_core::{Executor, ExecutorConfig, TurnOptions};
    /// use toolcrib_tool::{ToolCall, ToolError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolcrib_tool::DefinitionError> {
    /// let registry = Registry::scratch()
    ///     .tool("flaky", |_, _| async { Err::<String, _>(ToolError::execution("no luck")) })
    ///     .build()?;
    /// let executor = Executor::new(registry, ExecutorConfig::default());
    /// let turn = executor.turn(TurnOptions::default());
    /// for number in 0..20 {
    ///     turn.call(ToolCall::new(number.to_string(), "flaky", "{}")).await;
    /// }
    /// let note = executor.statistics().snapshot()[0].often_fails();
    /// assert_eq!(note.as_deref(), Some("fails often: 20 of 20 runs"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn often_fails(&self) -> Option<String> {
        let (ran, failed) = (self.runs(), self.failures);
        let often = ran >= TELLING && failed.saturating_mul(10) >= ran.saturating_mul(3);
        often.then(|| format!("fails often: {failed} of {ran} runs"))
    }
}

/// How a call that ran has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It succeeded.
    Success,
    /// It ran into a time limit and succeeded with partial output.
    SuccessAtTimeLimit,
    /// It failed.
    Failure(ErrorKind),
}

impl Ending {
    /// The end of a successful call: with [`ToolOutput::with_timed_out`], a tool returns partial
    /// output at its time limit.
    pub(crate) fn of(output: &ToolOutput) -> Self {
        if output.timed_out() { Self::SuccessAtTimeLimit } else { Self::Success }
    }
}

#[derive(Default)]
struct ToolCounters {
    /// Calls that have begun; those not counted in `ended` are in flight.
    begun: AtomicU64,
    /// Calls that were answered from the cache.
    cache_hits: AtomicU64,
    counts: Mutex<ToolCounts>,
}

#[derive(Default)]
struct ToolCounts {
    /// Calls that are no longer in flight.
    ended: u64,
    successes: u64,
    /// Nanoseconds spent in runs; 64 bits last 584 years.
    total_nanos: u64,
    /// `None` before the first execution; it grows with the longest duration.
    durations: Option<Histogram<u32>>,
    timeouts: u64,
    /// Calls that ended before the tool ran, including denied ones.
    did_not_run: u64,
    /// Those of them that a person or a rule denied.
    denied: u64,
    errors: [u64; ErrorKind::ALL.len()],
}

impl Statistics {
    /// Statistics with all counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// A call of this tool has begun, at `started`.
    pub(crate) fn begin(&self, definition: &ToolDefinition, started: Instant) -> InFlight {
        let tool = self.tool(definition.tool_name());
        tool.begun.fetch_add(1, Ordering::Relaxed);
        InFlight { tool, started, ended: false }
    }

    /// A call was answered `not_found`.
    pub(crate) fn unknown(&self) {
        self.unknown.counts().refused(ErrorKind::NotFound);
    }

    /// All counts, sorted by name. Tools that were never called are absent.
    pub fn snapshot(&self) -> Vec<ToolStatistics> {
        // Copied first, so that no tool's lock is taken under the table's lock.
        let mut tools: Vec<_> = {
            let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
            tools.iter().map(|(name, tool)| (name.to_string(), Arc::clone(tool))).collect()
        };
        tools.push((UNKNOWN_TOOLS.to_owned(), Arc::clone(&self.unknown)));
        tools.push((OTHER_TOOLS.to_owned(), Arc::clone(&self.other)));
        tools.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let all = tools.into_iter().map(|(name, tool)| tool.snapshot(name));
        all.filter(|tool| tool.executions + tool.cache_hits + tool.in_flight > 0).collect()
    }

    fn tool(&self, name: &ToolName) -> Arc<ToolCounters> {
        let known = self.tools.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.unwrap_or_else(|| {
            let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
            if tools.len() >= MAX_TOOLS && !tools.contains_key(name) {
                return Arc::clone(&self.other);
            }
            Arc::clone(tools.entry(name.clone()).or_default())
        })
    }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statistics").finish_non_exhaustive()
    }
}

impl ToolCounters {
    fn counts(&self) -> MutexGuard<'_, ToolCounts> {
        // Counting does not panic; if it did, a count would be off by one and no more.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot(&self, tool: String) -> ToolStatistics {
        let counts = self.counts();
        let errors: u64 = counts.errors.iter().sum();
        let by_kind = ErrorKind::ALL.iter().zip(counts.errors);
        let failures = errors - counts.did_not_run;
        let ran = counts.successes + failures;
        let total_seconds = Duration::from_nanos(counts.total_nanos).as_secs_f64();
        let quantile = |quantile| {
            let durations = counts.durations.as_ref().filter(|durations| !durations.is_empty())?;
            Some(Duration::from_micros(durations.value_at_quantile(quantile)).as_secs_f64())
        };
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 executions")]
        let average_seconds = (ran > 0).then(|| total_seconds / ran as f64);
        ToolStatistics {
            tool,
            executions: counts.successes + errors,
            successes: counts.successes,
            failures,
            refused: counts.did_not_run - counts.denied,
            denied: counts.denied,
            errors_by_kind: by_kind
                .filter(|(_, count)| *count > 0)
                .map(|(kind, count)| (kind.as_str(), count))
                .collect(),
            timeouts: counts.timeouts,
            cache_hits: self.cache_hits.load(Ordering::Relaxed),
            // Every call that has ended had begun before it took the lock.
            in_flight: self.begun.load(Ordering::Relaxed) - counts.ended,
            total_seconds,
            average_seconds,
            p50_seconds: quantile(0.5),
            p99_seconds: quantile(0.99),
        }
    }
}

impl ToolCounts {
    /// Counts a finished run.
    fn executed(&mut self, ending: Ending, duration: Duration) {
        match ending {
            Ending::Success => self.successes += 1,
            Ending::SuccessAtTimeLimit => {
                self.successes += 1;
                self.timeouts += 1;
            }
            Ending::Failure(kind) => self.failed(kind),
        }
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.total_nanos = self.total_nanos.saturating_add(nanos);
        if self.durations.is_none() {
            self.durations = Histogram::new(DIGITS).ok();
        }
        if let Some(durations) = &mut self.durations {
            let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            // Fails only for values out of range, which the bound excludes.
            let _ = durations.record(micros.clamp(1, LONGEST_MICROS));
        }
    }

    fn refused(&mut self, kind: ErrorKind) {
        self.failed(kind);
        self.did_not_run += 1;
        self.denied += u64::from(kind == ErrorKind::Denied);
    }

    fn failed(&mut self, kind: ErrorKind) {
        let place = ErrorKind::ALL.iter().position(|known| *known == kind);
        if let Some(count) = place.and_then(|place| self.errors.get_mut(place)) {
            *count += 1;
        }
        self.timeouts += u64::from(kind == ErrorKind::Timeout);
    }
}

/// A call in flight. Report how it ended; if it is dropped, it counts as a run that failed with
/// `cancelled` after the time since it began.
#[must_use = "if it is dropped, the call counts as cancelled"]
pub(crate) struct InFlight {
    tool: Arc<ToolCounters>,
    started: Instant,
    ended: bool,
}

impl InFlight {
    /// The tool ran, for so long.
    pub(crate) fn finish(mut self, ending: Ending, duration: Duration) {
        self.end().executed(ending, duration);
    }

    /// The call was refused or denied before the tool ran.
    pub(crate) fn refuse(mut self, kind: ErrorKind) {
        self.end().refused(kind);
    }

    /// The call was suspended; it is counted when it is resumed.
    pub(crate) fn wait(mut self) {
        drop(self.end());
    }

    /// The call was answered from the cache, or from the same concurrent call.
    pub(crate) fn cache_hit(mut self) {
        drop(self.end());
        self.tool.cache_hits.fetch_add(1, Ordering::Relaxed);
    }

    /// The call is no longer under way.
    fn end(&mut self) -> MutexGuard<'_, ToolCounts> {
        self.ended = true;
        let mut counts = self.tool.counts();
        counts.ended += 1;
        counts
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.ended {
            let spent = self.started.elapsed();
            self.end().executed(Ending::Failure(ErrorKind::Cancelled), spent);
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("started", &self.started).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
