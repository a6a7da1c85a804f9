//! Spilling long outputs: the store, its handles, and the tool that reads them.
//!
//! A model gets as much of an output as its budget allows. The complete output goes into a
//! [`SpillStore`] first, and the shortened one names a [`Handle`] with which the tool `read_output`
//! ([`read_output_entry`]) pages through it. A handle has 128 random bits and works only for its
//! [`Owner`].
//!
//! Stored outputs are masked already ([`masking`](crate::output::masking)): a secret that spans two
//! pages could not be found later.

mod handle;
mod kept;
mod memory;
mod page;
mod read_output;

use std::fmt;
use std::time::Duration;

use toolcrib_tool::BoxFuture;

pub use crate::identity::Owner;
pub use handle::{Handle, SpillKey};
pub use memory::MemorySpill;
pub use page::Page;
pub(crate) use page::byte_index;
pub use read_output::{READ_OUTPUT, READ_OUTPUT_CHARS, read_output_entry};

/// The format of a stored text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SpillFormat {
    /// Text as the tool wrote it.
    #[default]
    Text,
    /// Structured data as compact JSON.
    Json,
}

impl SpillFormat {
    /// Its stable name: `text` or `json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// Parses a stable name.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Text, Self::Json].into_iter().find(|format| format.as_str() == word)
    }
}

/// A text to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spilled {
    /// The complete text, masked.
    pub text: String,
    /// Its format. Default: text.
    pub format: SpillFormat,
    /// Bytes that the tool did not capture, such as the middle of a program's long output. Default
    /// 0.
    pub omitted_bytes: u64,
}

impl Spilled {
    /// A complete text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Data as JSON.
    pub fn json(text: impl Into<String>) -> Self {
        Self { text: text.into(), format: SpillFormat::Json, omitted_bytes: 0 }
    }

    /// Sets the number of missing bytes.
    #[must_use]
    pub fn with_omitted_bytes(mut self, bytes: u64) -> Self {
        self.omitted_bytes = bytes;
        self
    }
}

/// Limits of a spill store. At its own limit, an identity's oldest texts make room. At the total
/// limit, the oldest text of the identity that holds the most texts or bytes is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpillLimits {
    /// Bytes of all texts. Default 64 MiB.
    pub max_bytes: usize,
    /// Bytes of the texts of one identity. Default 16 MiB.
    pub max_owner_bytes: usize,
    /// Texts. Default 1,000.
    pub max_entries: usize,
    /// Bytes of one text; a longer one is refused. Default 8 MiB.
    pub max_entry_bytes: usize,
    /// How long a text is kept. Default one hour.
    pub ttl: Duration,
}

impl Default for SpillLimits {
    fn default() -> Self {
        Self {
            max_bytes: 64 * 1024 * 1024,
            max_owner_bytes: 16 * 1024 * 1024,
            max_entries: 1000,
            max_entry_bytes: 8 * 1024 * 1024,
            ttl: Duration::from_secs(60 * 60),
        }
    }
}

impl SpillLimits {
    /// Fails if a text of this size can never be stored.
    pub fn admit(&self, bytes: usize) -> Result<(), SpillError> {
        let limit = self.max_entry_bytes.min(self.max_owner_bytes).min(self.max_bytes);
        if bytes > limit || self.max_entries == 0 {
            return Err(SpillError::TooLarge { bytes, limit });
        }
        Ok(())
    }
}

/// Stores outputs that are too long for models.
///
/// ```
/// use toolcrib_core::spill::{MemorySpill, Owner, SpillLimits, SpillStore, Spilled};
/// use toolcrib_tool::ContextValues;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolcrib_core::spill::SpillError> {
/// let store = MemorySpill::new(SpillLimits::default());
/// let ada = Owner::of(&ContextValues::new().with("user", "ada"), None);
/// let handle = store.put(&ada, Spilled::text("a long story")).await?;
///
/// let page = store.read(&ada, &handle, 2, 4).await?;
/// assert_eq!((page.text.as_str(), page.next_offset()), ("long", Some(6)));
///
/// // Other owners cannot read it.
/// let bob = Owner::of(&ContextValues::new().with("user", "bob"), None);
/// assert!(store.read(&bob, &handle, 0, 10).await.is_err());
/// # Ok(())
/// # }
/// ```
pub trait SpillStore: Send + Sync + 'static {
    /// Stores a text for its owner and returns its handle.
    fn put<'a>(
        &'a self,
        owner: &'a Owner,
        spilled: Spilled,
    ) -> BoxFuture<'a, Result<Handle, SpillError>>;

    /// Reads up to `limit` characters (code points) from `offset`.
    ///
    /// Fails with [`SpillError::NotFound`] for a handle that does not exist or belongs to somebody
    /// else; which of these must not be revealed. For a text of this owner that has expired it may
    /// fail with [`SpillError::Expired`]. An offset beyond the end gives an empty page.
    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        handle: &'a Handle,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SpillError>>;
}

/// Why a text could not be stored or read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpillError {
    /// The owner has no text with this handle.
    NotFound,
    /// The owner's text was removed: it was older than texts are kept, or made room for newer ones.
    Expired,
    /// The text is too large for the store.
    TooLarge {
        /// The size of the text.
        bytes: usize,
        /// The maximum size.
        limit: usize,
    },
    /// The store failed; for the operator.
    Failed(String),
}

impl fmt::Display for SpillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no output is kept under this handle"),
            Self::Expired => f.write_str("the output that was kept under this handle has expired"),
            Self::TooLarge { bytes, limit } => write!(
                f,
                "the output of {bytes} bytes is larger than the {limit} the store of outputs accepts"
            ),
            Self::Failed(problem) => write!(f, "the store of outputs does not work: {problem}"),
        }
    }
}

impl std::error::Error for SpillError {}
