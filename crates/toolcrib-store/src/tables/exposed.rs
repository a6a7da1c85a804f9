//! Stores the paths of files that programs could have changed, as rows.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::database::short_lived::{read_once, write_once};
use crate::database::transaction::Tx;
use crate::error::DatabaseError;

/// The files that programs could have created or changed since the operator looked, in the database of a folder. Each
/// use opens the database anew. Blocks the calling thread.
#[derive(Debug, Clone)]
pub struct ExposedTable(PathBuf);

impl ExposedTable {
    /// The files recorded in a folder's database, which need not exist.
    pub fn in_folder(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// All files, in order.
    pub fn all(&self) -> Result<Vec<PathBuf>, DatabaseError> {
        let look = |tx: &Tx<'_>| {
            tx.all("SELECT path FROM exposed ORDER BY path", [], |row| {
                let path: Vec<u8> = row.get(0)?;
                Ok(PathBuf::from(OsStr::from_bytes(&path)))
            })
        };
        read_once(&self.0, look).map(Option::unwrap_or_default)
    }

    /// Adds files.
    pub fn add(&self, files: &[PathBuf]) -> Result<(), DatabaseError> {
        self.change("INSERT OR IGNORE INTO exposed (path) VALUES (?1)", files)
    }

    /// Removes files.
    pub fn remove(&self, files: &[PathBuf]) -> Result<(), DatabaseError> {
        self.change("DELETE FROM exposed WHERE path = ?1", files)
    }

    fn change(&self, sql: &str, files: &[PathBuf]) -> Result<(), DatabaseError> {
        write_once(&self.0, |tx| {
            files
                .iter()
                .try_for_each(|file| tx.execute(sql, [file.as_os_str().as_bytes()]).map(drop))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_name_are_recorded_once_until_they_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let table = ExposedTable::in_folder(dir.path());
        assert!(table.all().unwrap().is_empty());
        let files = [PathBuf::from(OsStr::from_bytes(b"/w/\xff")), PathBuf::from("/w/makefile")];
        table.add(&files).unwrap();
        table.add(&files[1..]).unwrap();
        assert_eq!(table.all().unwrap(), [files[1].clone(), files[0].clone()]);
        table.remove(&files[..1]).unwrap();
        assert_eq!(table.all().unwrap(), files[1..]);
    }
}
