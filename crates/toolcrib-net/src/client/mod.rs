//! The client: every URL, address and redirect is checked before a connection is made.

mod error;
mod redirect;
mod request;
mod resolve;
mod response;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::CONTENT_LENGTH;
use tokio::sync::OnceCell;

use self::redirect::Hop;
use self::resolve::GuardedResolver;
use crate::address::AddressPolicy;
use crate::target::Target;

pub use error::{Error, RedirectRefusal};
pub use request::Request;
pub use resolve::{BoxFuture, Resolver, SystemResolver};
pub use response::Response;

/// Limits on time and size of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// For resolving the name, connecting and the TLS handshake together. Default 10 s.
    pub connect: Duration,
    /// For the whole request, including redirects and the body. Default 20 s.
    pub total: Duration,
    /// Bytes of the body after decompression. Default 5 MiB.
    pub bytes: usize,
    /// Redirects that are followed. Default 5.
    pub redirects: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(20),
            bytes: 5 * 1024 * 1024,
            redirects: 5,
        }
    }
}

/// An HTTP client that connects only where its [`AddressPolicy`] allows. Cloning it is cheap.
///
/// The check is made where connections are made: names are resolved by a hook that returns only checked addresses, so
/// the checked address is the one that is dialled. Literal addresses are checked before. Each redirect is a separate
/// request with the same checks. The environment is ignored (no proxy), and only open connections are remembered (no
/// cookies).
///
/// Connections are shared only between a client and its clones: a connection that one policy allowed is never used
/// under another.
///
/// Dropping the future of [`send`](Self::send) ends the request. Needs a tokio runtime with time and I/O.
#[derive(Clone)]
pub struct Client(Arc<ClientState>);

struct ClientState {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolver>,
    limits: Limits,
    /// Made at the first request, because reading the machine's root certificates takes milliseconds.
    http: OnceCell<reqwest::Client>,
}

/// Builds a [`Client`].
#[derive(Clone)]
pub struct ClientBuilder {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolver>,
    limits: Limits,
}

impl Client {
    /// A client of the public internet with the default [`Limits`].
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A builder with the public internet, the system's resolver and the default [`Limits`].
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            policy: AddressPolicy::public(),
            resolver: Arc::new(SystemResolver),
            limits: Limits::default(),
        }
    }

    /// Sends a request, follows its redirects and reads the whole response.
    ///
    /// Every status is a response, not an error. A redirect is followed with the method and body that browsers use, and
    /// always without credentials, even to the same host. A redirect from https to http, or one that takes a body to
    /// another server, is refused.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let total = request.timeout.unwrap_or(self.0.limits.total);
        let ended = tokio::time::timeout(total, self.follow(request)).await;
        ended.unwrap_or(Err(Error::Timeout { after: total, connecting: false }))
    }

    /// The HTTP client itself, for one server and a protocol that needs more than complete responses: event streams
    /// that last as long as a session.
    ///
    /// Like [`send`](Self::send), it connects only where the policy allows: a literal address is checked here, and
    /// names are checked by its resolver. It follows no redirects and has no limit on total time or size; the protocol
    /// has to enforce both. Use it only for this target, because addresses in other URLs are not checked.
    pub async fn of_server(&self, target: &Target) -> Result<reqwest::Client, Error> {
        self.check_literal(target)?;
        self.0.http.get_or_try_init(|| self.0.connectable()).await.cloned()
    }

    fn check_literal(&self, target: &Target) -> Result<(), Error> {
        let Some(address) = target.literal_address() else { return Ok(()) };
        let refused = |kind| Error::Address { host: target.host(), address, kind };
        self.0.policy.check(address).map_err(refused)
    }

    async fn follow(&self, request: Request) -> Result<Response, Error> {
        let max_bytes = request.max_bytes.unwrap_or(self.0.limits.bytes);
        let (mut hop, kept) = (request.hop, request.kept);
        let first = hop.target.host();
        let mut redirects = 0;
        loop {
            let step = async {
                let answer = self.request(&hop).await?;
                let status = answer.status();
                let location = answer.headers().get(reqwest::header::LOCATION);
                let Some(location) =
                    location.filter(|_| redirect::follows(status) && !kept.contains(&status))
                else {
                    return response::read(&hop, answer, max_bytes, redirects)
                        .await
                        .map(AfterResponse::Done);
                };
                if redirects == self.0.limits.redirects {
                    return Err(hop.refuse(RedirectRefusal::TooMany(redirects)));
                }
                redirect::next(&hop, status, location.as_bytes(), &first).map(AfterResponse::Next)
            };
            match step.await {
                Ok(AfterResponse::Done(response)) => return Ok(response),
                Ok(AfterResponse::Next(next)) => hop = next,
                Err(error) if redirects == 0 => return Err(error),
                Err(error) => {
                    return Err(Error::Redirected { redirects, source: Box::new(error) });
                }
            }
            redirects += 1;
        }
    }

    /// Sends one request after checking its literal address; the resolver checks those of names.
    async fn request(&self, hop: &Hop) -> Result<reqwest::Response, Error> {
        self.check_literal(&hop.target)?;
        let http = self.0.http.get_or_try_init(|| self.0.connectable()).await?;
        let mut request =
            http.request(hop.method.clone(), hop.target.url().clone()).headers(hop.headers.clone());
        if let Some(body) = &hop.body {
            request = request.body(body.clone());
        } else if [Method::POST, Method::PUT, Method::PATCH].contains(&hop.method) {
            // Without a length some servers wait for a body, or demand the length (411).
            request = request.header(CONTENT_LENGTH, 0);
        }
        request.send().await.map_err(|error| Error::of(error, &hop.target, self.0.limits.connect))
    }
}

/// The next step after one request.
enum AfterResponse {
    Done(Response),
    Next(Hop),
}

impl ClientState {
    async fn connectable(&self) -> Result<reqwest::Client, Error> {
        let tls = tokio::task::spawn_blocking(tls::config)
            .await
            .map_err(|error| Error::Setup(error.to_string()))??;
        let resolver = GuardedResolver::new(self.policy.clone(), Arc::clone(&self.resolver));
        reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(resolver)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.limits.connect)
            .pool_max_idle_per_host(8)
            .pool_idle_timeout(Duration::from_secs(30))
            .build()
            .map_err(|error| Error::Setup(error.to_string()))
    }
}

impl ClientBuilder {
    /// Sets which addresses may be connected to.
    #[must_use]
    pub fn addresses(mut self, policy: AddressPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the resolver. Its results are checked like those of the system.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Sets the limits on time and size.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes the client. Nothing is read or opened before its first request.
    pub fn build(self) -> Client {
        let Self { policy, resolver, limits } = self;
        Client(Arc::new(ClientState { policy, resolver, limits, http: OnceCell::new() }))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("policy", &self.0.policy)
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
