//! Errors as `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use serde_json::json;

/// The longest text of another layer that is taken over as a detail, in bytes.
const DETAIL_MAX: usize = 4 * 1024;

/// What went wrong with a request and what to do about it.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    fn body(&self) -> String {
        json!({
            // No page describes these errors further: the status says which it is.
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        })
        .to_string()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, media_type());
        response
    }
}

/// Gives an error that another layer wrote as bare text the form of a problem. Its other headers
/// (`Allow`, for one) stay; answers with a media type of their own are left alone.
pub(crate) async fn from_bare_text(response: Response<Body>) -> Response<Body> {
    let status = response.status();
    let error = status.is_client_error() || status.is_server_error();
    if !error || response.headers().contains_key(CONTENT_TYPE) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, DETAIL_MAX).await.unwrap_or_default();
    let problem = Problem::new(status, String::from_utf8_lossy(&text));
    parts.headers.insert(CONTENT_TYPE, media_type());
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(problem.body()))
}

fn media_type() -> HeaderValue {
    HeaderValue::from_static("application/problem+json")
}
