//! Stores records as JSON text in a column.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolcrib_core::suspension::StoreError;

use crate::database::transaction::Tx;
use crate::error::DatabaseError;

/// A record as JSON text.
pub(crate) fn text_of(record: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(record).map_err(|error| StoreError::Failed {
        action: "write a record as JSON".to_owned(),
        source: Box::new(error),
    })
}

/// Parses a stored record. A record that cannot be parsed stays in the database.
pub(crate) fn parse<T: DeserializeOwned>(
    text: &str,
    place: impl FnOnce() -> String,
) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt { place: place(), problem: error.to_string() })
}

/// The record that a statement returns for an id, if there is one. A record that cannot be parsed is an error, so a
/// statement that removes it is rolled back.
pub(crate) fn one<T: DeserializeOwned>(
    tx: &Tx<'_>,
    sql: &str,
    id: &str,
    place: impl FnOnce(&str) -> String,
) -> Result<Option<T>, StoreError> {
    let found = tx.one(sql, [id], |row| row.get::<_, String>(0))?;
    found.map(|text| parse(&text, || place(id))).transpose()
}

/// Parses a list of records. Those that cannot be parsed are skipped and logged.
pub(crate) fn readable<T: DeserializeOwned>(
    rows: Vec<(String, String)>,
    place: impl Fn(&str) -> String,
) -> Vec<T> {
    let read = |(id, text): (String, String)| {
        parse(&text, || place(&id))
            .inspect_err(|error| tracing::warn!(%error, "skipped an unreadable record"))
            .ok()
    };
    rows.into_iter().filter_map(read).collect()
}

/// The size of a text, as it is counted against quotas.
pub(crate) fn size(text: &str) -> Result<i64, DatabaseError> {
    i64::try_from(text.len()).map_err(|error| DatabaseError::Failed {
        place: "a record".to_owned(),
        problem: error.to_string(),
    })
}
