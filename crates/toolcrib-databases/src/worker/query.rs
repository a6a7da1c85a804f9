//! Runs the query and collects as much of its result as an answer may have.

use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row};
use serde_json::Value;

use super::engine::failed;
use super::watch::Watch;
use crate::protocol::{Failure, FailureKind, QueryLimits, QueryResult};

/// How long rows are counted that do not fit into the answer.
const COUNTING: Duration = Duration::from_secs(5);

/// The longest text of a cell, in bytes.
const CELL: usize = 16 << 10;

pub(super) fn run(
    connection: &Connection,
    sql: &str,
    limits: &QueryLimits,
    watch: &Watch,
) -> Result<QueryResult, Failure> {
    let refused = |failure: Failure| match watch.refused() {
        Some(what) => Failure::new(FailureKind::Refused, format!("{what} is not allowed")),
        None => failure,
    };
    let mut statement = connection.prepare(sql).map_err(|error| refused(failed(error)))?;
    if !statement.readonly() {
        return Err(Failure::new(FailureKind::Refused, "the statement writes"));
    }
    if statement.column_count() == 0 {
        return Err(Failure::new(FailureKind::Refused, "the statement has no result"));
    }
    if statement.parameter_count() > 0 {
        let why = "the statement has parameters; write values into it";
        return Err(Failure::new(FailureKind::Sql, why));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let width = columns.len();
    let mut answer = QueryResult { columns, ..QueryResult::default() };
    let mut bytes = 0;
    let mut is_full = false;
    let mut rows = statement.raw_query();
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => {
                answer.counted = true;
                return Ok(answer);
            }
            Err(error) => {
                let late = error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted);
                // The rows are there; only the count is not.
                return if is_full && late { Ok(answer) } else { Err(refused(failed(error))) };
            }
        };
        answer.total += 1;
        if is_full {
            continue;
        }
        let (cells, size) = cells(row, width);
        bytes += size;
        let fits = bytes <= limits.bytes || answer.rows.is_empty();
        if fits && answer.rows.len() < limits.rows {
            answer.rows.push(cells);
        } else {
            is_full = true;
            watch.end_within(COUNTING);
        }
    }
}

/// The cells of a row, and about how many bytes they take.
fn cells(row: &Row<'_>, width: usize) -> (Vec<Value>, usize) {
    let mut size = 0;
    let cells = (0..width)
        .map(|index| {
            let cell = row.get_ref(index).map_or(Value::Null, cell);
            size += match &cell {
                Value::String(text) => text.len() + 4,
                _ => 12,
            };
            cell
        })
        .collect();
    (cells, size)
}

fn cell(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        // JSON has no infinity.
        ValueRef::Real(number) => serde_json::Number::from_f64(number)
            .map_or_else(|| number.to_string().into(), Value::Number),
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let end = (0..=CELL.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
            let end = end.unwrap_or(0);
            if end < text.len() {
                format!("{}… [{} bytes]", &text[..end], text.len()).into()
            } else {
                text.into()
            }
        }
        ValueRef::Blob(bytes) => {
            use std::fmt::Write as _;

            let mut text = "x'".to_owned();
            for byte in &bytes[..bytes.len().min(64)] {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\'');
            if bytes.len() > 64 {
                let _ = write!(text, "… [{} bytes]", bytes.len());
            }
            text.into()
        }
    }
}
