//! A model behind an HTTP API.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use toolcrib_net::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use toolcrib_net::{AddressPolicy, Client, IpNet, NamedBy, Target, TransportResponse};
use toolcrib_tool::BoxFuture;
use toolcrib_wire::model::{
    Answer, DecoderSettings, FailureKind, ModelEvent, ProviderFailure, RequestHead, StreamDecoder,
    Wire, read_answer,
};

use super::{AttemptError, AttemptErrorKind, ModelClient};
use crate::budget::Prices;

/// The most bytes of an error response that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The ends of names that only a local network knows.
const LOCAL_NAMES: [&str; 5] = [".localhost", ".local", ".lan", ".internal", ".home.arpa"];
/// The version of Anthropic's API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A model behind an HTTP API: OpenAI's chat completions or Responses, or Anthropic's messages.
///
/// It connects to public addresses, and to others only if they are [allowed](Self::allow). Redirects are not followed, and
/// proxies and credentials of the environment are ignored.
#[derive(Clone)]
pub struct Endpoint {
    wire: Wire,
    pub(super) base: String,
    url: String,
    head: RequestHead,
    api_key: Option<SecretString>,
    /// What the key is called.
    key_source: Option<String>,
    headers: Vec<(String, SecretString)>,
    addresses: AddressPolicy,
    pub(super) timeouts: EndpointTimeouts,
    prices: Option<Prices>,
    context_window: Option<u64>,
    pub(super) client: Client,
}

/// How long an [`Endpoint`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointTimeouts {
    /// For the status and the first bytes of an answer. Default 120 s.
    pub first_event: Duration,
    /// For further bytes. Default 300 s.
    pub idle: Duration,
}

impl Default for EndpointTimeouts {
    fn default() -> Self {
        Self { first_event: Duration::from_secs(120), idle: Duration::from_secs(300) }
    }
}

