//! The service that calls get: settings, clients, and what is remembered between calls.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::SecretString;
use tokio::sync::Semaphore;
use toolcrib_net::{AddressPolicy, Client, IpNet, Limits};
use toolcrib_tool::ToolError;

use crate::crawl::RobotsCache;
use crate::host_limits::HostLimits;
use crate::page::PageCache;
use crate::settings::WebSettings;

/// The networks that the operator reaches by naming an address in the config: this machine and private networks. The
/// local link is not among them, because metadata services of clouds are there.
const LOCAL_NETWORKS: [&str; 7] = [
    "127.0.0.0/8",
    "::1/128",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "fc00::/7",
];

/// How many pages are read (parsed and converted) at the same time, for all calls.
const READERS: usize = 4;

/// Finds API keys by name when a request needs one, so that a rotated key is used at once.
#[derive(Clone)]
pub struct ApiKeys(Arc<FindKey>);

type FindKey = dyn Fn(&str) -> Result<SecretString, String> + Send + Sync;

impl ApiKeys {
    /// Keys from a function, which fails with the reason and what to do.
    pub fn new(
        find: impl Fn(&str) -> Result<SecretString, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(find))
    }

    /// No keys.
    pub fn none() -> Self {
        Self::new(|name| Err(format!("needs the secret `{name}`, and there are no secrets")))
    }

    pub(crate) fn get(&self, name: &str) -> Result<SecretString, ToolError> {
        (self.0)(name).map_err(|reason| {
            ToolError::unavailable(reason).with_hint("No argument can change that: tell the user.")
        })
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeys")
    }
}

/// What the web tools share: settings, HTTP clients, and bounded caches of pages and of `robots.txt`.
///
/// Pages are remembered for each identity (user and tenant) separately, at most 8 MiB for one and 64 MiB for all.
#[derive(Debug)]
pub struct Web {
    keys: ApiKeys,
    state: RwLock<Arc<WebState>>,
}

/// Everything that depends on the settings. New settings get a new one, so nothing is remembered across a change.
pub(crate) struct WebState {
    pub(crate) settings: WebSettings,
    pub(crate) keys: ApiKeys,
    /// For pages: URLs that a model names.
    pub(crate) pages: Client,
    /// For APIs that the operator names.
    pub(crate) apis: Client,
    pub(crate) cache: PageCache,
    pub(crate) robots: RobotsCache,
    pub(crate) hosts: HostLimits,
    pub(crate) readers: Arc<Semaphore>,
}

impl Web {
    /// The service with these settings.
    pub fn new(settings: WebSettings, keys: ApiKeys) -> Self {
        let state = RwLock::new(Arc::new(WebState::new(settings, keys.clone())));
        Self { keys, state }
    }

    /// Changes the settings for calls that begin from now on, and forgets all pages. Does nothing if they are the same.
    pub fn replace(&self, settings: WebSettings) {
        if self.state().settings == settings {
            return;
        }
        let next = Arc::new(WebState::new(settings, self.keys.clone()));
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// The settings now.
    pub fn settings(&self) -> WebSettings {
        self.state().settings.clone()
    }

    pub(crate) fn state(&self) -> Arc<WebState> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl WebState {
    fn new(settings: WebSettings, keys: ApiKeys) -> Self {
        let own = &settings.pages;
        let allow = |policy: AddressPolicy, range: &IpNet| policy.allow(*range);
        let pages = own.allow_private.iter().fold(AddressPolicy::public(), allow);
        let mut limits = Limits::default();
        limits.total = own.timeout;
        limits.connect = limits.connect.min(own.timeout);
        limits.bytes = own.max_bytes;
        let local = LOCAL_NETWORKS.iter().filter_map(|range| range.parse::<IpNet>().ok());
        let apis = local.fold(AddressPolicy::public(), AddressPolicy::allow);
        let mut api_limits = Limits::default();
        // An API that redirects has another address, which the operator has to name.
        api_limits.redirects = 0;
        Self {
            pages: Client::builder().addresses(pages).limits(limits).build(),
            apis: Client::builder().addresses(apis).limits(api_limits).build(),
            cache: PageCache::default(),
            robots: RobotsCache::default(),
            hosts: HostLimits::new(own.per_host),
            readers: Arc::new(Semaphore::new(READERS)),
            settings,
            keys,
        }
    }
}

impl fmt::Debug for WebState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The service, or the error of a host that lends none.
pub(crate) fn lent(web: Option<Arc<Web>>) -> Result<Arc<WebState>, ToolError> {
    let missing = || ToolError::unavailable("this host has not set up the web tools");
    web.map(|web| web.state()).ok_or_else(missing)
}
