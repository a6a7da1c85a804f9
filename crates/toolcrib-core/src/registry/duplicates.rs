//! Handling of duplicate names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conflict::Conflict;
use super::error::RegistryError;
use super::snapshot::RegistrySnapshot;

/// How to handle a name that is declared twice. The first declaration wins in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDuplicate {
    /// The conflict is logged and listed.
    #[default]
    Warn,
    /// Building and changes fail.
    Error,
}

impl OnDuplicate {
    /// Fails with all conflicts of the snapshot if duplicates are errors.
    ///
    /// ```
    /// use toolcrib_core::{OnDuplicate, RegistryBuilder};
    ///
    /// let snapshot = RegistryBuilder::new().build();
    /// assert!(OnDuplicate::Error.check(&snapshot).is_ok());
    /// ```
    pub fn check(self, snapshot: &RegistrySnapshot) -> Result<(), RegistryError> {
        match self {
            Self::Error if !snapshot.conflicts().is_empty() => {
                Err(RegistryError::Duplicates { conflicts: snapshot.conflicts().to_vec() })
            }
            _ => Ok(()),
        }
    }
}

/// Logs new conflicts.
pub(super) fn log(conflicts: &[Conflict], known: &[Conflict]) {
    let is_known = |conflict: &Conflict| {
        known.iter().any(|known| {
            known.winner == conflict.winner
                && known.reserved == conflict.reserved
                && known.loser.source == conflict.loser.source
                && known.loser.name() == conflict.loser.name()
        })
    };
    for conflict in conflicts.iter().filter(|conflict| !is_known(conflict)) {
        tracing::warn!(
            tool = conflict.loser.name(),
            kept = %conflict.winner,
            shadowed = %conflict.loser.source,
            reserved = conflict.reserved,
            "two sources declare one name; the first keeps it"
        );
    }
}
