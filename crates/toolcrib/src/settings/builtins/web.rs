//! Settings of the web tools and of pictures.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_agent::model::is_unencrypted;
use toolcrib_runners::Secrets;
use toolcrib_tool::units::{SizeLimit, TimeLimit, Timeout};
use toolcrib_web::{ImageSettings, PageSettings, SearchProvider, SearchProviderKind, WebSettings};

use crate::agents::LOCAL_NETWORKS;
use crate::settings::findings::ConfigFinding;
use crate::settings::{BaseUrl, Config, ModelName, SecretReference, undeclared_model};

/// The web tools: `web_search`, `fetch_page`, `crawl_batch`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Web {
    /// Search providers in the order in which they are asked. Without any, `web_search` is not offered.
    pub search: Vec<SearchEntry>,
    /// How many providers answer one search; their results are merged. The others are asked if one of these fails or
    /// finds nothing.
    pub merged: NonZeroUsize,
    /// The results of a search that does not say how many it wants, at most 20.
    #[schemars(range(min = 1, max = 20))]
    pub max_results: NonZeroU32,
    /// The most URLs of one `crawl_batch`, at most 10.
    #[schemars(range(min = 1, max = 10))]
    pub max_batch: NonZeroUsize,
    /// Networks in CIDR notation from which pages are fetched, in addition to the public internet.
    pub allow_private: Vec<Network>,
    /// The time limit for one page, with its redirects.
    pub page_timeout: Timeout,
    /// The largest page, after decompression.
    pub max_page_bytes: SizeLimit,
    /// How long a page is used again, for the same identity, without asking its server; `none` asks every time. Pages say
    /// themselves if they may be used for a shorter time only.
    pub cache_ttl: TimeLimit,
    /// How many requests go to one host at the same time.
    pub per_host: NonZeroUsize,
    /// Whether `crawl_batch` leaves out pages that `robots.txt` of their server closes to programs.
    pub robots: bool,
}

impl Default for Web {
    fn default() -> Self {
        let WebSettings { merged, max_results, max_batch, pages, .. } = WebSettings::default();
        let PageSettings { timeout, max_bytes, cache_ttl, per_host, robots, .. } = pages;
        Self {
            search: Vec::new(),
            merged,
            max_results,
            max_batch,
            allow_private: Vec::new(),
            page_timeout: Timeout(timeout),
            max_page_bytes: SizeLimit(max_bytes as u64),
            cache_ttl: TimeLimit(Some(cache_ttl)),
            per_host,
            robots,
        }
    }
}

/// A search provider.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenSearchEntry", into = "WrittenSearchEntry")]
#[schemars(with = "WrittenSearchEntry")]
pub struct SearchEntry(WrittenSearchEntry);

/// A search provider, as written in a config file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SearchEntry")]
struct WrittenSearchEntry {
    /// `searxng`, `brave`, `tavily` or `duckduckgo`.
    kind: SearchProviderKind,
    /// The address of its API; a SearXNG server has no other. An address on this machine or in a private network is
    /// allowed because the operator names it here.
    #[serde(default)]
    url: Option<BaseUrl>,
    /// The API key: `${secret.NAME}`. `brave` and `tavily` need one.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend(
        "writeOnly" = true,
        "pattern" = r"^\$\{secret\.[A-Za-z0-9_.-]+\}$",
        "x-expected" = "the name of a secret, not its value: write `${secret.NAME}`, and under `secrets` where \
                        NAME comes from, such as `NAME: {env: VARIABLE}`"
    ))]
    api_key: Option<SecretReference>,
}

impl TryFrom<WrittenSearchEntry> for SearchEntry {
    type Error = String;

    fn try_from(written: WrittenSearchEntry) -> Result<Self, String> {
        let kind = written.kind;
        if written.url.is_none() && kind.default_url().is_none() {
            return Err(format!(
                "`{0}` has no address of its own: write `{{kind: {0}, url: https://search.example.com}}`",
                kind.as_str()
            ));
        }
        if written.api_key.is_none() && kind.needs_key() {
            return Err(format!(
                "`{0}` needs an API key: write `{{kind: {0}, api_key: ${{secret.NAME}}}}`",
                kind.as_str()
            ));
        }
        Ok(Self(written))
    }
}

impl From<SearchEntry> for WrittenSearchEntry {
    fn from(entry: SearchEntry) -> Self {
        entry.0
    }
}

