//! Where a channel puts what does not fit into its memory.

use std::fmt;

use hashbrown::HashMap;

/// Keeps events, as opaque bytes, until the reader gets to them or somebody asks for the rest.
///
/// It is called under the channel's lock: it may write to a file, but must not wait for anything
/// slower than that.
pub trait ChannelOverflow: Send {
    /// Keeps the bytes under a key that is new to this overflow. Returns whether it did; `false`
    /// means that the event is lost, which the reader is told.
    fn put(&mut self, key: u64, bytes: Vec<u8>) -> bool;

    /// Hands the bytes out and forgets them.
    fn take(&mut self, key: u64) -> Option<Vec<u8>>;
}

/// An overflow in memory, bounded in bytes.
pub struct MemoryOverflow {
    kept: HashMap<u64, Vec<u8>>,
    bytes: usize,
    max_bytes: usize,
}

impl MemoryOverflow {
    /// Keeps so many bytes at most, not counting what it takes to keep them apart.
    pub fn new(max_bytes: usize) -> Self {
        Self { kept: HashMap::new(), bytes: 0, max_bytes }
    }
}

impl Default for MemoryOverflow {
    /// 16 MiB.
    fn default() -> Self {
        Self::new(16 * 1024 * 1024)
    }
}

impl ChannelOverflow for MemoryOverflow {
    fn put(&mut self, key: u64, bytes: Vec<u8>) -> bool {
        if bytes.len() > self.max_bytes - self.bytes {
            return false;
        }
        self.bytes += bytes.len();
        self.kept.insert(key, bytes);
        true
    }

    fn take(&mut self, key: u64) -> Option<Vec<u8>> {
        let bytes = self.kept.remove(&key)?;
        self.bytes -= bytes.len();
        Some(bytes)
    }
}

impl fmt::Debug for MemoryOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryOverflow")
            .field("events", &self.kept.len())
            .field("bytes", &self.bytes)
            .field("max_bytes", &self.max_bytes)
            .finish()
    }
}
