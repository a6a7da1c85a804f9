//! Calls that stand still while a call that they lead to waits.

use std::sync::Arc;

use super::RunningCall;
use crate::admission::{Lineage, take_back};

/// The calls that lead to a waiting one, standing still. Dropped, they go on at once, whether or not
/// their permits have been given to others meanwhile.
pub(crate) struct Paused {
    lineage: Lineage,
    /// The innermost first.
    calls: Vec<Arc<RunningCall>>,
}

impl Paused {
    /// Stops the calls that lead to a nested call.
    pub(crate) fn begin(lineage: &Lineage) -> Self {
        let calls: Vec<_> = lineage.calls().cloned().collect();
        for call in &calls {
            call.stand_still();
        }
        lineage.outermost().time_changed();
        Self { lineage: lineage.clone(), calls }
    }

    /// Lets them go on, when each has its permit and its place in the batch again.
    pub(super) async fn end(mut self) {
        let calls = std::mem::take(&mut self.calls);
        // Put back on the way out, also where the wait for a permit is given up.
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

/// Lets calls go on when dropped.
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
