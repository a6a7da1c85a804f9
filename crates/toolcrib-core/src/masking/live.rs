//! The mask in use: calls read it, and it grows while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, Guard};
use toolcrib_tool::{ToolError, ToolOutput};

use super::{Mask, MaskError};

/// A mask that others add to. Where there is nothing to hide, a call pays for a look at a flag.
pub(crate) struct LiveMask {
    /// Whether anything is hidden: set once the mask that hides it is in place.
    hides: AtomicBool,
    mask: ArcSwap<Mask>,
}

impl LiveMask {
    pub(crate) fn new(mask: Mask) -> Self {
        let hides = AtomicBool::new(!mask.is_empty());
        Self { hides, mask: ArcSwap::from_pointee(mask) }
    }

    /// As it is now.
    pub(crate) fn load(&self) -> Guard<Arc<Mask>> {
        self.mask.load()
    }

    /// Masks a call's outcome, with what is to be hidden by now.
    #[inline]
    pub(crate) fn outcome(
        &self,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        if self.hides.load(Ordering::Acquire) { self.load().outcome(outcome) } else { outcome }
    }

    /// Hides these values, too, from when this returns.
    pub(crate) fn extend(&self, values: &[String]) -> Result<(), MaskError> {
        let mut result = Ok(());
        self.mask.rcu(|mask| match mask.extended(values.iter().cloned()) {
            Ok(mask) => {
                result = Ok(());
                Arc::new(mask)
            }
            Err(error) => {
                result = Err(error);
                Arc::clone(mask)
            }
        });
        if !self.load().is_empty() {
            self.hides.store(true, Ordering::Release);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_hidden_from_then_on() {
        let live = LiveMask::new(Mask::default());
        let said = |live: &LiveMask| {
            live.outcome(Ok(ToolOutput::from("hunter22"))).unwrap().text().into_owned()
        };
        assert_eq!(said(&live), "hunter22");
        live.extend(&["abc".to_owned()]).unwrap();
        assert_eq!(said(&live), "hunter22");
        live.extend(&["hunter22".to_owned()]).unwrap();
        assert_eq!(said(&live), super::super::MASKED);
        assert_eq!(said(&LiveMask::new(Mask::new(["hunter22".to_owned()]).unwrap())), "[masked]");
    }
}
