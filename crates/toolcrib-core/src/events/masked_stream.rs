//! Streamed output, masked before it reaches listeners.

use std::sync::{Mutex, PoisonError};

use toolcrib_tool::{Content, StatusUpdate};

use crate::events::EmitterHandle;
use crate::output::masking::{Mask, MaskStream};

/// A call's event emitter behind the mask.
pub(crate) struct MaskedOutput {
    emitter: EmitterHandle,
    mask: Mask,
    /// A secret may begin in one part and end in the next.
    parts: Mutex<MaskStream>,
}

impl MaskedOutput {
    pub(crate) fn new(emitter: EmitterHandle, mask: Mask) -> Self {
        let parts = Mutex::new(mask.stream());
        Self { emitter, mask, parts }
    }

    pub(crate) fn status(&self, update: StatusUpdate) {
        let update = if self.mask.is_empty() { update } else { self.mask.status(update) };
        self.emitter.status(update);
    }

    /// Emits a part, or as much of it as cannot belong to a secret.
    pub(crate) async fn stream(&self, part: Content) {
        if self.mask.is_empty() {
            return self.emitter.stream(part).await;
        }
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).part(part);
        for part in parts {
            self.emitter.stream(part).await;
        }
    }

    /// Emits what was held back, because nothing follows that could complete a secret.
    pub(crate) async fn finish(&self) {
        if self.mask.is_empty() {
            return;
        }
        let rest = self.parts.lock().unwrap_or_else(PoisonError::into_inner).finish();
        if !rest.is_empty() {
            self.emitter.stream(Content::Text(rest)).await;
        }
    }
}
