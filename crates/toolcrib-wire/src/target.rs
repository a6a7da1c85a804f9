//! The providers and APIs to which tools are exported.

use std::fmt;

use crate::names::NameRule;

/// A provider's format for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Target {
    /// Chat completions: `{type: "function", function: {name, description, parameters}}`.
    OpenAiChat,
    /// Chat completions in strict mode: the arguments a model sends always fit the schema.
    OpenAiStrict,
    /// The Responses API: `{type: "function", name, description, parameters, strict: false}`.
    Responses,
    /// The Responses API in strict mode: `strict: true` and the schema of [`Self::OpenAiStrict`].
    ResponsesStrict,
    /// Messages: `{name, description, input_schema}`.
    Anthropic,
    /// One entry of `functionDeclarations`, in Gemini's subset of an `OpenAPI` schema.
    Gemini,
    /// One entry of `tools/list`. Output schemas that do not describe objects are wrapped as `{result: …}`, which every
    /// revision of the protocol accepts.
    Mcp,
}

impl Target {
    /// Every target.
    pub const ALL: &'static [Self] = &[
        Self::OpenAiChat,
        Self::OpenAiStrict,
        Self::Responses,
        Self::ResponsesStrict,
        Self::Anthropic,
        Self::Gemini,
        Self::Mcp,
    ];

    /// The stable name, for example `openai-strict`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiStrict => "openai-strict",
            Self::Responses => "responses",
            Self::ResponsesStrict => "responses-strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
        }
    }

    /// The target with this stable name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|target| target.as_str() == name)
    }

    /// Whether the schemas follow OpenAI's strict mode, so that arguments need [`from_strict`](crate::from_strict).
    pub const fn is_strict(self) -> bool {
        matches!(self, Self::OpenAiStrict | Self::ResponsesStrict)
    }

    pub(crate) const fn name_rule(self) -> NameRule {
        match self {
            Self::OpenAiChat
            | Self::OpenAiStrict
            | Self::Responses
            | Self::ResponsesStrict
            | Self::Anthropic => NameRule { max_len: 64, dots: false, digit_first: true },
            Self::Gemini => NameRule { max_len: 64, dots: true, digit_first: false },
            Self::Mcp => NameRule { max_len: 128, dots: true, digit_first: true },
        }
    }

    /// The longest description in characters, if the provider has a limit.
    pub(crate) const fn description_limit(self) -> Option<usize> {
        match self {
            Self::OpenAiChat | Self::OpenAiStrict | Self::Responses | Self::ResponsesStrict => {
                Some(1024)
            }
            Self::Anthropic | Self::Gemini | Self::Mcp => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
