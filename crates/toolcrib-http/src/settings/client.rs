//! What is said of one client.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::policy::Policy;
use toolcrib_tool::RateLimit;

use crate::{Right, TokenHash};

/// A client that has a token of its own (`server.tokens.<name>` in the configuration file).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// The hash of its token, as `toolcrib token` prints it. The token itself is kept nowhere.
    pub hash: TokenHash,
    /// What it may do: `call`, `approve`, `observe`, `operate`. Default: `[call]`.
    #[serde(default = "call_only")]
    pub rights: Vec<Right>,
    /// The toolset beyond which it sees and calls nothing. Default: `server.toolset`.
    #[serde(default)]
    pub toolset: Option<String>,
    /// Rules for its calls beside the server's `policy`. The stricter verdict holds: they can narrow
    /// what it may call, and never widen it. Default: none.
    #[serde(default)]
    pub policy: Policy,
    /// Values of its calls' context, over those of the server's `context`. Without a `user` here, the
    /// client's name is it, so that what is kept for one client never serves another.
    #[serde(default)]
    pub context: BTreeMap<String, Value>,
    /// Requests it may make in a time, such as `600/min`. Default: `server.rate`.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Requests of it that may be answered at once. Default: `server.concurrent`.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub concurrent: Option<usize>,
}

fn call_only() -> Vec<Right> {
    vec![Right::Call]
}

impl ClientConfig {
    /// A client with this token that may call all tools, without limits of its own.
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

/// So many requests in a time, written like `600/min`.
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
