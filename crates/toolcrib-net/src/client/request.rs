//! Requests.

use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};

use super::redirect::Hop;
use crate::Target;

/// A request that can be sent once.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) hop: Hop,
    pub(super) timeout: Option<Duration>,
    pub(super) max_bytes: Option<usize>,
    pub(super) kept: Vec<StatusCode>,
}

impl Request {
    /// A request without custom headers and without a body.
    pub fn new(method: Method, target: Target) -> Self {
        let hop = Hop { method, target, headers: reqwest::header::HeaderMap::new(), body: None };
        Self { hop, timeout: None, max_bytes: None, kept: Vec::new() }
    }

    /// Sets a header.
    ///
    /// A header that is [marked sensitive](HeaderValue::set_sensitive), and always `Authorization`, `Cookie` and
    /// `Proxy-Authorization`, is a credential: it is sent to the first URL and left out of every redirect. Other
    /// headers are sent again to the same server, and to another server only if they reveal nothing about the caller
    /// (`Accept`, `Content-Type` and similar).
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

    /// Sets the total time limit, instead of the client's.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the limit on the response's size, instead of the client's.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Accepts this status as the response even if it is a redirect.
    #[must_use]
    pub fn keep(mut self, status: StatusCode) -> Self {
        self.kept.push(status);
        self
    }
}
