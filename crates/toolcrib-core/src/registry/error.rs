//! Errors of a registry.

use std::fmt;

use toolcrib_tool::Source;

use super::conflict::Conflict;
use super::rules::OVERRIDABLE;
use super::unit::SourceUnit;

/// Why entries or changes were refused. They had no effect.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RegistryError {
    /// Linked-in and fallback tools cannot change.
    Fixed {
        /// The unit.
        unit: SourceUnit,
    },
    /// Only host code registers entries one by one.
    NotHost {
        /// The unit.
        unit: SourceUnit,
    },
    /// A set of changes has two changes of one unit.
    Repeated {
        /// The unit.
        unit: SourceUnit,
    },
    /// A unit cannot be renamed into another layer.
    OtherLayer {
        /// The old name.
        from: SourceUnit,
        /// The requested name.
        to: SourceUnit,
    },
    /// An entry says that it comes from another unit than the one that declares it.
    Foreign {
        /// The entry's name.
        tool: String,
        /// The entry's source.
        source: Box<Source>,
        /// The unit that declares it.
        unit: SourceUnit,
    },
    /// Only the system's own tools may be fallbacks.
    NoFallback {
        /// The entry's name.
        tool: String,
    },
    /// Names are declared twice, and duplicates are refused.
    Duplicates {
        /// All entries that did not get their name.
        conflicts: Vec<Conflict>,
    },
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { unit } => write!(
                f,
                "the tools of `{unit}` are part of the program and cannot change while it runs: \
                 declare the change in a host, manifest or upstream unit"
            ),
            Self::NotHost { unit } => write!(
                f,
                "single tools are registered and unregistered in the host layer only, and `{unit}` \
                 is not: replace the unit as a whole"
            ),
            Self::Repeated { unit } => write!(
                f,
                "one set of changes says two things about `{unit}`: send only what holds at the end"
            ),
            Self::OtherLayer { from, to } => write!(
                f,
                "`{from}` cannot be renamed to `{to}`, which is in another layer: remove the one \
                 and add the other"
            ),
            Self::Foreign { tool, source, unit } => write!(
                f,
                "the tool `{tool}` says that it comes from {source}, and `{unit}` declares it: \
                 give the entry the source of the unit"
            ),
            Self::NoFallback { tool } => write!(
                f,
                "`{tool}` cannot be a fallback: only {} can; register it in the host layer",
                OVERRIDABLE.map(|name| format!("`{name}`")).join(" and ")
            ),
            Self::Duplicates { conflicts } => {
                let number = conflicts.len();
                write!(
                    f,
                    "{number} tool name{} declared twice",
                    if number == 1 { " is" } else { "s are" }
                )?;
                for conflict in conflicts {
                    write!(f, "\n  {conflict}")?;
                }
                f.write_str(
                    "\nRename one of each, or set registry.on_duplicate to `warn` to let the first \
                     keep the name",
                )
            }
        }
    }
}

impl std::error::Error for RegistryError {}
