//! What the operator trusts, as rows.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::database::short_lived::{change, glance};
use crate::database::transaction::Tx;
use crate::error::DatabaseError;

/// A declaration that the operator trusts, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Trusted {
    /// `tool`, `upstream`, `prompt` or `resource`.
    pub kind: String,
    /// The manifest, by its absolute path.
    pub unit: String,
    /// The name of the tool, server or prompt; of a resource its address.
    pub name: String,
    /// The digest of its declaration.
    pub digest: String,
    /// What the operator was shown of it, to tell later what has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
}

impl Trusted {
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

    /// The same with what the operator was shown of it.
    #[must_use]
    pub fn showing(mut self, shown: String) -> Self {
        self.shown = Some(shown);
        self
    }

    /// Whether both are about the declaration of one name, whatever it says.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        (&self.kind, &self.unit, &self.name) == (&other.kind, &other.unit, &other.name)
    }
}

/// What is trusted in the database of a folder. Each use opens the database for itself, so that programs
/// can look at it that keep nothing in it. The caller's thread waits.
#[derive(Debug, Clone)]
pub struct TrustTable(PathBuf);

impl TrustTable {
    /// The table of a folder's database, which need not be there.
    pub fn in_folder(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// All that is trusted, in the order of manifests, kinds and names.
    pub fn all(&self) -> Result<Vec<Trusted>, DatabaseError> {
        let look = |tx: &Tx<'_>| {
            let sql = "SELECT kind, unit, name, digest, shown FROM trust ORDER BY unit, kind, name";
            tx.all(sql, [], |row| {
                Ok(Trusted {
                    kind: row.get(0)?,
                    unit: row.get(1)?,
                    name: row.get(2)?,
                    digest: row.get(3)?,
                    shown: row.get(4)?,
                })
            })
        };
        glance(&self.0, look).map(Option::unwrap_or_default)
    }

    /// Adds declarations; each replaces what was trusted under its name.
    pub fn add(&self, added: &[Trusted]) -> Result<(), DatabaseError> {
        let sql = "INSERT OR REPLACE INTO trust (kind, unit, name, digest, shown)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        change(&self.0, |tx| {
            added.iter().try_for_each(|Trusted { kind, unit, name, digest, shown }| {
                tx.execute(sql, (kind, unit, name, digest, shown)).map(drop)
            })
        })
    }

    /// Removes declarations by their names. Returns how many were there.
    pub fn remove(&self, revoked: &[Trusted]) -> Result<usize, DatabaseError> {
        let sql = "DELETE FROM trust WHERE kind = ?1 AND unit = ?2 AND name = ?3";
        change(&self.0, |tx| {
            let one = |own: &Trusted| tx.execute(sql, (&own.kind, &own.unit, &own.name));
            revoked.iter().map(one).sum()
        })
    }
}
