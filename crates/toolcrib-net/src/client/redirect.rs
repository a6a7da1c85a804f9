//! Redirects: builds the next request, if it is allowed.

use reqwest::header::{
    ACCEPT, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, PROXY_AUTHORIZATION, USER_AGENT,
};
use reqwest::{Method, StatusCode};

use super::error::{Error, RedirectRefusal};
use crate::target::{NamedBy, Target, forbidden};

/// One request of a chain.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) target: Target,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl Hop {
    pub(super) fn refuse(&self, reason: RedirectRefusal) -> Error {
        Error::Redirect { from: self.target.origin(), reason }
    }
}

/// Headers that are credentials, whether marked as sensitive or not.
const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];
/// Headers that describe the request and not the sender: another server may see them.
const ANYBODYS: [HeaderName; 6] =
    [ACCEPT, ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, USER_AGENT];
/// Headers that belong to a body.
const OF_BODIES: [HeaderName; 3] = [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE];

/// Whether a status with a `Location` is a redirect.
pub(super) fn follows(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The request after a redirect. `first` is the host of the first request, to which a server may redirect again.
pub(super) fn next(
    hop: &Hop,
    status: StatusCode,
    location: &[u8],
    first: &str,
) -> Result<Hop, Error> {
    let refuse = |reason| Err(hop.refuse(reason));
    // Characters that a parser drops or rewrites. Spaces are encoded instead, because servers do send them.
    let text = std::str::from_utf8(location).ok().filter(|text| {
        text.chars().all(|character| character == ' ' || forbidden(character).is_none())
    });
    let Some(joined) = text.and_then(|text| hop.target.url().join(text).ok()) else {
        return refuse(RedirectRefusal::Unreadable);
    };
    let again = joined.host_str().is_some_and(|host| host.trim_matches(['[', ']']) == first);
    let named_by = if again { NamedBy::Operator } else { NamedBy::Anybody };
    let target = match Target::parse(joined.as_str(), named_by) {
        Ok(target) => target,
        Err(refusal) => return refuse(RedirectRefusal::Url(refusal)),
    };
    if hop.target.url().scheme() == "https" && target.url().scheme() == "http" {
        return refuse(RedirectRefusal::Downgrade { to: target.origin() });
    }

    let posted = hop.method == Method::POST && matches!(status.as_u16(), 301 | 302);
    let becomes_get = posted || (status == StatusCode::SEE_OTHER && hop.method != Method::HEAD);
    let (method, body) =
        if becomes_get { (Method::GET, None) } else { (hop.method.clone(), hop.body.clone()) };
    let elsewhere = !hop.target.same_origin(&target);
    if elsewhere && body.is_some() {
        return refuse(RedirectRefusal::BodyElsewhere { to: target.origin() });
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &hop.headers {
        let credential = value.is_sensitive() || CREDENTIALS.contains(name);
        let of_no_body = body.is_none() && OF_BODIES.contains(name);
        let foreign = elsewhere && !ANYBODYS.contains(name);
        if !credential && !of_no_body && !foreign {
            headers.append(name, value.clone());
        }
    }
    Ok(Hop { method, target, headers, body })
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn hop(method: Method, url: &str, body: bool) -> Hop {
        let mut secret = HeaderValue::from_static("s3cret");
        secret.set_sensitive(true);
        let headers = [
            (AUTHORIZATION, HeaderValue::from_static("Bearer t0ken")),
            (HeaderName::from_static("x-api-key"), secret),
            (COOKIE, HeaderValue::from_static("a=b")),
            (ACCEPT, HeaderValue::from_static("application/json")),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (HeaderName::from_static("x-tenant"), HeaderValue::from_static("acme")),
        ];
        Hop {
            method,
            target: Target::parse(url, NamedBy::Operator).unwrap(),
            headers: headers.into_iter().collect(),
            body: body.then(|| b"{}".to_vec()),
        }
    }

    fn names(hop: &Hop) -> Vec<&str> {
        let mut names: Vec<_> = hop.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    fn step(from: &Hop, status: u16, location: &str) -> Result<Hop, RedirectRefusal> {
        let first = from.target.host();
        let status = StatusCode::from_u16(status).unwrap();
        next(from, status, location.as_bytes(), &first).map_err(|error| match error {
            Error::Redirect { reason, .. } => reason,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn the_method_and_the_body_are_those_of_browsers() {
        for (method, status, expected, body) in [
            (Method::GET, 301, Method::GET, false),
            (Method::POST, 301, Method::GET, false),
            (Method::POST, 302, Method::GET, false),
            (Method::PUT, 302, Method::PUT, true),
            (Method::POST, 303, Method::GET, false),
            (Method::DELETE, 303, Method::GET, false),
            (Method::HEAD, 303, Method::HEAD, false),
            (Method::POST, 307, Method::POST, true),
            (Method::PATCH, 308, Method::PATCH, true),
        ] {
            let with_body = ![Method::GET, Method::HEAD].contains(&method);
            let from = hop(method.clone(), "https://a.example/x", with_body);
            let to = step(&from, status, "/y?z=1").unwrap();
            assert_eq!(
                (to.method.clone(), to.body.is_some()),
                (expected, body),
                "{method} {status}"
            );
            assert_eq!(to.target.url().as_str(), "https://a.example/y?z=1");
            assert_eq!(names(&to).contains(&"content-type"), body, "{method} {status}");
        }
    }

    #[test]
    fn redirects_carry_no_credentials_and_custom_headers_only_to_the_same_server() {
        let from = hop(Method::PUT, "https://a.example/x", true);
        let same = step(&from, 307, "/y").unwrap();
        assert_eq!(names(&same), ["accept", "content-type", "x-tenant"]);
        let from = hop(Method::GET, "https://a.example/x", false);
        for elsewhere in ["https://b.example/", "//b.example/", "https://a.example:8443/"] {
            assert_eq!(names(&step(&from, 302, elsewhere).unwrap()), ["accept"], "{elsewhere}");
        }
    }

    #[test]
    fn forbidden_redirects_are_refused() {
        let get = hop(Method::GET, "https://a.example/x", false);
        let put = hop(Method::PUT, "https://a.example/x", true);
        for (from, location, expected) in [
            (&get, "http://a.example/", "Downgrade"),
            (&get, "ftp://b.example/", "Url(Scheme"),
            (&get, "javascript:alert(1)", "Url(Scheme"),
            (&get, "https://u:p@b.example/", "Url(UserInfo"),
            (&get, "https://localhost/", "Url(Host"),
            (&get, "//metadata.google.internal/", "Url(Host"),
            (&get, "/\\b.example/", "Unreadable"),
            (&get, "/a\tb", "Unreadable"),
            (&get, "https://", "Unreadable"),
            (&put, "https://b.example/", "BodyElsewhere"),
        ] {
            let refusal = format!("{:?}", step(from, 307, location).unwrap_err());
            assert!(refusal.starts_with(expected), "{location}: {refusal}");
        }
        // The operator's own name is accepted again; a space is encoded.
        let inside = hop(Method::GET, "http://tickets/x", false);
        let to = step(&inside, 302, "http://tickets/a b").unwrap();
        assert_eq!(to.target.url().as_str(), "http://tickets/a%20b");
    }
}
