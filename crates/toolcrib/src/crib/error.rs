//! Errors of cribs.

use std::fmt;

use toolcrib_core::RegistryError;
#[cfg(feature = "manifests")]
use toolcrib_manifest::lock::LockError;
use toolcrib_tool::DefinitionError;

/// Why a crib could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The definition of a linked-in tool or of one of the host's closures is invalid.
    Definition(DefinitionError),
    /// Names are declared twice, and duplicates are refused.
    Registry(RegistryError),
    /// The lock is to be enforced but cannot be read.
    #[cfg(feature = "manifests")]
    Lock(LockError),
    /// An entry is invalid in every crib.
    Refused {
        /// The reason, and what to do.
        reason: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition(error) => error.fmt(f),
            Self::Registry(error) => error.fmt(f),
            #[cfg(feature = "manifests")]
            Self::Lock(error) => error.fmt(f),
            Self::Refused { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<DefinitionError> for BuildError {
    fn from(error: DefinitionError) -> Self {
        Self::Definition(error)
    }
}

impl From<RegistryError> for BuildError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}

#[cfg(feature = "manifests")]
impl From<LockError> for BuildError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

/// There is no toolset with that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownToolset {
    name: String,
    known: Vec<String>,
}

impl UnknownToolset {
    pub(super) fn new<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Self {
        Self { name: name.to_owned(), known: known.cloned().collect() }
    }
}

impl fmt::Display for UnknownToolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no toolset `{}`; ", self.name)?;
        if self.known.is_empty() {
            return f.write_str("none is declared: do so under `toolsets` in the config");
        }
        f.write_str(if self.known.len() == 1 { "there is " } else { "there are " })?;
        let known: Vec<_> = self.known.iter().map(|name| format!("`{name}`")).collect();
        f.write_str(&known.join(", "))
    }
}

impl std::error::Error for UnknownToolset {}
