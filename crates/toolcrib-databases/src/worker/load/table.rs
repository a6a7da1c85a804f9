//! A table that is being filled.

use rusqlite::{Connection, Statement};

use super::column::{Cell, ColumnType};
use super::{late, malformed};
use crate::protocol::{ColumnFacts, Failure, FileTable, TableFacts};
use crate::worker::engine::failed;
use crate::worker::watch::Watch;

/// How many rows pass between two looks at the clock.
const ROWS: u64 = 4_096;

/// The most columns of a table.
pub(super) const MOST_COLUMNS: usize = 2_000;

/// A name in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Names of columns that are unique whatever their case, as SQLite needs them.
pub(super) fn unique_names(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut taken = std::collections::HashSet::new();
    let mut unique = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let name: String =
            name.trim().chars().filter(|letter| !letter.is_control()).take(200).collect();
        let base = if name.is_empty() { format!("column{}", index + 1) } else { name };
        let mut own = base.clone();
        let mut number = 2;
        while !taken.insert(own.to_lowercase()) {
            own = format!("{base}_{number}");
            number += 1;
        }
        unique.push(own);
    }
    unique
}

/// The columns of a table.
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) types: Vec<ColumnType>,
}

impl Columns {
    /// Makes the empty table.
    pub(super) fn create(&self, connection: &Connection, table: &str) -> Result<(), Failure> {
        if self.names.is_empty() {
            return Err(malformed("it has no columns"));
        }
        if self.names.len() > MOST_COLUMNS {
            return Err(malformed(format!("it has more than {MOST_COLUMNS} columns")));
        }
        let columns = self.names.iter().zip(&self.types);
        let columns: Vec<String> =
            columns.map(|(name, kind)| format!("{} {}", quoted(name), kind.as_str())).collect();
        let sql = format!("CREATE TABLE {} ({})", quoted(table), columns.join(", "));
        connection.execute_batch(&sql).map_err(failed)
    }

    pub(super) fn insert<'c>(
        &self,
        connection: &'c Connection,
        table: &str,
    ) -> Result<Statement<'c>, Failure> {
        let marks = vec!["?"; self.names.len()].join(", ");
        connection
            .prepare(&format!("INSERT INTO {} VALUES ({marks})", quoted(table)))
            .map_err(failed)
    }

    pub(super) fn facts(&self, file: &FileTable, rows: u64, notes: Vec<String>) -> TableFacts {
        let columns = self.names.iter().zip(&self.types);
        let columns = columns
            .map(|(name, kind)| ColumnFacts { name: name.clone(), kind: kind.shown().to_owned() })
            .collect();
        TableFacts { name: file.name.clone(), path: file.path.clone(), rows, columns, notes }
    }
}

/// Counts rows, and looks at the clock from time to time.
pub(super) struct RowCount<'w> {
    pub(super) rows: u64,
    watch: &'w Watch,
}

impl<'w> RowCount<'w> {
    pub(super) fn new(watch: &'w Watch) -> Self {
        Self { rows: 0, watch }
    }

    pub(super) fn one_more(&mut self) -> Result<(), Failure> {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS) && self.watch.is_over() { Err(late()) } else { Ok(()) }
    }
}

/// Puts a value at its place (from 0) in a row.
pub(super) fn bind(
    statement: &mut Statement<'_>,
    index: usize,
    cell: &Cell<'_>,
) -> Result<(), Failure> {
    statement.raw_bind_parameter(index + 1, cell).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_unique_whatever_their_case() {
        let names = ["Id", " id ", "", "a\u{0}b", "ID_2", "id"].map(str::to_owned);
        assert_eq!(unique_names(names), ["Id", "id_2", "column3", "ab", "ID_2_2", "id_3"]);
    }

    #[test]
    fn a_name_cannot_end_its_quotes() {
        assert_eq!(quoted("a\" , (SELECT 1)"), "\"a\"\" , (SELECT 1)\"");
    }
}
