//! Settings of when the conversation of an agent becomes shorter (`agents.<name>.compaction`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_agent::Compaction;

use crate::settings::providers::ModelName;

/// When and how the conversation of an agent becomes shorter. This needs the model's `context_window`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentCompaction {
    /// The share of the model's context from which on a conversation becomes shorter, from 0.1 to 1. Default: 0.8.
    pub at: Option<Share>,
    /// The model that writes summaries: `PROVIDER/MODEL`. Default: that of the run.
    pub model: Option<ModelName>,
    /// The newest messages of the user that a summary does not replace, in tokens. Default: 20000.
    pub kept_input_tokens: Option<u64>,
}

impl AgentCompaction {
    /// The settings of a run, without the model.
    pub(crate) fn compaction(&self) -> Compaction {
        let mut own = Compaction::default();
        own.at = self.at.map_or(own.at, f64::from);
        own.kept_input_tokens = self.kept_input_tokens.unwrap_or(own.kept_input_tokens);
        own
    }
}

/// A part of a whole, from 0.1 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64", extend("minimum" = 0.1, "maximum" = 1, "x-expected" = "a share from 0.1 to 1, such as 0.8"))]
pub struct Share(f64);

impl TryFrom<f64> for Share {
    type Error = &'static str;

    fn try_from(share: f64) -> Result<Self, Self::Error> {
        if (0.1..=1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err("a share of the context is a number from 0.1 to 1")
        }
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}
