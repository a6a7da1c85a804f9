//! Where the rest of a long output waits: the store, its handles, and the tool that reads it.
//!
//! A model gets as much of an output as its budget allows. The whole goes into a [`SpillStore`]
//! first, and what the model is shown names a [`Handle`] with which the tool `read_output`
//! ([`read_output_entry`]) pages through it. A handle has 128 random bits and works for its
//! [`Owner`] only: to anybody else it does not exist.
//!
//! What is put there has been masked already ([`masking`](crate::output::masking)): a secret that begins on
//! one page and ends on the next could not be found any more.

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

/// What a kept text is.
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
    /// The stable word for it: `text` or `json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// The format of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Text, Self::Json].into_iter().find(|format| format.as_str() == word)
    }
}

/// A text to be kept, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spilled {
    /// All of it, masked.
    pub text: String,
    /// What it is. Default: text.
    pub format: SpillFormat,
    /// Bytes the tool saw but did not capture, such as the middle of a program's long output.
    /// Default 0.
    pub omitted_bytes: u64,
}

impl Spilled {
    /// Text, of which nothing is missing.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Data as JSON.
    pub fn json(text: impl Into<String>) -> Self {
        Self { text: text.into(), format: SpillFormat::Json, omitted_bytes: 0 }
    }

    /// Says how many bytes are missing.
    #[must_use]
    pub fn with_omitted_bytes(mut self, bytes: u64) -> Self {
        self.omitted_bytes = bytes;
        self
    }
}

/// How much a store keeps, and how long. The oldest of an identity makes room for its next. Where all
/// together have too many texts or too many bytes, the oldest text of the identity that holds the most
/// texts or bytes goes.
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
    /// Fails if a text of that size can never be kept.
    pub fn admit(&self, bytes: usize) -> Result<(), SpillError> {
        let limit = self.max_entry_bytes.min(self.max_owner_bytes).min(self.max_bytes);
        if bytes > limit || self.max_entries == 0 {
            return Err(SpillError::TooLarge { bytes, limit });
        }
        Ok(())
    }
}

/// Keeps the outputs that are longer than what a model is shown.
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
/// // To anybody else there is nothing.
/// let bob = Owner::of(&ContextValues::new().with("user", "bob"), None);
/// assert!(store.read(&bob, &handle, 0, 10).await.is_err());
/// # Ok(())
/// # }
/// ```
pub trait SpillStore: Send + Sync + 'static {
    /// Keeps a text for its owner and returns the handle to it.
    fn put<'a>(
        &'a self,
        owner: &'a Owner,
        spilled: Spilled,
    ) -> BoxFuture<'a, Result<Handle, SpillError>>;

    /// Reads up to `limit` characters (code points) from the `offset`-th on.
    ///
    /// Fails with [`SpillError::NotFound`] for a handle that does not exist, has expired or belongs
    /// to somebody else; which of these must not be told. An offset beyond the end is an empty page.
    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        handle: &'a Handle,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SpillError>>;
}

/// Why a text could not be kept or read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpillError {
    /// There is nothing under that handle for that owner.
    NotFound,
    /// The text is larger than the store takes.
    TooLarge {
        /// The size of the text.
        bytes: usize,
        /// The most the store takes.
        limit: usize,
    },
    /// The store does not work; for the operator.
    Failed(String),
}

impl fmt::Display for SpillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no output is kept under this handle"),
            Self::TooLarge { bytes, limit } => write!(
                f,
                "the output of {bytes} bytes is larger than the {limit} the store of outputs takes"
            ),
            Self::Failed(problem) => write!(f, "the store of outputs does not work: {problem}"),
        }
    }
}

impl std::error::Error for SpillError {}
