//! The owner of a row.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};

/// The digest of an identity, by which rows are found and counted. All rows of one identity have the same owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OwnerDigest([u8; 16]);

impl OwnerDigest {
    /// The owner for an identity.
    pub(crate) fn of(identity: &str) -> Self {
        let mut digest = [0; 16];
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"toolcrib owner 1\0").update(identity.as_bytes());
        hasher.finalize_xof().fill(&mut digest);
        Self(digest)
    }
}

impl ToSql for OwnerDigest {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
    }
}

impl FromSql for OwnerDigest {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 16]>::column_result(value).map(Self)
    }
}
