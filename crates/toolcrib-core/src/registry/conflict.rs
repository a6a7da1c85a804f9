//! Name conflicts.

use std::fmt;

use toolcrib_tool::{Layer, Source, ToolEntry, ToolName};

/// A name that two entries declare.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Conflict {
    /// The entry that lost.
    pub loser: ToolEntry,
    /// The owner's source; for a [`reserved`](Self::reserved) name, that of the last owner.
    pub winner: Source,
    /// Whether the owner has given up the name, and it is reserved for the owner's layer.
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

/// A name that was given up and that no other entry of the owner's layer declares.
///
/// It is not callable, and other layers cannot get it until a unit of the layer declares it again,
/// the program restarts, or it is released with [`Registry::release`](crate::Registry::release).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reservation {
    /// The name.
    pub name: ToolName,
    /// The last owner's source; the name is reserved for its layer.
    pub owner: Source,
}

impl Reservation {
    pub(super) fn layer(&self) -> Layer {
        self.owner.layer
    }
}

/// A name that would have another owner after a restart with the same declarations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The name.
    pub name: ToolName,
    /// The current owner; `None` if the name is reserved.
    pub live: Option<Source>,
    /// The owner after a restart.
    pub fresh: Source,
}
