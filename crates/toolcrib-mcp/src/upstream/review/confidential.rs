//! Values of an upstream that must not be shown, even if the server says them.

use std::sync::Arc;

use toolcrib_core::masking::{LiveMask, MASKED, Mask};
use toolcrib_tool::ByteMasks;

use crate::upstream::settings::Upstream;

/// The values that one upstream was given, and the secrets of the executor.
#[derive(Clone)]
pub(crate) struct Confidential {
    values: Arc<[String]>,
    secrets: LiveMask,
}

impl Confidential {
    pub(crate) fn of(upstream: &Upstream, secrets: LiveMask) -> Self {
        Self { values: upstream.confidential().map(str::to_owned).collect(), secrets }
    }

    /// The text with these values masked.
    pub(crate) fn hide(&self, text: &str) -> String {
        let replaced =
            self.values.iter().fold(text.to_owned(), |text, value| text.replace(value, MASKED));
        self.secrets.text(replaced)
    }

    /// Masks these values in a stream of bytes.
    pub(crate) fn byte_masks(&self) -> ByteMasks {
        // If there are too many values to search for in a stream, they are still hidden in reported
        // text.
        let own = Mask::new(self.values.iter().cloned()).unwrap_or_default();
        let secrets = self.secrets.byte_masks();
        Arc::new(move || {
            let (mut own, mut secrets) = (own.bytes(), secrets());
            let mut masked = Vec::new();
            Box::new(move |piece, shown| {
                masked.clear();
                match piece {
                    Some(piece) => own.push(piece, &mut masked),
                    None => own.finish(&mut masked),
                }
                secrets(Some(&masked), shown);
                if piece.is_none() {
                    secrets(None, shown);
                }
            })
        })
    }
}

#[cfg(test)]
impl Default for Confidential {
    fn default() -> Self {
        Self { values: Arc::default(), secrets: LiveMask::new(Mask::default()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_secrets_are_hidden_in_text_and_in_bytes() {
        let secrets = LiveMask::new(Mask::new(["hunter22".to_owned()]).unwrap());
        let confidential = Confidential { values: Arc::from(["letmein".to_owned()]), secrets };
        assert_eq!(confidential.hide("letmein hunter22"), "[masked] [masked]");
        let (mut masks, mut shown) = (confidential.byte_masks()(), Vec::new());
        for piece in ["let", "mein hunt", "er22 let"] {
            masks(Some(piece.as_bytes()), &mut shown);
        }
        masks(None, &mut shown);
        assert_eq!(shown, b"[masked] [masked] let");
    }
}
