//! The check in front of everything that does something: whose token is it, what may they do, and is
//! it their turn?

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
use crate::auth::client_limits::{Counted, Pass, TooMuch};
use crate::auth::clients::LiveClients;
use crate::auth::entitlement::{Ended, Entered};
use crate::auth::revocation::UntilRevoked;
use crate::auth::right::Access;
use crate::observability::request_log::Caller;

/// Lets a request pass whose client has the right, and hands on who it is.
pub(crate) async fn require(
    State((clients, access)): State<(Arc<LiveClients>, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    let clients = clients.now();
    let (client, pass) = match enter(&clients, access, request.headers()) {
        Ok(entered) => entered,
        Err(refused) => {
            let caller = refused.caller().cloned();
            let mut response = refused.into_response();
            if let Some(caller) = caller {
                response.extensions_mut().insert(Caller(caller));
            }
            return response;
        }
    };
    // Where one of several rights is enough, the request goes on as long as the client has that one.
    let right = access.rights().iter().copied().find(|right| client.may(*right));
    let entered = client.let_in(right.unwrap_or(Right::Call), called_tool(request.uri().path()));
    request.extensions_mut().insert(Arc::clone(client));
    let pass = Arc::new(pass);
    let answered = entered.clone().during(Arc::clone(&pass).during(next.run(request)));
    let mut response = unless_ended(entered.clone(), answered).await;
    response = response.map(|body| while_good(entered, Counted::new(body, pass)));
    response.extensions_mut().insert(Caller(Arc::clone(&client.name)));
    response
}

/// Finds out who asks, and lets them in if they may and it is their turn.
fn enter<'c>(
    clients: &'c Clients,
    access: Access,
    headers: &HeaderMap,
) -> Result<(&'c Arc<Client>, Pass), Refused<'c>> {
    let client = client(clients, headers).map_err(Refused::Unknown)?;
    let rights = access.rights();
    if !rights.iter().any(|right| client.may(*right)) {
        return Err(Refused::Forbidden(client, access));
    }
    match client.gate.enter() {
        Ok(pass) => Ok((client, pass)),
        Err(limit) => Err(Refused::TooMuch(client, limit)),
    }
}

/// Waits for an answer as long as the client may have it.
async fn unless_ended(entered: Entered, answered: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        ended = entered.ended() => refusal(ended),
        response = answered => response,
    }
}

/// The answer to a request that may not go on.
fn refusal(ended: Ended) -> Response {
    match ended {
        Ended::Revoked => challenge(WRONG_TOKEN, &ended.to_string()),
        Ended::Right(_) | Ended::Calls => {
            Problem::new(StatusCode::FORBIDDEN, ended.to_string()).into_response()
        }
    }
}

/// The tool that a request with this path calls, if it calls just one and the path names it plainly.
fn called_tool(path: &str) -> Option<Arc<str>> {
    let name = path.strip_prefix("/v1/tools/")?.strip_suffix("/call")?;
    (!name.contains(['/', '%'])).then(|| name.into())
}

/// The body of an answer that breaks off once the client may not have it any more. One that is whole
/// already is sent as it is.
fn while_good(entered: Entered, body: Counted) -> Body {
    if body.size_hint().exact().is_some() {
        Body::new(body)
    } else {
        Body::new(UntilRevoked::new(body, entered))
    }
}

/// Why somebody is not let in.
#[derive(Debug)]
enum Refused<'c> {
    Unknown(Challenge),
    Forbidden(&'c Client, Access),
    TooMuch(&'c Client, TooMuch),
}

impl<'c> Refused<'c> {
    /// Who has asked, if that is known.
    fn caller(&self) -> Option<&'c Arc<str>> {
        match self {
            Self::Unknown(_) => None,
            Self::Forbidden(client, _) | Self::TooMuch(client, _) => Some(&client.name),
        }
    }

    fn into_response(self) -> Response {
        match self {
            Self::Unknown(challenge) => challenge.into_response(),
            Self::Forbidden(client, access) => {
                let rights: Vec<_> =
                    access.rights().iter().map(|right| format!("`{}`", right.as_str())).collect();
                let rights = rights.join(" or ");
                let detail = if &*client.name == ANYONE {
                    format!(
                        "the server asks for no token (`server.no_auth`), and without one nobody has the \
                         right {rights}: start it with a token"
                    )
                } else {
                    let name = &client.name;
                    // Whoever calls tools must not be told to ask for the right to approve its own calls.
                    let remedy = if access.rights().contains(&Right::Approve) {
                        "calls that wait are decided on by a person, not by the client that made them"
                    } else {
                        "the operator of the server grants rights in its config (`server.tokens`)"
                    };
                    format!("the token of `{name}` lacks the right {rights}: {remedy}")
                };
                Problem::new(StatusCode::FORBIDDEN, detail).into_response()
            }
            Self::TooMuch(_, limit) => too_much(limit).into_response(),
        }
    }
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
            Self::WrongToken => (WRONG_TOKEN, "the token is wrong: use one that the server knows"),
        };
        self::challenge(challenge, detail)
    }
}

/// What RFC 6750 has an answer say to a token that is not good.
const WRONG_TOKEN: &str = r#"Bearer realm="toolcrib", error="invalid_token""#;

fn challenge(challenge: &'static str, detail: &str) -> Response {
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, detail).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
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
