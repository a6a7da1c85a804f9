//! Responses, read completely and within their limit.

use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, StatusCode};

use super::error::Error;
use super::redirect::Hop;
use crate::Target;

/// A response.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, decompressed.
    pub body: Vec<u8>,
    /// The URL after the last redirect.
    pub target: Target,
    /// How many redirects were followed.
    pub redirects: u32,
}

impl Response {
    /// A recorded response of a target's server, for which nothing was sent.
    pub fn recorded(
        target: Target,
        status: StatusCode,
        headers: HeaderMap,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Self { status, headers, body: body.into(), target, redirects: 0 }
    }

    /// The media type of the body in lower case, without parameters: `application/json`.
    pub fn media_type(&self) -> Option<String> {
        let written = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let essence = written.split(';').next().unwrap_or_default().trim();
        (!essence.is_empty()).then(|| essence.to_ascii_lowercase())
    }

    /// How long the server asks to wait before the next request (`Retry-After`), from now.
    pub fn retry_after(&self) -> Option<Duration> {
        let written = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = written.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let until = httpdate::parse_http_date(written).ok()?;
        Some(until.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

/// Reads the body of the response to `hop`.
pub(super) async fn read(
    hop: &Hop,
    mut answer: reqwest::Response,
    limit: usize,
    redirects: u32,
) -> Result<Response, Error> {
    // The response to HEAD states the length of a body that does not follow.
    let stated = answer.content_length().filter(|_| hop.method != Method::HEAD);
    if stated.is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > limit)) {
        return Err(Error::TooLarge { limit });
    }
    let mut body = Vec::new();
    loop {
        // Pieces are decompressed on demand, so the count covers all decompressed bytes.
        let piece = answer.chunk().await;
        let piece = piece.map_err(|error| Error::of(error, &hop.target, Duration::ZERO))?;
        let Some(piece) = piece else { break };
        if body.len() + piece.len() > limit {
            return Err(Error::TooLarge { limit });
        }
        body.extend_from_slice(&piece);
    }
    Ok(Response {
        status: answer.status(),
        headers: answer.headers().clone(),
        body,
        target: hop.target.clone(),
        redirects,
    })
}
