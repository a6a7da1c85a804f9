//! Where answers to requests with an `Idempotency-Key` are kept.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcrib_core::bounds::{Bounds, Full};
use toolcrib_tool::BoxFuture;

/// Keeps what became of requests with an `Idempotency-Key`.
///
/// A key is claimed before the work is begun, and settled after it. A claim whose server ended, or gave up,
/// before it was settled is lost: nobody knows whether the work was done, so nobody does it again. Keys are
/// kept for a day, within bounds for each client.
pub trait AnswerStore: fmt::Debug + Send + Sync + 'static {
    /// Claims a key for a request, which is told apart by its digest; or says what is known of the key.
    /// Of all who claim a key at once, in all processes, one gets it.
    ///
    /// Fails with [`AnswerError::Full`] where the client has too many keys.
    fn claim<'a>(
        &'a self,
        key: &'a AnswerKey,
        request: &'a str,
    ) -> BoxFuture<'a, Result<Claim, AnswerError>>;

    /// Keeps the answer under a key that this store has claimed.
    fn settle<'a>(
        &'a self,
        key: &'a AnswerKey,
        answer: &'a KeptAnswer,
    ) -> BoxFuture<'a, Result<(), AnswerError>>;

    /// Forgets a key that this store has claimed: nothing was done under it.
    fn release<'a>(&'a self, key: &'a AnswerKey) -> BoxFuture<'a, Result<(), AnswerError>>;
}

/// A key and whose it is: keys of one client say nothing to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnswerKey {
    client: String,
    key: String,
}

impl AnswerKey {
    /// A key of a client.
    pub fn new(client: impl Into<String>, key: impl Into<String>) -> Self {
        Self { client: client.into(), key: key.into() }
    }

    /// Whose it is.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Both as 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut whose = blake3::Hasher::new();
        whose.update(&(self.client.len() as u64).to_le_bytes()).update(self.client.as_bytes());
        whose.update(self.key.as_bytes()).finalize().to_hex().to_string()
    }
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// The key is new, and claimed now.
    New,
    /// The request under this key was answered.
    Answered {
        /// The request that it was claimed for.
        request: String,
        /// The answer.
        answer: KeptAnswer,
    },
    /// Another server that is running works on the request under this key.
    Working {
        /// The request that it was claimed for.
        request: String,
    },
    /// Whoever claimed the key has ended, or given up, without an answer.
    Lost {
        /// The request that it was claimed for.
        request: String,
    },
}

/// An answer of HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAnswer {
    /// The status.
    pub status: u16,
    /// The headers, by name and value.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl KeptAnswer {
    /// Bytes that it takes, about.
    pub fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        self.body.len() + headers.sum::<usize>()
    }
}

/// The key in the settings that changes the bound on keys.
const SETTING: &str = "limits.per_client.keys";

/// How much is kept under keys, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLimits {
    /// Keys. Default 10,000 of one client, 100,000 of all.
    pub keys: Bounds,
    /// Bytes of the answers of one client. Default 64 MiB.
    pub bytes_per_client: usize,
    /// How long a key is kept. Default a day.
    pub kept: Duration,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            keys: Bounds::per_identity(10_000).named(SETTING),
            bytes_per_client: 64 * 1024 * 1024,
            kept: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl AnswerLimits {
    /// The same with another bound on the keys of one client, and ten times as many of all.
    #[must_use]
    pub fn with_keys(mut self, per_client: usize) -> Self {
        self.keys = Bounds::per_identity(per_client).named(SETTING);
        self
    }

    /// Fails where there is no room for one key more, if a client has so many `keys` and `bytes` of
    /// answers, and all clients have `all` keys.
    pub fn admit(&self, keys: usize, bytes: usize, all: usize) -> Result<(), Full> {
        self.keys.admit("Idempotency-Keys", keys, all)?;
        if bytes >= self.bytes_per_client {
            let what = "bytes of answers under Idempotency-Keys";
            return Err(Full::new(
                what,
                toolcrib_core::bounds::Whose::Identity,
                self.bytes_per_client,
            ));
        }
        Ok(())
    }
}

/// Why a key could not be claimed or settled.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnswerError {
    /// There are too many keys.
    Full(Full),
    /// The store does not work; for the operator.
    Failed(String),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(full) => full.fmt(f),
            Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for AnswerError {}

impl From<Full> for AnswerError {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}
