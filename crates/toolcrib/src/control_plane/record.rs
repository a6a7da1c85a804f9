//! Records in the state folder which files programs could have created or changed.

use std::io;
use std::path::{Path, PathBuf};

use toolcrib_runners::ExposureRecord;
use toolcrib_store::{ExposedTable, StateFolder};

/// The record in the database of a state folder, which need not exist.
#[derive(Debug)]
pub struct ExposedFiles {
    folder: PathBuf,
    table: ExposedTable,
}

impl ExposedFiles {
    /// The record of a state folder.
    pub fn in_state(state_dir: &Path) -> Self {
        Self { folder: state_dir.to_owned(), table: ExposedTable::in_folder(state_dir) }
    }
}

impl ExposedFiles {
    /// Records that the operator has reviewed all files as they are now. Returns those that exist.
    pub fn review(&self) -> Vec<PathBuf> {
        let mut files = self.places().unwrap_or_default();
        if !files.is_empty() {
            self.remove(&files);
        }
        files.retain(|file| file.exists());
        files
    }
}

impl ExposureRecord for ExposedFiles {
    fn places(&self) -> Option<Vec<PathBuf>> {
        let read = self.table.all();
        if let Err(error) = &read {
            tracing::warn!(%error, "the record of files that programs could have changed cannot be read");
        }
        read.ok()
    }

    fn add(&self, places: &[PathBuf]) -> io::Result<()> {
        // Commands such as `toolcrib test` work without a state folder.
        if !self.folder.exists() {
            return Ok(());
        }
        let add = |_| self.table.add(places).map_err(io::Error::other);
        let added = StateFolder::open(&self.folder).and_then(add);
        if let Err(error) = &added {
            tracing::warn!(%error, "files that programs could have changed cannot be recorded");
        }
        added
    }

    fn remove(&self, places: &[PathBuf]) {
        if let Err(error) = self.table.remove(places) {
            tracing::warn!(%error, "the review of files cannot be recorded: they need another one after a restart");
        }
    }
}
