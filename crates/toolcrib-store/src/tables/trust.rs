//! Stores trust records as rows.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::database::short_lived::{read_once, write_once};
use crate::database::transaction::Tx;
use crate::error::DatabaseError;

/// A declaration that the operator trusts, as it was at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TrustedDeclaration {
    /// `tool`, `upstream`, `prompt` or `resource`.
    pub kind: String,
    /// The absolute path of the manifest.
    pub unit: String,
    /// The name of the tool, server or prompt, or the address of the resource.
    pub name: String,
    /// The digest of its declaration.
    pub digest: String,
    /// What was shown to the operator, to report changes later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
}

impl TrustedDeclaration {
    /// A declaration by its kind, its manifest, its name and its digest.
    pub fn new(
        kind: impl Into<String>,
        unit: impl Into<String>,
        name: impl Into<String>,
        digest: impl Into<String>,
    ) -> Self {
        let (kind, unit, name, digest) = (kind.into(), unit.into(), name.into(), digest.into());
        Self { kind, unit, name, digest, shown: None }
    }

    /// The same record, with what was shown to the operator.
    #[must_use]
    pub fn showing(mut self, shown: String) -> Self {
        self.shown = Some(shown);
        self
    }

    /// Whether both records are about the same name, whatever the declarations contain.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        (&self.kind, &self.unit, &self.name) == (&other.kind, &other.unit, &other.name)
    }
}

/// The trust records in the database of a folder. Each use opens the database anew, so that programs without a database
/// of their own can read them. Blocks the calling thread.
#[derive(Debug, Clone)]
pub struct TrustTable(PathBuf);

impl TrustTable {
    /// The trust records of a folder's database, which need not exist.
    pub fn in_folder(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// All records, in the order of manifests, kinds and names.
    pub fn all(&self) -> Result<Vec<TrustedDeclaration>, DatabaseError> {
        let look = |tx: &Tx<'_>| {
            let sql = "SELECT kind, unit, name, digest, shown FROM trust ORDER BY unit, kind, name";
            tx.all(sql, [], |row| {
                Ok(TrustedDeclaration {
                    kind: row.get(0)?,
                    unit: row.get(1)?,
                    name: row.get(2)?,
                    digest: row.get(3)?,
                    shown: row.get(4)?,
                })
            })
        };
        read_once(&self.0, look).map(Option::unwrap_or_default)
    }

    /// Adds records; each replaces the earlier one of the same name.
    pub fn add(&self, added: &[TrustedDeclaration]) -> Result<(), DatabaseError> {
        let sql = "INSERT OR REPLACE INTO trust (kind, unit, name, digest, shown)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        write_once(&self.0, |tx| {
            added.iter().try_for_each(|TrustedDeclaration { kind, unit, name, digest, shown }| {
                tx.execute(sql, (kind, unit, name, digest, shown)).map(drop)
            })
        })
    }

    /// Removes records by name. Returns how many existed.
    pub fn remove(&self, revoked: &[TrustedDeclaration]) -> Result<usize, DatabaseError> {
        let sql = "DELETE FROM trust WHERE kind = ?1 AND unit = ?2 AND name = ?3";
        write_once(&self.0, |tx| {
            let one = |own: &TrustedDeclaration| tx.execute(sql, (&own.kind, &own.unit, &own.name));
            revoked.iter().map(one).sum()
        })
    }
}
