//! The check in front of everything that does something: whose token is it, what may they do, and is
//! it their turn?

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::Right;
use crate::client::{Client, Clients};
use crate::gate::{Counted, TooMuch};
use crate::observe::Caller;
use crate::problem::Problem;

/// Lets a request pass whose client has the right, and hands on who it is.
pub(crate) async fn require(
    State((clients, right)): State<(Arc<Clients>, Right)>,
    mut request: Request,
    next: Next,
) -> Response {
    let client = match client(&clients, request.headers()) {
        Ok(client) => Arc::clone(client),
        Err(challenge) => return challenge.into_response(),
    };
    let mut response = if client.may(right) {
        match client.gate.enter() {
            Err(limit) => too_much(limit).into_response(),
            Ok(pass) => {
                request.extensions_mut().insert(Arc::clone(&client));
                next.run(request).await.map(|body| Body::new(Counted::new(body, pass)))
            }
        }
    } else {
        let detail = format!(
            "the token of `{}` lacks the right `{}`: add it to the token's `rights` in the server's config",
            client.name,
            right.as_str()
        );
        Problem::new(StatusCode::FORBIDDEN, detail).into_response()
    };
    response.extensions_mut().insert(Caller(Arc::clone(&client.name)));
    response
}

fn client<'a>(clients: &'a Clients, headers: &HeaderMap) -> Result<&'a Arc<Client>, Challenge> {
    if let Clients::Anyone(client) = clients {
        return Ok(client);
    }
    match offered(headers) {
        None => Err(Challenge::NoToken),
        Some(offered) => clients.by_token(offered).ok_or(Challenge::WrongToken),
    }
}

/// Why nobody knows who asks.
#[derive(Debug, Clone, Copy)]
enum Challenge {
    NoToken,
    WrongToken,
}

impl Challenge {
    fn into_response(self) -> Response {
        let (challenge, detail) = match self {
            // RFC 6750 wants no error code where no token was sent.
            Self::NoToken => (
                r#"Bearer realm="toolcrib""#,
                "a token is needed: send the header `Authorization: Bearer TOKEN`",
            ),
            Self::WrongToken => (
                r#"Bearer realm="toolcrib", error="invalid_token""#,
                "the token is wrong: use one that the server knows",
            ),
        };
        let mut response = Problem::new(StatusCode::UNAUTHORIZED, detail).into_response();
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        response
    }
}

fn too_much(limit: TooMuch) -> Problem {
    let (detail, wait) = match limit {
        TooMuch::Often(wait) => ("this client asks too often: wait as Retry-After says", wait),
        TooMuch::AtOnce => (
            "as many requests of this client are being answered as it may have at once: wait for one",
            Duration::from_secs(1),
        ),
    };
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait)
}

/// The token of the one `Authorization` header; the scheme's case does not matter.
fn offered(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
