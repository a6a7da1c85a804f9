//! The operator's settings for the web tools.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_net::IpNet;

/// The operator's settings for the web tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebSettings {
    /// Search providers in the order in which they are asked. Default: none, and `web_search` is not offered.
    pub search: Vec<SearchProvider>,
    /// How many providers answer one search; their results are merged. The others are asked if one of these fails or finds
    /// nothing. Default 2.
    pub merged: NonZeroUsize,
    /// The results of a search that does not say how many it wants. Default 5.
    pub max_results: NonZeroU32,
    /// The most URLs of one `crawl_batch`, 10 or fewer. Default 10.
    pub max_batch: NonZeroUsize,
    /// How pages are fetched.
    pub pages: PageSettings,
    /// Where pictures are made. Default: nowhere, and `image_generate` is not offered.
    pub images: Option<ImageSettings>,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            search: Vec::new(),
            merged: NonZeroUsize::MIN.saturating_add(1),
            max_results: NonZeroU32::MIN.saturating_add(4),
            max_batch: NonZeroUsize::MIN.saturating_add(9),
            pages: PageSettings::default(),
            images: None,
        }
    }
}

impl WebSettings {
    /// Whether a tool of this crate is offered with these settings.
    pub fn offers(&self, tool: &str) -> bool {
        match tool {
            "web_search" => !self.search.is_empty(),
            "image_generate" => self.images.is_some(),
            _ => true,
        }
    }
}

/// A kind of search provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SearchProviderKind {
    /// A SearXNG server, which has to allow the format `json`.
    SearXng,
    /// The API of Brave Search.
    Brave,
    /// The API of Tavily.
    Tavily,
    /// The page of DuckDuckGo for browsers without scripts. It needs no key and refuses frequent searches.
    DuckDuckGo,
}

impl SearchProviderKind {
    /// Its name in the config and in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SearXng => "searxng",
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::DuckDuckGo => "duckduckgo",
        }
    }

    /// The public address of its API, if it has one.
    pub const fn default_url(self) -> Option<&'static str> {
        match self {
            Self::SearXng => None,
            Self::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Self::Tavily => Some("https://api.tavily.com/search"),
            Self::DuckDuckGo => Some("https://html.duckduckgo.com/html/"),
        }
    }

    /// Whether it answers only with an API key.
    pub const fn needs_key(self) -> bool {
        matches!(self, Self::Brave | Self::Tavily)
    }
}

/// A search provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchProvider {
    /// Its kind.
    pub kind: SearchProviderKind,
    /// Its address. The operator names it, so that it may be on this machine or in a private network. Default:
    /// [`SearchProviderKind::default_url`].
    pub url: Option<String>,
    /// The name under which [`ApiKeys`](crate::ApiKeys) have its key.
    pub api_key: Option<String>,
}

impl SearchProvider {
    /// A provider at its public address, without a key.
    pub fn new(kind: SearchProviderKind) -> Self {
        Self { kind, url: None, api_key: None }
    }

    /// Sets the address.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Sets the name of the key.
    #[must_use]
    pub fn api_key(mut self, name: impl Into<String>) -> Self {
        self.api_key = Some(name.into());
        self
    }

    /// The address that is asked; empty for a SearXNG server without one.
    pub fn address(&self) -> &str {
        self.url.as_deref().or(self.kind.default_url()).unwrap_or_default()
    }
}

/// How pages are fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageSettings {
    /// Addresses in addition to the public internet. Default: none.
    pub allow_private: Vec<IpNet>,
    /// The time limit for one page, with its redirects. Default 20 s.
    pub timeout: Duration,
    /// The largest page, in bytes after decompression. Default 5 MiB.
    pub max_bytes: usize,
    /// How long a page is used again without asking its server; zero asks every time. Default 5 min.
    pub cache_ttl: Duration,
    /// How many requests go to one host at the same time. Default 2.
    pub per_host: NonZeroUsize,
    /// Whether `crawl_batch` obeys `robots.txt`. Default: yes.
    pub robots: bool,
}

impl Default for PageSettings {
    fn default() -> Self {
        Self {
            allow_private: Vec::new(),
            timeout: Duration::from_secs(20),
            max_bytes: 5 * 1024 * 1024,
            cache_ttl: Duration::from_secs(5 * 60),
            per_host: NonZeroUsize::MIN.saturating_add(1),
            robots: true,
        }
    }
}

/// Where pictures are made: an images endpoint like OpenAI's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageSettings {
    /// The address of the API, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The name under which [`ApiKeys`](crate::ApiKeys) have its key.
    pub api_key: Option<String>,
    /// How many intermediate pictures are asked for, 0 to 3. With 0 the answer is not streamed, which most other servers than
    /// OpenAI's need. Default 0.
    pub partial_images: u32,
}

impl ImageSettings {
    /// A model of an API, without a key.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), model: model.into(), api_key: None, partial_images: 0 }
    }
}
