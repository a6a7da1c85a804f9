//! What is stored, and how much.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use rusqlite::Row;
use toolcrib_core::clock::Timestamp;

use crate::database::Database;
use crate::database::short_lived::read_once;
use crate::database::transaction::Tx;
use crate::database::worker::JobKind;
use crate::error::DatabaseError;
use crate::retention::reserve;

/// How long a report is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is stored in a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StateReport {
    /// The size of the database and its write-ahead log in bytes.
    pub bytes: u64,
    /// How much of it is free for new entries, in bytes.
    pub free_bytes: u64,
    /// How much of the disk is free, for a database on a disk.
    pub disk_free_bytes: Option<u64>,
    /// Each kind of entry.
    pub kinds: Vec<StoredKind>,
}

/// How much of one kind is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredKind {
    /// `runs`, `waiting calls`, `decisions`, `outputs`, `answers` or `tasks`.
    pub kind: &'static str,
    /// How many there are.
    pub entries: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// When the oldest was stored, if that is known.
    pub oldest: Option<Timestamp>,
}

/// A table, and its column of times.
type Table = (&'static str, Option<&'static str>);

/// The kinds, with the tables of each.
const KINDS: [(&str, &[Table]); 6] = [
    ("runs", &[("runs", Some("created_at"))]),
    ("waiting calls", &[("suspensions", Some("created_at"))]),
    (
        "decisions",
        &[
            ("settled", Some("decided_at")),
            ("resolved", Some("resolved_at")),
            ("taken", Some("taken_at")),
        ],
    ),
    ("outputs", &[("spills", Some("created_at"))]),
    ("answers", &[("answers", Some("created_at"))]),
    ("tasks", &[("tasks", None)]),
];

impl StateReport {
    /// Reads what is stored in the database of a folder; `None` if there is none. Changes nothing, and blocks the
    /// calling thread.
    pub fn read(dir: &Path) -> Result<Option<Self>, DatabaseError> {
        read_once(dir, look)
    }
}

impl Database {
    /// What is stored now. Blocks the calling thread for a moment.
    pub fn report(&self) -> Result<StateReport, DatabaseError> {
        let (sender, report) = channel();
        let read = move |tx: &Tx<'_>| {
            // Who asked may have stopped waiting.
            let _ = sender.send(look(tx));
            Ok::<_, DatabaseError>(())
        };
        let begun = self.begin(JobKind::Read, read);
        let report = begun.and_then(|_answer| report.recv_timeout(PATIENCE).ok());
        report.unwrap_or_else(|| Err(self.closed()))
    }
}

fn look(tx: &Tx<'_>) -> Result<StateReport, DatabaseError> {
    let pragma = |name: &str| -> Result<u64, DatabaseError> {
        Ok(tx.one(&format!("PRAGMA {name}"), [], |row| row.get(0))?.unwrap_or_default())
    };
    let page = pragma("page_size")?;
    let file = pragma("page_count")?.saturating_mul(page);
    let log = tx.place.log().and_then(|log| log.metadata().ok()).map_or(0, |found| found.len());
    let mut kinds = Vec::with_capacity(KINDS.len());
    for (kind, tables) in KINDS {
        let (mut entries, mut bytes, mut oldest) = (0, 0, None);
        for (table, time) in tables {
            let usage = tx.usage(table, None)?;
            entries += usage.entries;
            bytes += u64::try_from(usage.bytes).unwrap_or(u64::MAX);
            if let Some(time) = time {
                let sql = format!("SELECT min({time}) FROM {table}");
                let read = |row: &Row<'_>| row.get::<_, Option<u64>>(0);
                let first = tx.one(&sql, [], read)?.flatten();
                oldest = oldest.into_iter().chain(first).min();
            }
        }
        let oldest = oldest.map(Timestamp::from_unix_millis);
        kinds.push(StoredKind { kind, entries, bytes, oldest });
    }
    let free_bytes = pragma("freelist_count")?.saturating_mul(page);
    let disk_free_bytes = tx.place.file().and_then(|file| reserve::free_bytes(file.parent()?).ok());
    Ok(StateReport { bytes: file.saturating_add(log), free_bytes, disk_free_bytes, kinds })
}
