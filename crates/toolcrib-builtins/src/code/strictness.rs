//! The strictness levels for Python code.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much Python code may do.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Strictness {
    /// All modules and builtins; may write files in the workspace and use the network.
    Lenient,
    /// Modules that compute, parse and format; no files, processes or network.
    #[default]
    Standard,
    /// Like standard, with fewer modules, and without builtins that inspect objects.
    Strict,
}

impl Strictness {
    /// All of them, the loosest first.
    pub const ALL: [Self; 3] = [Self::Lenient, Self::Standard, Self::Strict];

    /// Its name: `lenient`, `standard`, `strict`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lenient => "lenient",
            Self::Standard => "standard",
            Self::Strict => "strict",
        }
    }

    /// The default time limit of this level: 30, 10 and 5 s.
    pub const fn default_timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Lenient => 30,
            Self::Standard => 10,
            Self::Strict => 5,
        })
    }
}

impl fmt::Display for Strictness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is not the name of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownStrictness(String);

impl fmt::Display for UnknownStrictness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no strictness: lenient, standard and strict are", self.0)
    }
}

impl std::error::Error for UnknownStrictness {}

impl FromStr for Strictness {
    type Err = UnknownStrictness;

    fn from_str(text: &str) -> Result<Self, UnknownStrictness> {
        let known = Self::ALL.into_iter().find(|level| level.as_str() == text);
        known.ok_or_else(|| UnknownStrictness(text.to_owned()))
    }
}
