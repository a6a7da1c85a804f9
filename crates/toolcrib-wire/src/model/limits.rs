//! How large an answer may become.

use super::ModelError;

/// Limits on one answer of a model. Each is far beyond what providers send and keeps a broken one from filling the
/// memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the whole stream or body (default 1 GiB: arguments of 2 MiB in deltas of one byte are 500 MiB).
    pub stream_bytes: u64,
    /// Bytes of one event of a stream (default 16 MiB).
    pub event_bytes: usize,
    /// Events of a stream (default 8 million).
    pub events: u64,
    /// Bytes that are kept of an answer: texts, reasoning, arguments and items (default 64 MiB).
    pub kept_bytes: usize,
    /// Bytes of one call's arguments (default 16 MiB).
    pub argument_bytes: usize,
    /// Items of an answer, calls included (default 1,024).
    pub items: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stream_bytes: 1 << 30,
            event_bytes: 16 << 20,
            events: 8_000_000,
            kept_bytes: 64 << 20,
            argument_bytes: 16 << 20,
            items: 1_024,
        }
    }
}

impl Limits {
    /// Fails if one call has so many bytes of arguments.
    pub(super) fn check_arguments(&self, bytes: usize) -> Result<(), ModelError> {
        let limit = self.argument_bytes;
        if bytes <= limit {
            return Ok(());
        }
        Err(ModelError::too_large(format!("the arguments of a call have more than {limit} bytes")))
    }
}

/// The bytes of an answer that are still allowed.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    limit: usize,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { left: limits.kept_bytes, limit: limits.kept_bytes }
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            ModelError::too_large(format!(
                "its texts and calls have more than {} bytes",
                self.limit
            ))
        })?;
        Ok(())
    }
}
