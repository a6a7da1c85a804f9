//! The mask in use, to which secrets are added while calls run.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, Guard};
use serde_json::Value;
use toolcrib_tool::{ByteMask, ByteMasks, ToolError, ToolOutput};

use super::{Mask, MaskError};

/// A mask to which secrets can be added while it is in use. Cloning it is cheap; clones share it.
/// Without secrets, a call only checks a flag.
#[derive(Clone)]
pub struct LiveMask(Arc<Live>);

struct Live {
    /// Whether there are secrets: set after the mask is in place.
    hides: AtomicBool,
    mask: ArcSwap<Mask>,
}

impl LiveMask {
    /// Begins with this mask.
    pub fn new(mask: Mask) -> Self {
        let hides = AtomicBool::new(!mask.is_empty());
        Self(Arc::new(Live { hides, mask: ArcSwap::from_pointee(mask) }))
    }

    /// The current mask.
    pub(crate) fn load(&self) -> Guard<Arc<Mask>> {
        self.0.mask.load()
    }

    /// Masks a text with the current secrets.
    pub fn text(&self, text: String) -> String {
        self.load().owned(text)
    }

    /// Masks a JSON value with the current secrets, like [`Mask::value`].
    pub fn value(&self, value: Value) -> Value {
        self.load().value(value)
    }

    /// Masks a call's outcome with the current secrets.
    #[inline]
    pub(crate) fn outcome(
        &self,
        outcome: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        if self.0.hides.load(Ordering::Acquire) { self.load().outcome(outcome) } else { outcome }
    }

    /// Masks for byte streams. Each piece is masked with the secrets that are known when it
    /// arrives.
    pub fn byte_masks(&self) -> ByteMasks {
        let live = self.clone();
        Arc::new(move || live.byte_mask())
    }

    fn byte_mask(&self) -> ByteMask {
        let live = self.clone();
        let mut known = live.0.mask.load_full();
        let mut stream = known.bytes();
        Box::new(move |piece, shown| {
            let now = live.load();
            if !Arc::ptr_eq(&known, &now) {
                known = Arc::clone(&now);
                stream.set_mask(Mask::clone(&now));
            }
            match piece {
                Some(piece) => stream.push(piece, shown),
                None => stream.finish(shown),
            }
        })
    }

    /// Adds secrets, which are masked once this returns.
    pub fn extend(&self, values: &[String]) -> Result<(), MaskError> {
        let mut result = Ok(());
        self.0.mask.rcu(|mask| match mask.extended(values.iter().cloned()) {
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
            self.0.hides.store(true, Ordering::Release);
        }
        result
    }
}

impl fmt::Debug for LiveMask {
    /// Shows the number of secrets, not their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveMask").field(&*self.load()).finish()
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

    #[test]
    fn a_running_stream_hides_a_secret_that_is_added_meanwhile() {
        let live = LiveMask::new(Mask::default());
        let mut stream = live.byte_masks()();
        let mut shown = Vec::new();
        stream(Some(b"hunter22 "), &mut shown);
        live.extend(&["hunter22".to_owned()]).unwrap();
        stream(Some(b"hunt"), &mut shown);
        live.extend(&["another one".to_owned()]).unwrap();
        stream(Some(b"er22 another"), &mut shown);
        stream(Some(b" one"), &mut shown);
        stream(None, &mut shown);
        assert_eq!(String::from_utf8(shown).unwrap(), "hunter22 [masked] [masked]");
    }
}
