//! What the server and the process of a query tell each other.
//!
//! The server writes the request as one line of JSON, then the bytes of each file as chunks: their length in four
//! bytes (little endian), then the bytes; a chunk without bytes ends a file. The process writes one [`Answer`] as JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of both sides: the running program may have been replaced on disk.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The longest chunk of a file, in bytes.
pub(crate) const CHUNK: usize = 1 << 20;

/// A query.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) version: String,
    /// The query; without one, the tables are described.
    pub(crate) sql: Option<String>,
    pub(crate) limits: QueryLimits,
    /// The tables, in the order in which their bytes follow.
    pub(crate) files: Vec<FileTable>,
    /// The file of a SQLite database to query in place of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) database: Option<String>,
}

/// The limits of a query and its answer.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct QueryLimits {
    /// The most rows of the answer.
    pub(crate) rows: usize,
    /// The most bytes of the answer's rows.
    pub(crate) bytes: usize,
    /// The time for everything.
    pub(crate) time: Duration,
    /// The memory that the database engine may use, in bytes.
    pub(crate) memory: u64,
}

/// A table that a file becomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileTable {
    pub(crate) name: String,
    /// The path as the model wrote it, for messages.
    pub(crate) path: String,
    pub(crate) format: Format,
    /// Whether the first line of a CSV file has the names of the columns.
    pub(crate) header: bool,
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Format {
    /// Fields separated by a character that is detected.
    Csv,
    /// Fields separated by tabs.
    Tsv,
    /// One array, or an object that has one.
    Json,
    /// A JSON value on each line.
    JsonLines,
}

/// What the process answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Result(QueryResult),
    Failed(Failure),
}

/// The result of a query.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueryResult {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
    /// How many rows the query has; at least that many if `counted` is false.
    pub(crate) total: u64,
    pub(crate) counted: bool,
    pub(crate) tables: Vec<TableFacts>,
}

/// A loaded table.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TableFacts {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) columns: Vec<ColumnFacts>,
    /// What the reader of the file had to decide.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) notes: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ColumnFacts {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// Why there is no result.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) tables: Vec<TableFacts>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FailureKind {
    /// The query does more than read.
    Refused,
    /// The query is wrong.
    Sql,
    /// A file cannot be read as what it is named.
    File,
    /// The database cannot be opened.
    Database,
    /// The query ran out of time.
    Time,
    /// The query ran out of memory or disk space, or a value is too long.
    Size,
    /// The two sides do not fit together.
    Version,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), tables: Vec::new() }
    }
}
