//! The token check in front of everything that does something.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::Token;
use crate::problem::Problem;

/// Lets a request with the right token pass.
pub(crate) async fn require(
    State(token): State<Arc<Token>>,
    request: Request,
    next: Next,
) -> Response {
    let (challenge, detail) = match offered(request.headers()) {
        Some(offered) if token.matches(offered) => return next.run(request).await,
        // RFC 6750 wants no error code where no token was sent.
        None => (
            r#"Bearer realm="toolcrib""#,
            "a token is needed: send the header `Authorization: Bearer TOKEN`",
        ),
        Some(_) => (
            r#"Bearer realm="toolcrib", error="invalid_token""#,
            "the token is wrong: use the one the server was started with",
        ),
    };
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, detail).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

/// The token of the one `Authorization` header; the scheme's case does not matter.
fn offered(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
