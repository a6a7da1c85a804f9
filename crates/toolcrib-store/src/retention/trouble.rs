//! The last failure of the disk, until a change succeeds again.

use std::sync::{Mutex, PoisonError};

use crate::error::DatabaseError;

/// Why changes fail at present, if they do.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Mutex<Option<DatabaseError>>);

impl Trouble {
    /// Notes a failure, if it is one of the disk.
    pub(crate) fn note(&self, error: &DatabaseError) {
        let is_of_disk = matches!(
            error,
            DatabaseError::DiskFull { .. }
                | DatabaseError::Disk { .. }
                | DatabaseError::ReadOnly { .. }
                | DatabaseError::Corrupt { .. }
        );
        if is_of_disk {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.is_none() {
                tracing::error!(%error, "state cannot be stored");
            }
            *known = Some(error.clone());
        }
    }

    /// A change has succeeded.
    pub(crate) fn clear(&self) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!("state can be stored again");
        }
    }

    /// The last failure, if no change has succeeded since.
    pub(crate) fn now(&self) -> Option<DatabaseError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