/// Checks the base URL of an API without using the network: `http` or `https`, without user, query and fragment. The
/// error says what to write instead.
pub fn check_base_url(base_url: &str) -> Result<(), String> {
    let target = Target::parse(base_url, NamedBy::Operator)
        .map_err(|error| format!("the base URL cannot be used: {error}"))?;
    let url = target.url();
    if url.query().is_some() || url.fragment().is_some() {
        return Err(
            "a base URL has no query and no fragment: write scheme, host and path, such as \
                    https://api.example.com/v1"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether requests to this base URL leave these networks unencrypted. The names of a local network (without a dot, or
/// below `localhost`, `local`, `lan`, `internal` or `home.arpa`) do not leave it.
pub fn is_unencrypted(base_url: &str, networks: &[IpNet]) -> bool {
    let Ok(target) = Target::parse(base_url, NamedBy::Operator) else { return false };
    let host = target.url().host_str().filter(|_| target.url().scheme() == "http");
    let Some(host) = host else { return false };
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return !networks.iter().any(|network| network.contains(&address));
    }
    let name = host.trim_end_matches('.');
    name.contains('.') && !LOCAL_NAMES.iter().any(|local| name.ends_with(local))
}

impl Endpoint {
    /// The model `model` of the API below `base_url`, for example `https://api.openai.com/v1`.
    pub fn new(wire: Wire, base_url: &str, model: &str) -> Self {
        let base = base_url.trim_end_matches('/');
        let path = match wire {
            Wire::Responses => "responses",
            Wire::Anthropic => "messages",
            _ => "chat/completions",
        };
        Self {
            wire,
            base: base.to_owned(),
            url: format!("{base}/{path}"),
            head: RequestHead::new(model, format!("{base} {model}")),
            api_key: None,
            key_source: None,
            headers: Vec::new(),
            addresses: AddressPolicy::public(),
            timeouts: EndpointTimeouts::default(),
            prices: None,
            context_window: None,
            client: Client::new(),
        }
    }

    /// Sets the API key. Add it to the executor's mask, too, so that nothing can repeat it.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: SecretString) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Allows connections to the addresses of a network, for example those of a model on this machine.
    #[must_use]
    pub fn allow(mut self, network: IpNet) -> Self {
        self.addresses = self.addresses.allow(network);
        self.client = Client::builder().addresses(self.addresses.clone()).build();
        self
    }

    /// Changes what its requests begin with: limits on tokens, reasoning, the dialect of the server.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut RequestHead)) -> Self {
        change(&mut self.head);
        self
    }

    /// Sets how long it waits.
    #[must_use]
    pub fn timeouts(mut self, timeouts: EndpointTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets what the key is called and where it comes from, for the error if the server refuses it.
    #[must_use]
    pub fn key_source(mut self, source: impl Into<String>) -> Self {
        self.key_source = Some(source.into());
        self
    }

    /// Sets how many tokens a request and its answer may have.
    #[must_use]
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }

    /// Sets the prices.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    pub(super) fn request_headers(&self) -> Result<HeaderMap, AttemptError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut add = |name: &str, value: &str| {
            let unusable = || setup(format!("the header `{name}` of the model cannot be sent"));
            let name = HeaderName::try_from(name).map_err(|_| unusable())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(name, value);
            Ok(())
        };
        if self.wire == Wire::Anthropic {
            add("anthropic-version", ANTHROPIC_VERSION)?;
        }
        if let Some(key) = &self.api_key {
            let key = key.expose_secret();
            match self.wire {
                Wire::Anthropic => add("x-api-key", key)?,
                _ => add("authorization", &format!("Bearer {key}"))?,
            }
        }
        for (name, value) in &self.headers {
            add(name, value.expose_secret())?;
        }
        Ok(headers)
    }

    async fn attempt(
        &self,
        request: String,
        settings: DecoderSettings,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, AttemptError> {
        if super::is_denied() {
            return Err(setup(
                "this process has denied requests to models (`deny_model_requests`): use a `ScriptedModel`"
                    .to_owned(),
            ));
        }
        let target = Target::parse(&self.url, NamedBy::Operator)
            .map_err(|error| setup(format!("the address of the model cannot be used: {error}")))?;
        let connect = |message: String| AttemptError::new(AttemptErrorKind::Connect, message);
        let client = self
            .client
            .of_server(&target)
            .await
            .map_err(|error| setup(format!("the model cannot be connected to: {error}")))?;
        let origin = target.origin();
        let sent =
            client.post(target.url().clone()).headers(self.request_headers()?).body(request).send();
        let first = self.timeouts.first_event;
        let response = timeout(first, sent)
            .await
            .map_err(|_| self.late(false))?
            // The text of the error would have the URL, and with it what it may hide.
            .map_err(|error| connect(format!("no answer from {origin}: {}", cause(&error))))?;
        let ids = ["x-request-id", "request-id"];
        let request_id = ids.into_iter().find_map(|name| text(response.headers(), name));
        let with_id = |error| AttemptError { request_id, ..error };
        if !response.status().is_success() {
            let mut error = refused(response, first).await;
            let is_key = error.kind == AttemptErrorKind::Provider(FailureKind::Authentication);
            if let Some(whose) = self.key_source.as_ref().filter(|_| is_key) {
                error.message = format!("{}; {whose} was refused", error.message);
            }
            return Err(with_id(error));
        }
        self.read(response, settings, events).await.map_err(with_id)
    }

    /// Reads the answer, streamed or whole.
    async fn read(
        &self,
        mut response: TransportResponse,
        settings: DecoderSettings,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, AttemptError> {
        // Some servers ignore that a stream was asked for.
        let is_whole = text(response.headers(), "content-type")
            .is_some_and(|kind| kind.trim_start().starts_with("application/json"));
        let max_bytes = settings.limits.kept_bytes;
        let (mut body, mut found) = (Vec::new(), Vec::new());
        let mut decoder = StreamDecoder::new(self.wire, settings.clone());
        let mut began = false;
        while is_whole || !decoder.is_complete() {
            let limit = if began { self.timeouts.idle } else { self.timeouts.first_event };
            let piece = timeout(limit, response.chunk()).await.map_err(|_| self.late(began))?;
            let piece = piece.map_err(|error| {
                let message = format!("the connection ended inside the answer: {}", cause(&error));
                AttemptError { began, ..AttemptError::new(AttemptErrorKind::Cut, message) }
            })?;
            let Some(piece) = piece else { break };
            if is_whole {
                began = true;
                body.extend_from_slice(&piece);
                if body.len() > max_bytes {
                    let message = format!("the answer has more than {max_bytes} bytes");
                    return Err(AttemptError::new(AttemptErrorKind::TooLarge, message));
                }
                continue;
            }
            let pushed = decoder.push(&piece, &mut found);
            began |= !found.is_empty();
            found.drain(..).for_each(&mut *events);
            pushed.map_err(|error| AttemptError { began, ..AttemptError::of_answer(&error) })?;
        }
        let answer = if is_whole {
            read_answer(self.wire, &body, &settings)
        } else {
            decoder.finish(&mut found)
        };
        found.drain(..).for_each(&mut *events);
        answer.map_err(|error| AttemptError { began, ..AttemptError::of_answer(&error) })
    }

    fn late(&self, began: bool) -> AttemptError {
        let message = if began {
            format!("the answer did not continue within {:?}", self.timeouts.idle)
        } else {
            format!("the answer did not begin within {:?}", self.timeouts.first_event)
        };
        AttemptError { began, ..AttemptError::new(AttemptErrorKind::Timeout, message) }
    }
}

pub(super) fn setup(message: String) -> AttemptError {
    AttemptError::new(AttemptErrorKind::Setup, message)
}

/// The innermost cause of a transport error: the outer texts contain the URL.
pub(super) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if std::ptr::eq(innermost, error) {
        "the request failed".to_owned()
    } else {
        innermost.to_string()
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.trim().to_owned())
}

/// The error for a response without success.
pub(super) async fn refused(mut response: TransportResponse, limit: Duration) -> AttemptError {
    let mut body = Vec::new();
    // Its status says enough if the body cannot be read.
    while let Ok(Ok(Some(piece))) = timeout(limit, response.chunk()).await {
        body.extend_from_slice(&piece);
        if body.len() >= MAX_ERROR_BYTES {
            body.truncate(MAX_ERROR_BYTES);
            break;
        }
    }
    let status = response.status();
    if status.is_redirection() {
        return setup(format!(
            "the address of the model redirects (HTTP {}), which is not followed: set the final address",
            status.as_u16()
        ));
    }
    let error = AttemptError::of_failure(&ProviderFailure::read(Some(status.as_u16()), &body));
    let headers = response.headers();
    let millis = text(headers, "retry-after-ms").and_then(|text| text.parse().ok());
    let seconds = || text(headers, RETRY_AFTER.as_str()).and_then(|text| text.parse().ok());
    let asked =
        millis.map(Duration::from_millis).or_else(|| Duration::try_from_secs_f64(seconds()?).ok());
    let should_retry = text(headers, "x-should-retry").and_then(|text| text.parse().ok());
    AttemptError { wait: asked.or(error.wait), should_retry, ..error }
}

impl ModelClient for Endpoint {
    fn wire(&self) -> Wire {
        self.wire
    }

    fn head(&self) -> RequestHead {
        self.head.clone()
    }

    fn context_window(&self) -> Option<u64> {
        self.context_window
    }

    fn prices(&self) -> Option<Prices> {
        self.prices
    }

    fn ask<'a>(
        &'a self,
        request: String,
        settings: DecoderSettings,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<Answer, AttemptError>> {
        Box::pin(self.attempt(request, settings, events))
    }
}

impl fmt::Debug for Endpoint {
    /// Omits the key and the values of headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("wire", &self.wire)
            .field("url", &self.url)
            .field("model", &self.head.model)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
