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
    fn take(&mut self, key: u64) -> Taken;
}

impl ChannelOverflow for Box<dyn ChannelOverflow> {
    fn put(&mut self, key: u64, bytes: Vec<u8>) -> bool {
        (**self).put(key, bytes)
    }

    fn take(&mut self, key: u64) -> Taken {
        (**self).take(key)
    }
}

/// The result of [`ChannelOverflow::take`].
pub enum Taken {
    /// The bytes.
    Here(Vec<u8>),
    /// They have to be fetched; `None` if they were lost.
    Later(BoxFuture<'static, Option<Vec<u8>>>),
    /// They are lost.
    Gone,
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here(_) => "Here",
            Self::Later(_) => "Later",
            Self::Gone => "Gone",
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

    fn take(&mut self, key: u64) -> Taken {
        let Some(bytes) = self.kept.remove(&key) else { return Taken::Gone };
        self.bytes -= bytes.len();
        Taken::Here(bytes)
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
