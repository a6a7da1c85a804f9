//! Checks `Host` and `Origin`, before anything else in a request.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::api::problem::Problem;
use crate::auth::allowed_hosts::{HostRule, OriginRule};

/// The endpoints for health probes. Orchestrators use any address of the machine and get only
/// numbers.
const PROBES: [&str; 2] = ["/health", "/ready"];

/// The local address of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalAddress(pub(crate) SocketAddr);

impl LocalAddress {
    /// Whether the host is exactly this address. In a DNS rebinding attack the host is a name,
    /// never an address.
    fn is(self, asked: &HostRule) -> bool {
        HostRule::parse(&self.0.to_string()).is_some_and(|own| own.admits(asked))
    }
}

/// The allowed hosts and origins.
#[derive(Debug)]
pub(crate) struct HostCheck {
    hosts: Vec<HostRule>,
    /// The hosts in their usual spelling.
    written: Vec<String>,
    origins: Vec<OriginRule>,
}

/// Lets a request pass or refuses it, before routing and before any secret is compared.
pub(crate) async fn admit(
    State(host_check): State<Arc<HostCheck>>,
    request: Request,
    next: Next,
) -> Response {
    match host_check.check(request.uri(), request.headers(), request.extensions()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

impl HostCheck {
    pub(crate) fn new(hosts: Vec<HostRule>, origins: Vec<OriginRule>) -> Self {
        let written = hosts.iter().map(HostRule::to_text).collect();
        Self { hosts, written, origins }
    }

    /// Whether a request may pass; logs a refusal.
    fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<(), Problem> {
        let local_address = extensions.get::<LocalAddress>().copied();
        let checked =
            self.check_host(uri, headers, local_address).and_then(|()| self.check_origin(headers));
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
        local_address: Option<LocalAddress>,
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
        // A request line may also contain a host (`GET http://…/ HTTP/1.1`), which then takes
        // precedence.
        let in_line = uri.authority().map(|authority| HostRule::parse(authority.as_str()));
        let served = |asked: &Option<HostRule>| {
            asked.as_ref().is_some_and(|asked| {
                self.hosts.iter().any(|rule| rule.admits(asked))
                    || local_address.is_some_and(|local_address| local_address.is(asked))
            })
        };
        if served(&named) && in_line.iter().all(served) {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "this server does not accept that Host: use the address that the connection is made \
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
            "web pages of that Origin may not call this server: add the origin to allowed_origins if \
             they should",
        ))
    }
}

/// A header that occurs once, or else the number of its occurrences.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a HeaderValue, usize> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.count()) {
        (Some(value), 0) => Ok(value),
        (None, _) => Err(0),
        (Some(_), more) => Err(more + 1),
    }
}
