//! Asking one provider: request, key, status, answer.

use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::Value;
use toolcrib_net::header::{HeaderName, HeaderValue};
use toolcrib_net::{Error, NamedBy, RedirectRefusal, Request, Response, StatusCode, Target};
use toolcrib_tool::{ErrorKind, ToolError};

use super::{brave, duckduckgo, searxng, tavily};
use crate::failure::described;
use crate::service::WebState;
use crate::settings::{SearchProvider, SearchProviderKind};
use crate::untrusted::one_line;

/// How long one provider may take.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(12);
/// The most characters of a text of a provider that are looked at.
const MARKUP_CHARS: usize = 4_000;
const TELL_OPERATOR: &str =
    "No argument can change that: tell the user that the operator has to correct `web.search`.";

/// A page that a provider found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    pub(super) published: Option<String>,
}

impl Found {
    /// A result from an object with these members; `None` without an address.
    pub(super) fn from_members(
        value: &Value,
        [title, url, snippet, published]: [&str; 4],
    ) -> Option<Self> {
        let text = |key: &str, limit| {
            value
                .get(key)
                .and_then(Value::as_str)
                .map(|text| one_line(&without_markup(text), limit))
        };
        let url = value.get(url)?.as_str()?.trim().to_owned();
        let published = text(published, 60).filter(|text| !text.is_empty());
        let title = text(title, 200).unwrap_or_default();
        let snippet = text(snippet, 500).unwrap_or_default();
        Some(Self { title, url, snippet, published })
    }
}

/// Text without the tags and character references that some providers put around the words of the query.
fn without_markup(text: &str) -> String {
    let end = text.char_indices().nth(MARKUP_CHARS).map_or(text.len(), |(end, _)| end);
    let text = &text[..end];
    if text.contains(['<', '&']) {
        dom_query::Document::fragment(text).text().to_string()
    } else {
        text.to_owned()
    }
}

/// Asks a provider.
pub(super) async fn ask(
    web: &WebState,
    provider: &SearchProvider,
    query: &str,
    limit: u32,
) -> Result<Vec<Found>, ToolError> {
    let address = Target::parse(provider.address(), NamedBy::Operator).map_err(|refusal| {
        ToolError::unavailable(format!("its address cannot be used: {refusal}"))
            .with_hint(TELL_OPERATOR)
    })?;
    let request = match provider.kind {
        SearchProviderKind::SearXng => searxng::request(&address, query),
        SearchProviderKind::Brave => brave::request(&address, query, limit),
        SearchProviderKind::Tavily => Ok(tavily::request(address, query, limit)),
        SearchProviderKind::DuckDuckGo => duckduckgo::request(&address, query),
    }?;
    let request = with_key(web, provider, request)?.timeout(PROVIDER_TIMEOUT);
    let response = web.apis.send(request).await.map_err(without_response)?;
    if !response.status.is_success() {
        return Err(of_status(provider.kind, &response));
    }
    match provider.kind {
        SearchProviderKind::SearXng => searxng::results(&json(&response)?),
        SearchProviderKind::Brave => brave::results(&json(&response)?),
        SearchProviderKind::Tavily => tavily::results(&json(&response)?),
        SearchProviderKind::DuckDuckGo => duckduckgo::results(&response),
    }
}

/// A URL with these parameters in addition to its own.
pub(super) fn with_query(
    address: &Target,
    parameters: &[(&str, &str)],
) -> Result<Target, ToolError> {
    let mut url = address.url().clone();
    url.query_pairs_mut().extend_pairs(parameters);
    let refused = |refusal| ToolError::invalid_args(format!("the query is too long: {refusal}"));
    Target::parse(url.as_str(), NamedBy::Operator).map_err(refused)
}

fn with_key(
    web: &WebState,
    provider: &SearchProvider,
    request: Request,
) -> Result<Request, ToolError> {
    let Some(name) = &provider.api_key else {
        if provider.kind.needs_key() {
            let error = ToolError::unavailable("it needs an API key, and the config names none");
            return Err(error.with_hint(TELL_OPERATOR));
        }
        return Ok(request);
    };
    let key = web.keys.get(name)?;
    let (header, text) = match provider.kind {
        SearchProviderKind::Brave => ("x-subscription-token", key.expose_secret().to_owned()),
        _ => ("authorization", format!("Bearer {}", key.expose_secret())),
    };
    let unusable = |_| {
        let error =
            ToolError::unavailable(format!("the secret `{name}` cannot be sent in a header"));
        error.with_hint(TELL_OPERATOR)
    };
    let mut value = HeaderValue::from_str(&text).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(request.header(HeaderName::from_static(header), value))
}

fn json(response: &Response) -> Result<Value, ToolError> {
    serde_json::from_slice(&response.body).map_err(|error| {
        ToolError::execution("its answer is not the JSON of its API")
            .with_hint(TELL_OPERATOR)
            .with_source(error)
    })
}

/// The list in an answer, or the error for an answer without one.
pub(super) fn list<'a>(answer: &'a Value, path: &str) -> Result<&'a [Value], ToolError> {
    answer.pointer(path).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| {
        ToolError::execution(format!("its answer has no list at {path}")).with_hint(TELL_OPERATOR)
    })
}

fn without_response(error: Error) -> ToolError {
    let failure = match &error {
        Error::Redirect { reason: RedirectRefusal::TooMany(_), .. } => {
            ToolError::unavailable("its address redirects elsewhere").with_hint(TELL_OPERATOR)
        }
        Error::Url(_) | Error::Address { .. } | Error::Redirect { .. } | Error::Setup(_) => {
            ToolError::unavailable(error.to_string()).with_hint(TELL_OPERATOR)
        }
        _ => ToolError::execution(error.to_string())
            .with_retryable(true)
            .with_hint("Try again later, or fetch a known page."),
    };
    failure.with_source(error)
}

fn of_status(kind: SearchProviderKind, response: &Response) -> ToolError {
    let status = response.status;
    let answered = format!("it answered {}", described(status));
    let failure = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if kind == SearchProviderKind::SearXng => {
            ToolError::unavailable(format!(
                "{answered}: its `search.formats` has to include `json`"
            ))
            .with_hint(TELL_OPERATOR)
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            ToolError::unavailable(format!("{answered}: its API key is not accepted"))
                .with_hint(TELL_OPERATOR)
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYMENT_REQUIRED => {
            limited(&format!("{answered}: its quota is used up"))
        }
        _ if status.is_server_error() => ToolError::execution(answered)
            .with_retryable(true)
            .with_hint("Try again later, or fetch a known page."),
        _ => ToolError::execution(answered).with_hint("Try other words."),
    };
    match response.retry_after() {
        Some(wait) => failure.with_retry_after(wait),
        None => failure,
    }
}

/// The error of a provider that wants to be asked less often.
pub(super) fn limited(what: &str) -> ToolError {
    ToolError::new(ErrorKind::RateLimited, what)
        .with_hint("Search less often: wait before the next search, or fetch a known page.")
}
