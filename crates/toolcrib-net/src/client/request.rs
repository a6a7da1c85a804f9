//! What is asked for.

use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};

use super::redirect::Hop;
use crate::Target;

/// A request, to be sent once.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) hop: Hop,
    pub(super) timeout: Option<Duration>,
    pub(super) max_bytes: Option<usize>,
    pub(super) kept: Vec<StatusCode>,
}

impl Request {
    /// A request without headers of its own and without a body.
    pub fn new(method: Method, target: Target) -> Self {
        let hop = Hop { method, target, headers: reqwest::header::HeaderMap::new(), body: None };
        Self { hop, timeout: None, max_bytes: None, kept: Vec::new() }
    }

    /// Sets a header.
    ///
    /// One that is [marked sensitive](HeaderValue::set_sensitive), and `Authorization`, `Cookie` and
    /// `Proxy-Authorization` in any case, is a credential: it goes to the first URL and is left out
    /// of every redirect. The others go along to the same server, and to another only where they say
    /// nothing of the caller (`Accept`, `Content-Type` and the like).
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.hop.headers.insert(name, value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.hop.body = Some(body.into());
        self
    }

    /// Sets how long everything may take, in place of the client's limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how many bytes of the answer are taken, in place of the client's limit.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Takes this status for an answer even if it is a redirect.
    #[must_use]
    pub fn keep(mut self, status: StatusCode) -> Self {
        self.kept.push(status);
        self
    }
}