impl SearchEntry {
    fn provider(&self) -> SearchProvider {
        let WrittenSearchEntry { kind, url, api_key } = &self.0;
        let mut provider = SearchProvider::new(*kind);
        provider.url = url.as_ref().map(|url| url.as_str().to_owned());
        provider.api_key = api_key.as_ref().map(|key| key.name().to_owned());
        provider
    }
}

/// A network in CIDR notation, such as `10.20.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Network(toolcrib_web::IpNet);

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let unreadable =
            || format!("`{text}` is no network: write it as `10.20.0.0/16` or `10.20.3.4/32`");
        text.parse().map(Self).map_err(|_| unreadable())
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The pictures that `image_generate` makes.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Images {
    /// The model, as `PROVIDER/MODEL`: `PROVIDER` is an entry of `providers` whose server has an images endpoint like
    /// OpenAI's. Without a model, `image_generate` is not offered.
    pub model: Option<ModelName>,
    /// How many intermediate pictures are asked for, to be shown while a picture is made. Not every server has them.
    #[schemars(range(max = 3))]
    pub partial_images: u32,
}

impl Config {
    /// The settings of the web tools.
    pub fn web_settings(&self) -> WebSettings {
        let own = &self.web;
        let mut settings = WebSettings::default();
        settings.search = own.search.iter().map(SearchEntry::provider).collect();
        settings.merged = own.merged;
        settings.max_results = own.max_results;
        settings.max_batch = own.max_batch;
        settings.pages.allow_private = own.allow_private.iter().map(|network| network.0).collect();
        settings.pages.timeout = own.page_timeout.0;
        settings.pages.max_bytes = usize::try_from(own.max_page_bytes.0).unwrap_or(usize::MAX);
        settings.pages.cache_ttl = own.cache_ttl.0.unwrap_or_default();
        settings.pages.per_host = own.per_host;
        settings.pages.robots = own.robots;
        settings.images = self.images.model.as_ref().and_then(|name| {
            let provider = self.providers.get(name.provider())?;
            let mut images = ImageSettings::new(provider.base_url.as_str(), name.model());
            images.api_key = provider.api_key.as_ref().map(|key| key.name().to_owned());
            images.partial_images = self.images.partial_images;
            Some(images)
        });
        settings
    }

    /// The model for pictures if it is not declared, and missing secrets of search providers.
    pub(in crate::settings) fn unmatched_of_web(&self, secrets: &Secrets) -> Vec<ConfigFinding> {
        let mut found = Vec::new();
        if let Some(model) = &self.images.model
            && let Some((message, help)) = undeclared_model(&self.providers, model)
        {
            let message = format!("`images.model` names `{model}`, but {message}");
            found.push(ConfigFinding::refused(&["images", "model"], message, help));
        }
        for (at, entry) in self.web.search.iter().enumerate() {
            let key = entry.0.api_key.as_ref();
            let missing = key.and_then(|key| secrets.check(key.name()).err());
            // A secret under `secrets` that is missing on this machine is reported there.
            let Some(missing) = missing.filter(|one| !self.secrets.contains_key(&one.name)) else {
                continue;
            };
            found.push(ConfigFinding::unmatched(
                &["web", "search", &at.to_string(), "api_key"],
                format!(
                    "`web.search[{at}].api_key` names a secret that is missing: {}",
                    missing.reason
                ),
                format!("declare it: `secrets: {{{}: {{env: VARIABLE}}}}`", missing.name),
            ));
        }
        found
    }

    /// Search providers to which keys and searches go over the network unencrypted.
    pub(in crate::settings) fn unencrypted_searches(&self) -> Vec<ConfigFinding> {
        let networks: Vec<_> =
            LOCAL_NETWORKS.iter().filter_map(|network| network.parse().ok()).collect();
        let entries = self.web.search.iter().enumerate();
        let open = entries.filter_map(|(at, entry)| Some((at, entry.0.url.as_ref()?)));
        open.filter(|(_, url)| is_unencrypted(url.as_str(), &networks))
            .map(|(at, url)| {
                let message = format!(
                    "`web.search[{at}].url` is `{}`: searches go over the network unencrypted",
                    url.as_str()
                );
                let path = ["web", "search", &at.to_string(), "url"];
                let help =
                    "use an address with `https`; `http` is for this machine and private networks";
                let found = ConfigFinding::unmatched(&path, message, help);
                ConfigFinding { code: "plain-credentials", ..found }
            })
            .collect()
    }
}
