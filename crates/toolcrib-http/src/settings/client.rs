//! The settings of one client.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use toolcrib_core::policy::Policy;
use toolcrib_tool::{Identity, RateLimit};

use crate::{Right, TokenHash};

/// A client with its own token (`server.tokens.<name>` in the configuration file).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// The hash of its token, as `toolcrib token` prints it. The token itself is not stored.
    pub hash: TokenHash,
    /// Its rights: `call`, `approve`, `observe`, `operate`. Default: `[call]`.
    #[serde(default = "call_only")]
    pub rights: Vec<Right>,
    /// The toolset that it is limited to. Default: `server.toolset`.
    #[serde(default)]
    pub toolset: Option<String>,
    /// Rules for its calls, in addition to the server's `policy`. The stricter decision applies, so
    /// these rules can restrict calls but not allow more. A client's policy has rules only: the
    /// server's `policy.on_ask` decides what happens to calls that need approval. Default: none.
    #[serde(default, with = "rules_only")]
    #[schemars(with = "rules_only::RulesOnly")]
    pub policy: Policy,
    /// Context values of its calls, which override those of the server's `context`. Without a
    /// `user` here, the client's name is the user, so that stored data of one client is never used
    /// for another. `user` and `tenant` must not be null.
    #[serde(default, deserialize_with = "with_stated_identity")]
    pub context: BTreeMap<String, Value>,
    /// The request rate limit, such as `600/min`. Default: `server.rate`.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// The maximum number of concurrent requests; an event stream counts until it ends. Default:
    /// `server.concurrent`.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub concurrent: Option<usize>,
}

fn call_only() -> Vec<Right> {
    vec![Right::Call]
}

impl ClientConfig {
    /// Creates a client with this token that may call all tools, without limits of its own.
    pub fn new(hash: TokenHash) -> Self {
        Self {
            hash,
            rights: call_only(),
            toolset: None,
            policy: Policy::default(),
            context: BTreeMap::new(),
            rate: None,
            concurrent: None,
        }
    }
}

/// Deserializes a context in which `user` and `tenant` are not null: clients with a null `user`
/// would share one identity.
fn with_stated_identity<'de, D: Deserializer<'de>>(
    config: D,
) -> Result<BTreeMap<String, Value>, D::Error> {
    let context = BTreeMap::<String, Value>::deserialize(config)?;
    let is_null = |key: &&str| context.get(*key).is_some_and(Value::is_null);
    match [Identity::USER, Identity::TENANT].iter().copied().find(is_null) {
        None => Ok(context),
        Some(Identity::USER) => Err(D::Error::custom(
            "`user` must not be null: omit it to use the client's name as the user",
        )),
        Some(key) => {
            Err(D::Error::custom(format!("`{key}` must not be null: set it to a name, or omit it")))
        }
    }
}

/// The policy of a client in a configuration file, which contains only rules.
mod rules_only {
    use schemars::JsonSchema;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use toolcrib_core::policy::{OnAsk, Policy, PolicyRule};

    /// Rules for the calls of one client.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[schemars(rename = "ClientPolicy", extend("x-renamed" = {
        "on_ask": "a client's policy has rules only: `policy.on_ask` of the server decides what happens \
                   to calls that need approval; to refuse a tool to this client, write a rule with \
                   `action: deny`",
        "mode": "a client's policy has rules only: `policy.on_ask` of the server decides what happens \
                 to calls that need approval; to refuse a tool to this client, write a rule with \
                 `action: deny`"
    }))]
    #[serde(default, deny_unknown_fields)]
    pub(super) struct RulesOnly {
        /// The rules; the first one that matches a call decides.
        rules: Vec<PolicyRule>,
    }

    pub(super) fn serialize<S: Serializer>(policy: &Policy, to: S) -> Result<S::Ok, S::Error> {
        RulesOnly { rules: policy.rules().cloned().collect() }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Policy, D::Error> {
        let RulesOnly { rules } = RulesOnly::deserialize(from)?;
        Policy::new(OnAsk::default(), rules).map_err(D::Error::custom)
    }
}

/// A request rate, written like `600/min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate(pub RateLimit);

impl FromStr for Rate {
    type Err = toolcrib_tool::InvalidRateLimit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl TryFrom<String> for Rate {
    type Error = toolcrib_tool::InvalidRateLimit;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^ *[1-9][0-9]{0,8} */ *(s|min|h) *$",
            "x-expected": "requests per s, min or h, like 600/min",
        })
    }
}
