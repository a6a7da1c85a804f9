//! Storage of answers to requests with an `Idempotency-Key`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcrib_core::bounds::{Bounds, Full};
use toolcrib_core::run::RunId;
use toolcrib_tool::BoxFuture;

/// Stores the outcomes of requests with an `Idempotency-Key`.
///
/// A key is claimed before the work starts and settled after it. A claim is lost if its server
/// ends, or gives up, before it is settled: nobody knows whether the work was done, so it is not
/// repeated. Keys are kept for a day, within limits per client.
pub trait AnswerStore: fmt::Debug + Send + Sync + 'static {
    /// Claims a key for a request, identified by its digest, or returns what is known about the
    /// key. If several processes claim a key at once, one of them gets it.
    ///
    /// Fails with [`AnswerError::Full`] if the client has too many keys.
    fn claim<'a>(
        &'a self,
        key: &'a AnswerKey,
        request: &'a str,
    ) -> BoxFuture<'a, Result<Claim, AnswerError>>;

    /// Stores the answer for a key that this store has claimed.
    fn settle<'a>(
        &'a self,
        key: &'a AnswerKey,
        answer: &'a StoredResponse,
    ) -> BoxFuture<'a, Result<(), AnswerError>>;

    /// Notes the run that the request has begun whose key this store has claimed. If the claim is lost, it names the run.
    fn note_run<'a>(
        &'a self,
        key: &'a AnswerKey,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<(), AnswerError>>;

    /// Forgets a key that this store has claimed, because nothing was done.
    fn release<'a>(&'a self, key: &'a AnswerKey) -> BoxFuture<'a, Result<(), AnswerError>>;
}

/// A key and its owner: clients have separate keys.
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

    /// The owner.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// A digest of both, as 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut scope = blake3::Hasher::new();
        scope.update(&(self.client.len() as u64).to_le_bytes()).update(self.client.as_bytes());
        scope.update(self.key.as_bytes()).finalize().to_hex().to_string()
    }
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// The key is new and now claimed.
    New,
    /// The request with this key was answered.
    Answered {
        /// The digest of the request that claimed it.
        request: String,
        /// The answer.
        answer: StoredResponse,
    },
    /// Another running server is working on the request with this key.
    Working {
        /// The digest of the request that claimed it.
        request: String,
    },
    /// The server that claimed the key has ended, or given up, without an answer.
    Lost {
        /// The digest of the request that claimed it.
        request: String,
        /// The run that the request had begun, if it was one for a run.
        run: Option<String>,
    },
}

/// A stored HTTP response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    /// The status.
    pub status: u16,
    /// The headers, as names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl StoredResponse {
    /// Its approximate size in bytes.
    pub fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        self.body.len() + headers.sum::<usize>()
    }
}

/// The setting for the maximum number of keys.
const SETTING: &str = "limits.per_client.keys";

/// Limits of stored answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLimits {
    /// The number of keys. Default 10,000 per client, 100,000 in total.
    pub keys: Bounds,
    /// The total size of one client's answers in bytes. Default 64 MiB.
    pub bytes_per_client: usize,
    /// The lifetime of a key. Default: one day.
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
    /// Sets another limit of keys per client, and ten times as many in total.
    #[must_use]
    pub fn with_keys(mut self, per_client: usize) -> Self {
        self.keys = Bounds::per_identity(per_client).named(SETTING);
        self
    }

    /// Fails if there is no room for another key, given the client's `keys` and `bytes` of answers
    /// and the total number of keys, `all`.
    pub fn admit(&self, keys: usize, bytes: usize, all: usize) -> Result<(), Full> {
        self.keys.admit("Idempotency-Keys", keys, all)?;
        if bytes >= self.bytes_per_client {
            let what = "bytes of answers under Idempotency-Keys";
            return Err(Full::new(
                what,
                toolcrib_core::bounds::BoundScope::Identity,
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
    /// Nothing can be stored at present, for example because the disk is full; the text is for the operator. Nothing
    /// was changed.
    Unavailable(String),
    /// The store does not work; the text is for the operator.
    Failed(String),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(full) => full.fmt(f),
            Self::Unavailable(problem) | Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for AnswerError {}

impl From<Full> for AnswerError {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}
