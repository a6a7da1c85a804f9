//! Settings of model providers: where models are reached, and what differs between servers.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_agent::budget::Prices;
use toolcrib_agent::model::{EndpointTimeouts, check_base_url};
use toolcrib_tool::units::Timeout;
use toolcrib_wire::model::Wire;

/// A provider of models (`providers.<name>`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The API: `chat` (chat completions, which most providers and local servers offer), `responses`
    /// (OpenAI's Responses) or `anthropic` (messages).
    pub kind: ProviderKind,
    /// The address of the API, for example `https://api.openai.com/v1`. An address on this machine or in a private
    /// network is allowed because the operator names it here.
    pub base_url: BaseUrl,
    /// The API key: `${secret.NAME}`, a secret of the config. Default: none is sent.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend(
        "writeOnly" = true,
        "pattern" = r"^\$\{secret\.[A-Za-z0-9_.-]+\}$",
        "x-expected" = "the name of a secret, not its value: write `${secret.NAME}`, and under `secrets` where \
                        NAME comes from, such as `NAME: {env: VARIABLE}`"
    ))]
    pub api_key: Option<SecretReference>,
    /// The models that may be used, by the provider's names for them. Default: any.
    #[serde(default)]
    pub models: BTreeMap<String, ModelSettings>,
    /// What its models and its server can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// How long its answers may take.
    #[serde(default)]
    pub limits: ProviderLimits,
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProviderKind {
    /// Chat completions.
    Chat,
    /// Responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
}

impl ProviderKind {
    /// The format of requests and answers.
    pub fn wire(self) -> Wire {
        match self {
            Self::Chat => Wire::Chat,
            Self::Responses => Wire::Responses,
            Self::Anthropic => Wire::Anthropic,
        }
    }
}

/// The address of an API: `http` or `https`, without user, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct BaseUrl(String);

impl BaseUrl {
    /// The address as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        check_base_url(&text)?;
        Ok(Self(text))
    }
}

impl From<BaseUrl> for String {
    fn from(url: BaseUrl) -> Self {
        url.0
    }
}

/// A reference to a secret of the config: `${secret.NAME}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SecretReference(String);

impl SecretReference {
    /// The name of the secret.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SecretReference {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let name = text.strip_prefix("${secret.").and_then(|rest| rest.strip_suffix('}'));
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        };
        match name.filter(is_name) {
            Some(name) => Ok(Self(name.to_owned())),
            // The text may be a key, so it is not repeated.
            None => Err("the config names a secret, not its value: write `${secret.NAME}`"),
        }
    }
}

impl From<SecretReference> for String {
    fn from(reference: SecretReference) -> Self {
        format!("${{secret.{}}}", reference.0)
    }
}

/// A model of a provider.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// How many tokens a request and its answer may have. With it, the conversation of a long run becomes shorter in time.
    /// Default: unknown.
    pub context_window: Option<NonZeroU64>,
    /// The most tokens of an answer. Default: the provider's limit; 8192 for `anthropic`, which needs one.
    pub max_output_tokens: Option<NonZeroU64>,
    /// The sampling temperature. Default: the provider's.
    pub temperature: Option<f64>,
    /// How much the model reasons, in the provider's words, for example `low` or `high`. Default: the provider's.
    pub reasoning_effort: Option<String>,
    /// Its prices. Without them, `max_cost` does not count its tokens.
    pub prices: Option<ModelPrices>,
}

/// Prices of a model, in US dollars for a million tokens.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrices {
    /// Tokens of requests.
    pub input: Price,
    /// Tokens of answers.
    pub output: Price,
    /// Tokens of requests that the provider had cached. Default: as `input`.
    #[serde(default)]
    pub cached_input: Option<Price>,
    /// Tokens of requests that the provider writes to its cache. Default: as `input`.
    #[serde(default)]
    pub cache_write: Option<Price>,
}

impl ModelPrices {
    /// The prices for the budget of a run.
    pub fn prices(&self) -> Prices {
        let of = |price: Option<Price>| price.unwrap_or(self.input).per_token();
        Prices {
            input: self.input.per_token(),
            cached_input: of(self.cached_input),
            cache_write: of(self.cache_write),
            output: self.output.per_token(),
        }
    }
}

/// A price in US dollars for a million tokens, from 0 to 100,000.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64", extend("minimum" = 0, "maximum" = 100_000))]
pub struct Price(f64);

impl Price {
    /// In billionths of a US dollar for one token.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "prices are from 0 to 100,000, checked when they are read"
    )]
    fn per_token(self) -> u64 {
        (self.0 * 1_000.0).round() as u64
    }
}

impl TryFrom<f64> for Price {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, Self::Error> {
        if (0.0..=100_000.0).contains(&dollars) {
            Ok(Self(dollars))
        } else {
            Err("a price is a number of US dollars for a million tokens, from 0 to 100000")
        }
    }
}

impl From<Price> for f64 {
    fn from(price: Price) -> Self {
        price.0
    }
}

/// What the models and the server of a provider can do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that the config shows")]
pub struct Capabilities {
    /// Whether answers are streamed.
    pub stream: bool,
    /// Whether the models read pictures, sounds and files. If not, they are named in brackets.
    pub media: bool,
    /// Whether `anthropic` is asked to cache the tools, the instruction and the conversation.
    pub prompt_cache: bool,
    /// With `chat`: whether a streamed answer is asked to end with its number of tokens.
    pub stream_usage: bool,
    /// With `chat`: whether reasoning is sent back. Some servers need it between calls, others refuse it.
    pub send_reasoning: bool,
    /// With `chat`: whether the role of the instruction is `developer` instead of `system`.
    pub developer_role: bool,
    /// With `chat`: whether the limit on tokens is called `max_tokens` instead of `max_completion_tokens`.
    pub legacy_max_tokens: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            stream: true,
            media: true,
            prompt_cache: true,
            stream_usage: true,
            send_reasoning: true,
            developer_role: false,
            legacy_max_tokens: false,
        }
    }
}

/// How long the answers of a provider may take.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderLimits {
    /// Time until an answer begins.
    pub first_event: Timeout,
    /// Time between two pieces of an answer.
    pub idle: Timeout,
}

impl Default for ProviderLimits {
    fn default() -> Self {
        let own = EndpointTimeouts::default();
        Self { first_event: Timeout(own.first_event), idle: Timeout(own.idle) }
    }
}

impl ProviderLimits {
    /// The time limits of an endpoint.
    pub(crate) fn timeouts(&self) -> EndpointTimeouts {
        let mut timeouts = EndpointTimeouts::default();
        (timeouts.first_event, timeouts.idle) = (self.first_event.0, self.idle.0);
        timeouts
    }

    /// As [`timeouts`](Self::timeouts), no longer than this.
    pub(crate) fn timeouts_within(&self, most: Duration) -> EndpointTimeouts {
        let mut timeouts = self.timeouts();
        (timeouts.first_event, timeouts.idle) =
            (timeouts.first_event.min(most), timeouts.idle.min(most));
        timeouts
    }
}

/// A model as agents name it: `PROVIDER/MODEL`, where the model's name may have slashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ModelName {
    provider: String,
    model: String,
}

impl ModelName {
    /// The entry of `providers`.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The provider's name for the model.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl std::str::FromStr for ModelName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
            }
            _ => {
                Err("a model is written PROVIDER/MODEL, where PROVIDER is an entry of `providers`")
            }
        }
    }
}

impl TryFrom<String> for ModelName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}
