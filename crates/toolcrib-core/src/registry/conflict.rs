//! Names that more than one entry asked for.

use std::fmt;

use toolcrib_tool::{Layer, Source, ToolEntry, ToolName};

/// A name two entries asked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Conflict {
    /// The entry that lost.
    pub loser: ToolEntry,
    /// Where the owner comes from; for a [`reserved`](Self::reserved) name, its last owner.
    pub winner: Source,
    /// Whether the owner has given the name up since, and it is kept for the owner's layer.
    pub reserved: bool,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, loser, winner) = (self.loser.name(), &self.loser.source, &self.winner);
        if self.reserved {
            write!(f, "`{name}` of {loser}: the name is reserved since {winner} gave it up")
        } else {
            write!(f, "`{name}` of {loser}: the name belongs to {winner}")
        }
    }
}

/// A name that was given up and that nobody of its owner's layer wanted.
///
/// It is not callable, and no other layer gets it, until a unit of the layer declares it again, the
/// program restarts, or [`Registry::release`](crate::Registry::release).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reservation {
    /// The name.
    pub name: ToolName,
    /// Where its last owner came from; the layer is the one it is reserved for.
    pub owner: Source,
}

impl Reservation {
    pub(super) fn layer(&self) -> Layer {
        self.owner.layer
    }
}

/// A name whose owner would be another one after a restart with the same declarations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The name.
    pub name: ToolName,
    /// Who owns it now; nobody, if it is reserved.
    pub live: Option<Source>,
    /// Who would own it.
    pub fresh: Source,
}
