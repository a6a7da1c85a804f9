//! Pausing the ancestors of a waiting call.

use std::sync::Arc;

use super::RunningCall;
use crate::admission::{Lineage, take_back};

/// The paused ancestors of a waiting call. Dropping it resumes them at once, even if their permits
/// were given to other calls.
pub(crate) struct Paused {
    lineage: Lineage,
    /// The innermost first.
    calls: Vec<Arc<RunningCall>>,
}

impl Paused {
    /// Pauses the ancestors of a nested call.
    pub(crate) fn begin(lineage: &Lineage) -> Self {
        let calls: Vec<_> = lineage.calls().cloned().collect();
        for call in &calls {
            call.stand_still();
        }
        lineage.outermost().time_changed();
        Self { lineage: lineage.clone(), calls }
    }

    /// Resumes them once each has its permit and has passed the barrier again.
    pub(super) async fn end(mut self) {
        let calls = std::mem::take(&mut self.calls);
        // Resumed on every path, even if the wait for a permit is abandoned.
        let back = GoOn { lineage: &self.lineage, calls: &calls };
        let last: Vec<_> = calls.iter().rev().filter(|call| call.is_last_wait()).collect();
        let permits = last
            .iter()
            .filter_map(|call| {
                let name = call.tool().entry.definition.tool_name().clone();
                Some((name, call.max_concurrent(), call.permit()?))
            })
            .collect();
        take_back(permits).await;
        for call in calls.iter().rev() {
            if let Some(presence) = call.presence() {
                presence.come_back().await;
            }
        }
        drop(back);
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        drop(GoOn { lineage: &self.lineage, calls: &self.calls });
    }
}

/// Resumes calls when dropped.
struct GoOn<'p> {
    lineage: &'p Lineage,
    calls: &'p [Arc<RunningCall>],
}

impl Drop for GoOn<'_> {
    fn drop(&mut self) {
        if self.calls.is_empty() {
            return;
        }
        for call in self.calls {
            if call.is_last_wait()
                && let Some(permit) = call.permit()
            {
                permit.take_back_now();
            }
            call.go_on();
        }
        self.lineage.outermost().time_changed();
    }
}
