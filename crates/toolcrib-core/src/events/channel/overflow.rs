//! Overflow stores of channels.

use std::fmt;

use hashbrown::HashMap;
use toolcrib_tool::BoxFuture;

/// Stores events, as opaque bytes, until the reader gets to them.
///
/// It is called under the channel's lock: it may write to a file, but must not wait for anything
/// slower.
pub trait ChannelOverflow: Send {
    /// Stores the bytes under a key that is new to this overflow. `false` means that the event is
    /// lost, which is reported to the reader.
    fn put(&mut self, key: u64, bytes: Vec<u8>) -> bool;

    /// Removes and returns the bytes.
    fn take(&mut self, key: u64) -> OverflowEntry;
}

impl ChannelOverflow for Box<dyn ChannelOverflow> {
    fn put(&mut self, key: u64, bytes: Vec<u8>) -> bool {
        (**self).put(key, bytes)
    }

    fn take(&mut self, key: u64) -> OverflowEntry {
        (**self).take(key)
    }
}

/// The result of [`ChannelOverflow::take`].
pub enum OverflowEntry {
    /// The bytes.
    Ready(Vec<u8>),
    /// The bytes have to be fetched; `None` if they were lost.
    Pending(BoxFuture<'static, Option<Vec<u8>>>),
    /// The bytes are lost.
    Lost,
}

impl fmt::Debug for OverflowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready(_) => "Ready",
            Self::Pending(_) => "Pending",
            Self::Lost => "Lost",
        })
    }
}

/// An overflow in memory, bounded in bytes.
pub struct MemoryOverflow {
    kept: HashMap<u64, Vec<u8>>,
    bytes: usize,
    max_bytes: usize,
}

impl MemoryOverflow {
    /// Stores at most this many bytes, without bookkeeping.
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

    fn take(&mut self, key: u64) -> OverflowEntry {
        let Some(bytes) = self.kept.remove(&key) else { return OverflowEntry::Lost };
        self.bytes -= bytes.len();
        OverflowEntry::Ready(bytes)
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
