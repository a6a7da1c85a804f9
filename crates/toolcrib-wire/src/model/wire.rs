//! The APIs that models are reached by.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Target;

/// An API of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wire {
    /// OpenAI's chat completions, which most other providers and local servers offer as well.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
}

impl Wire {
    /// Every wire.
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Responses, Self::Anthropic];

    /// The stable name, for example `chat`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
        }
    }

    /// The format in which tools have to be [exported](crate::export) for this wire.
    pub const fn target(self) -> Target {
        match self {
            Self::Chat => Target::OpenAiChat,
            Self::Responses => Target::Responses,
            Self::Anthropic => Target::Anthropic,
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
