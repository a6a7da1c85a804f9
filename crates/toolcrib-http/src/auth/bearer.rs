//! Authentication, authorization and rate limits of requests.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::Right;
use crate::api::problem::Problem;
use crate::auth::client::{ANYONE, Client, Clients};
use crate::auth::client_limits::{CountedBody, LimitExceeded, Permit};
use crate::auth::clients::LiveClients;
use crate::auth::entitlement::{AdmittedRequest, EntitlementLost};
use crate::auth::revocation::UntilRevoked;
use crate::auth::right::Access;
use crate::observability::request_log::Caller;

/// Lets a request pass if its client has the right, and attaches the client to it.
pub(crate) async fn require(
    State((clients, access)): State<(Arc<LiveClients>, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    let clients = clients.now();
    let (client, pass) = match enter(&clients, access, request.headers()) {
        Ok(admitted) => admitted,
        Err(refused) => {
            let caller = refused.caller().cloned();
            let mut response = refused.into_response();
            if let Some(caller) = caller {
                response.extensions_mut().insert(Caller(caller));
            }
            return response;
        }
    };
    // If one of several rights suffices, the request depends on the one that the client has.
    let right = access.rights().iter().copied().find(|right| client.may(*right));
    let admitted =
        client.admit_request(right.unwrap_or(Right::Call), called_tool(request.uri().path()));
    request.extensions_mut().insert(Arc::clone(client));
    let pass = Arc::new(pass);
    let answered = admitted.clone().during(Arc::clone(&pass).during(next.run(request)));
    let mut response = unless_ended(admitted.clone(), answered).await;
    response = response.map(|body| while_good(admitted, CountedBody::new(body, pass)));
    response.extensions_mut().insert(Caller(Arc::clone(&client.name)));
    response
}

/// Identifies the client and admits its request, if its rights and limits allow it.
fn enter<'c>(
    clients: &'c Clients,
    access: Access,
    headers: &HeaderMap,
) -> Result<(&'c Arc<Client>, Permit), Refusal<'c>> {
    let client = client(clients, headers).map_err(Refusal::Unknown)?;
    let rights = access.rights();
    if !rights.iter().any(|right| client.may(*right)) {
        return Err(Refusal::Forbidden(client, access));
    }
    match client.limits.enter() {
        Ok(pass) => Ok((client, pass)),
        Err(limit) => Err(Refusal::LimitExceeded(client, limit)),
    }
}

/// Waits for an answer while the client is still entitled to it.
async fn unless_ended(
    admitted: AdmittedRequest,
    answered: impl Future<Output = Response>,
) -> Response {
    tokio::select! {
        biased;
        ended = admitted.ended() => refusal(ended),
        response = answered => response,
    }
}

/// The answer to a request whose client has lost its entitlement.
fn refusal(ended: EntitlementLost) -> Response {
    match ended {
        EntitlementLost::Revoked => challenge(WRONG_TOKEN, &ended.to_string()),
        EntitlementLost::Right(_) | EntitlementLost::Calls => {
            Problem::new(StatusCode::FORBIDDEN, ended.to_string()).into_response()
        }
    }
}

/// The tool that a request with this path calls, if it calls exactly one and the path has no
/// escapes.
fn called_tool(path: &str) -> Option<Arc<str>> {
    let name = path.strip_prefix("/v1/tools/")?.strip_suffix("/call")?;
    (!name.contains(['/', '%'])).then(|| name.into())
}

/// A response body that is aborted when the client loses its entitlement. A body that is complete
/// is sent unchanged.
fn while_good(admitted: AdmittedRequest, body: CountedBody) -> Body {
    if body.size_hint().exact().is_some() {
        Body::new(body)
    } else {
        Body::new(UntilRevoked::new(body, admitted))
    }
}

/// Why a request is refused.
#[derive(Debug)]
enum Refusal<'c> {
    Unknown(Challenge),
    Forbidden(&'c Client, Access),
    LimitExceeded(&'c Client, LimitExceeded),
}

impl<'c> Refusal<'c> {
    /// The client, if it is known.
    fn caller(&self) -> Option<&'c Arc<str>> {
        match self {
            Self::Unknown(_) => None,
            Self::Forbidden(client, _) | Self::LimitExceeded(client, _) => Some(&client.name),
        }
    }

    fn into_response(self) -> Response {
        match self {
            Self::Unknown(challenge) => challenge.into_response(),
            Self::Forbidden(client, access) => missing_right(client, access).into_response(),
            Self::LimitExceeded(_, limit) => limit_exceeded(limit).into_response(),
        }
    }
}

/// The answer to a client that has none of the rights that something needs.
pub(crate) fn missing_right(client: &Client, access: Access) -> Problem {
    let rights: Vec<_> =
        access.rights().iter().map(|right| format!("`{}`", right.as_str())).collect();
    let rights = rights.join(" or ");
    let detail = if &*client.name == ANYONE {
        format!(
            "the server requires no token (`server.no_auth`), and without a token nobody has the right \
             {rights}: start it with a token"
        )
    } else {
        let name = &client.name;
        // Do not tell a client that calls tools to request the right to approve its own calls.
        let remedy = if access.rights().contains(&Right::Approve) {
            "a person decides on waiting calls, not the client that made them"
        } else {
            "the operator of the server grants rights in its config (`server.tokens`)"
        };
        format!("the token of `{name}` lacks the right {rights}: {remedy}")
    };
    Problem::new(StatusCode::FORBIDDEN, detail)
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

/// Why a client is unknown.
#[derive(Debug, Clone, Copy)]
enum Challenge {
    NoToken,
    WrongToken,
}

impl Challenge {
    fn into_response(self) -> Response {
        let (challenge, detail) = match self {
            // RFC 6750 requires no error code if no token was sent.
            Self::NoToken => (
                r#"Bearer realm="toolcrib""#,
                "a token is needed: send the header `Authorization: Bearer TOKEN`",
            ),
            Self::WrongToken => {
                (WRONG_TOKEN, "the token is invalid: use one that the server knows")
            }
        };
        self::challenge(challenge, detail)
    }
}

/// The challenge of RFC 6750 for an invalid token.
const WRONG_TOKEN: &str = r#"Bearer realm="toolcrib", error="invalid_token""#;

fn challenge(challenge: &'static str, detail: &str) -> Response {
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, detail).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

fn limit_exceeded(limit: LimitExceeded) -> Problem {
    let (detail, wait) = match limit {
        LimitExceeded::Rate(wait) => {
            ("this client sends too many requests: wait as Retry-After says", wait)
        }
        LimitExceeded::Concurrency => (
            "this client has too many concurrent requests: retry when one has finished",
            Duration::from_secs(1),
        ),
    };
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait)
}

/// The token of a single `Authorization` header; the scheme is case-insensitive.
fn offered(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
