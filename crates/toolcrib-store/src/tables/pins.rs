//! Stores pins of imported definitions as rows.

use std::path::Path;

use rusqlite::Row;
use serde_json::Value;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::suspension::StoreError;
use toolcrib_mcp::upstream::{PinStore, Pins};
use toolcrib_tool::BoxFuture;

use crate::database::Database;
use crate::database::short_lived::read_once;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::tables::record::{parse, text_of};

/// Stores the definitions of upstream tools as they were when first seen. If several processes see a tool for the first
/// time, the first one's pin is stored.
#[derive(Debug, Clone)]
pub struct DatabasePins {
    database: Database,
}

/// The pinned tools of an upstream, for a listing that contacts no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedTools {
    /// The tools' local names, in order.
    pub tools: Vec<String>,
    /// When a pin was last added or changed.
    pub changed_at: Timestamp,
}

impl DatabasePins {
    /// The pins of a database.
    pub fn new(database: &Database) -> Self {
        Self { database: database.clone() }
    }

    /// Lists the pinned tools of an upstream in the database of a folder; `None` if there are none. Changes nothing,
    /// and blocks the calling thread.
    pub fn pinned_tools(dir: &Path, upstream: &str) -> Result<Option<PinnedTools>, DatabaseError> {
        let look = |tx: &Tx<'_>| {
            let sql = "SELECT tool, changed_at FROM pins WHERE upstream = ?1 ORDER BY tool";
            let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?));
            tx.all(sql, [upstream], row)
        };
        let rows = read_once(dir, look)?.unwrap_or_default();
        let changed_at = rows.iter().map(|(_, at)| *at).max();
        let tools = rows.into_iter().map(|(tool, _)| tool).collect();
        Ok(changed_at.map(|at| PinnedTools { tools, changed_at: Timestamp::from_unix_millis(at) }))
    }

    /// What an upstream said about the pinned definition of a tool, from the database of a folder; `None` if it is not
    /// stored. Changes nothing, and blocks the calling thread.
    pub fn pinned_text(
        dir: &Path,
        upstream: &str,
        tool: &str,
    ) -> Result<Option<Value>, DatabaseError> {
        let look = |tx: &Tx<'_>| {
            let sql = "SELECT says FROM pins WHERE upstream = ?1 AND tool = ?2";
            tx.one(sql, (upstream, tool), |row: &Row<'_>| row.get::<_, Option<String>>(0))
        };
        let says = read_once(dir, look)?.flatten().flatten();
        // A text that cannot be read is as good as none.
        Ok(says.and_then(|says| serde_json::from_str(&says).ok()))
    }

    fn place(&self) -> impl Fn(&str) -> String + Send + 'static {
        self.database.naming("a pin of the upstream")
    }
}

fn pins(tx: &Tx<'_>, upstream: &str, place: impl Fn(&str) -> String) -> Result<Pins, StoreError> {
    let sql = "SELECT tool, definition FROM pins WHERE upstream = ?1";
    let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let rows = tx.all(sql, [upstream], row)?.into_iter();
    rows.map(|(tool, text)| Ok((tool, parse(&text, || place(upstream))?))).collect()
}

/// A fingerprint as it is stored.
fn text(definition: Fingerprint) -> String {
    format!("\"{definition}\"")
}

impl PinStore for DatabasePins {
    fn pins<'a>(&'a self, upstream: &'a str) -> BoxFuture<'a, Result<Pins, StoreError>> {
        Box::pin(async move {
            let (place, upstream) = (self.place(), upstream.to_owned());
            self.database.read(move |tx| pins(tx, &upstream, place)).await
        })
    }

    fn pin_new<'a>(
        &'a self,
        upstream: &'a str,
        seen: &'a Pins,
    ) -> BoxFuture<'a, Result<Pins, StoreError>> {
        Box::pin(async move {
            let (place, upstream) = (self.place(), upstream.to_owned());
            let seen = seen.clone();
            let pin = move |tx: &Tx<'_>| {
                let sql = "INSERT INTO pins (upstream, tool, definition, changed_at)
                           VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
                for (tool, definition) in seen {
                    tx.execute(sql, (&upstream, tool, text(definition), tx.now()))?;
                }
                pins(tx, &upstream, place)
            };
            self.database.write(pin).await
        })
    }

    fn accept<'a>(
        &'a self,
        upstream: &'a str,
        tool: &'a str,
        definition: Fingerprint,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (upstream, tool) = (upstream.to_owned(), tool.to_owned());
            let accept = move |tx: &Tx<'_>| -> Result<(), StoreError> {
                // The text of the old definition is removed as well.
                let sql = "INSERT OR REPLACE INTO pins (upstream, tool, definition, changed_at)
                           VALUES (?1, ?2, ?3, ?4)";
                tx.execute(sql, (upstream, tool, text(definition), tx.now()))?;
                Ok(())
            };
            self.database.write(accept).await
        })
    }

    fn keep_text<'a>(
        &'a self,
        upstream: &'a str,
        tool: &'a str,
        definition: Fingerprint,
        says: &'a Value,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (upstream, tool) = (upstream.to_owned(), tool.to_owned());
            let says = text_of(says)?;
            let keep = move |tx: &Tx<'_>| -> Result<(), StoreError> {
                let sql = "UPDATE pins SET says = ?4
                           WHERE upstream = ?1 AND tool = ?2 AND definition = ?3";
                tx.execute(sql, (upstream, tool, text(definition), says))?;
                Ok(())
            };
            self.database.write(keep).await
        })
    }

    fn text<'a>(
        &'a self,
        upstream: &'a str,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, StoreError>> {
        Box::pin(async move {
            let (place, upstream, tool) = (self.place(), upstream.to_owned(), tool.to_owned());
            let look = move |tx: &Tx<'_>| -> Result<_, StoreError> {
                let sql = "SELECT says FROM pins WHERE upstream = ?1 AND tool = ?2";
                let row = |row: &Row<'_>| row.get::<_, Option<String>>(0);
                let says = tx.one(sql, (&upstream, tool), row)?.flatten();
                says.map(|says| parse(&says, || place(&upstream))).transpose()
            };
            self.database.read(look).await
        })
    }
}
