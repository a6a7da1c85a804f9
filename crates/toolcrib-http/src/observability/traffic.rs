//! Counts requests, their responses and durations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The upper bounds of the histogram buckets, in seconds.
pub(crate) const BUCKETS: [f64; 11] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Counts requests. Labels come from fixed sets, so that clients cannot make it grow.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    in_flight: AtomicUsize,
    refused_connections: AtomicUsize,
    counts: Mutex<Counts>,
}

/// The counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Requests by method, route and status.
    pub(crate) answers: BTreeMap<(&'static str, &'static str, u16), u64>,
    /// Durations until the response headers, by route.
    pub(crate) durations: BTreeMap<&'static str, Durations>,
}

/// A histogram of durations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durations {
    /// How many were at most as long as each of [`BUCKETS`].
    pub(crate) at_most: [u64; BUCKETS.len()],
    pub(crate) count: u64,
    pub(crate) seconds: f64,
}

/// A request in progress, until this is dropped.
pub(crate) struct InFlightGuard<'a>(&'a AtomicUsize);

impl Traffic {
    pub(crate) fn begin(&self) -> InFlightGuard<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(&self.in_flight)
    }

    pub(crate) fn answered(
        &self,
        method: &'static str,
        route: &'static str,
        status: u16,
        took: Duration,
    ) {
        let seconds = took.as_secs_f64();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.answers.entry((method, route, status)).or_default() += 1;
        let durations = counts.durations.entry(route).or_default();
        for (end, count) in BUCKETS.iter().zip(&mut durations.at_most) {
            *count += u64::from(seconds <= *end);
        }
        durations.count += 1;
        durations.seconds += seconds;
    }

    /// Counts a connection that was refused because there were too many.
    pub(crate) fn refused_connection(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn refused_connections(&self) -> usize {
        self.refused_connections.load(Ordering::Relaxed)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
