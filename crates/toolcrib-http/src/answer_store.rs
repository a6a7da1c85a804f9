//! Where answers to requests with an `Idempotency-Key` outlive the server.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// Keeps what became of requests with an `Idempotency-Key`.
///
/// A key is claimed before the work is begun, and settled after it. What was claimed and never settled was
/// cut short: whether it was done nobody knows, so it is not done again. Keys come as hexadecimal digits of
/// one length, safe as names of files. Records are kept for a day, unless there are too many.
///
/// Methods may block: they are called where that does no harm.
pub trait AnswerStore: fmt::Debug + Send + Sync + 'static {
    /// Claims a key for a request, which is told apart by its own digits; or says what is known of the key.
    /// Of several who claim it at once, one gets it.
    fn claim(&self, key: &str, request: &str) -> io::Result<Claim>;

    /// Keeps the answer to the request that a key was claimed for.
    fn settle(&self, key: &str, record: &AnswerRecord) -> io::Result<()>;

    /// Forgets a key: its request was not begun, or asked to come again.
    fn release(&self, key: &str) -> io::Result<()>;
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The key is new, and claimed now.
    New,
    /// The key was claimed before.
    Known(AnswerRecord),
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The request that it was claimed for.
    pub request: String,
    /// How that was answered; none where it was cut short, or somebody else works on it.
    pub answer: Option<KeptAnswer>,
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
