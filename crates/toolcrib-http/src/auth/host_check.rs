//! The first check of a request: was it meant for this server, and not sent by a stranger's page?

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::api::problem::Problem;
use crate::auth::allowed_hosts::{HostRule, OriginRule};

/// What probes of orchestrators ask for. They name the machine by whatever address they know of it, and
/// are told nothing but numbers.
const PROBES: [&str; 2] = ["/health", "/ready"];

/// The address of this machine that a connection was made to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached(pub(crate) SocketAddr);

impl Reached {
    /// Whether the host is this very address. A page that another name was pointed here for has
    /// that name as its host, and never an address.
    fn is(self, asked: &HostRule) -> bool {
        HostRule::parse(&self.0.to_string()).is_some_and(|own| own.admits(asked))
    }
}

/// Which hosts may be asked for and which pages may ask.
#[derive(Debug)]
pub(crate) struct Admission {
    hosts: Vec<HostRule>,
    /// The hosts as nearly all clients write them.
    written: Vec<String>,
    origins: Vec<OriginRule>,
}

/// Lets a request pass or answers it. Comes before routing and before any secret is compared.
pub(crate) async fn admit(
    State(admission): State<Arc<Admission>>,
    request: Request,
    next: Next,
) -> Response {
    match admission.check(request.uri(), request.headers(), request.extensions()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

impl Admission {
    pub(crate) fn new(hosts: Vec<HostRule>, origins: Vec<OriginRule>) -> Self {
        let written = hosts.iter().map(HostRule::to_text).collect();
        Self { hosts, written, origins }
    }

    /// Whether a request may pass; logs that it may not.
    fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<(), Problem> {
        let reached = extensions.get::<Reached>().copied();
        let checked =
            self.check_host(uri, headers, reached).and_then(|()| self.check_origin(headers));
        checked.inspect_err(|_| {
            let shown = |name: &HeaderName| {
                let value = headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
                value.escape_ascii().to_string()
            };
            tracing::warn!(
                host = shown(&HOST),
                origin = shown(&ORIGIN),
                "a request was refused for its Host or Origin"
            );
        })
    }

    fn check_host(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        reached: Option<Reached>,
    ) -> Result<(), Problem> {
        let host = only(headers, &HOST).map_err(|count| {
            let detail = format!("a request needs one Host header; this one has {count}");
            Problem::new(StatusCode::BAD_REQUEST, detail)
        })?;
        if PROBES.contains(&uri.path()) {
            return Ok(());
        }
        if uri.authority().is_none() && self.written.iter().any(|written| host == written) {
            return Ok(());
        }
        let named = host.to_str().ok().and_then(HostRule::parse);
        // A request line may name a host too (`GET http://…/ HTTP/1.1`), which then counts.
        let in_line = uri.authority().map(|authority| HostRule::parse(authority.as_str()));
        let served = |asked: &Option<HostRule>| {
            asked.as_ref().is_some_and(|asked| {
                self.hosts.iter().any(|rule| rule.admits(asked))
                    || reached.is_some_and(|reached| reached.is(asked))
            })
        };
        if served(&named) && in_line.iter().all(served) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "this server is not served under that Host: use the address that the connection is made \
             to, or add the name to allowed_hosts",
        ))
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let known = match only(headers, &ORIGIN) {
            Err(0) => return Ok(()),
            Err(_) => false,
            Ok(origin) => origin
                .to_str()
                .ok()
                .and_then(OriginRule::parse)
                .is_some_and(|origin| self.origins.contains(&origin)),
        };
        if known {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "pages of that Origin may not call this server: add the origin to allowed_origins if \
             they should",
        ))
    }
}

/// A header that may be there once; otherwise how often it is there.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a HeaderValue, usize> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.count()) {
        (Some(value), 0) => Ok(value),
        (None, _) => Err(0),
        (Some(_), more) => Err(more + 1),
    }
}
