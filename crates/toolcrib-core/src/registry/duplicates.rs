//! What is done about names that are declared twice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conflict::Conflict;
use super::error::RegistryError;
use super::snapshot::RegistrySnapshot;

/// What a name that is declared twice means. The first keeps it either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDuplicate {
    /// The conflict is logged and listed.
    #[default]
    Warn,
    /// Nothing is built and no change applied.
    Error,
}

impl OnDuplicate {
    /// Fails with every conflict of the snapshot, if there are any and they are refused.
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

/// Logs the conflicts that were not known before.
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
