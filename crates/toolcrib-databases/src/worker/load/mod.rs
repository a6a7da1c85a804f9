//! Loads files into tables.

mod column;
mod csv_file;
mod json_file;
mod table;

use std::io::Read;

use rusqlite::Connection;

use super::watch::Watch;
use crate::protocol::{Failure, FailureKind, FileTable, Format, TableFacts};

/// How many bytes and rows of a file determine the types of its columns.
const SAMPLE_BYTES: usize = 8 << 20;
const SAMPLE_ROWS: usize = 20_000;

/// The longest value of a file, in bytes.
const LONGEST: usize = 8 << 20;

/// Reads a file into a new table, to its end.
pub(super) fn load(
    connection: &Connection,
    file: &FileTable,
    mut bytes: impl Read,
    watch: &Watch,
) -> Result<TableFacts, Failure> {
    let loaded = match file.format {
        Format::Csv | Format::Tsv => csv_file::load(connection, file, &mut bytes, watch),
        Format::Json | Format::JsonLines => json_file::load(connection, file, &mut bytes, watch),
    };
    loaded.map_err(|failure| Failure {
        message: format!("`{}`: {}", file.path, failure.message),
        ..failure
    })
}

/// The file is not what its name says.
fn malformed(why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::File, why.to_string())
}

fn late() -> Failure {
    Failure::new(FailureKind::Time, "the time limit was reached while the file was read")
}
