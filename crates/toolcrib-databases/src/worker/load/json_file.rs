//! JSON and JSONL files.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead as _, BufReader, Read};

use rusqlite::{Connection, Statement};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value as Json;

use super::column::{Cell, ColumnType, from_json};
use super::table::{Columns, MOST_COLUMNS, RowCount, bind, quoted, unique_names};
use super::{LONGEST, SAMPLE_BYTES, SAMPLE_ROWS, malformed};
use crate::protocol::{Failure, FileTable, Format, TableFacts};
use crate::worker::engine::failed;
use crate::worker::watch::Watch;

pub(super) fn load(
    connection: &Connection,
    file: &FileTable,
    bytes: &mut impl Read,
    watch: &Watch,
) -> Result<TableFacts, Failure> {
    let mut reader = BufReader::with_capacity(256 << 10, bytes);
    let bom = reader.fill_buf().map_err(malformed)?.starts_with(&[0xef, 0xbb, 0xbf]);
    if bom {
        reader.consume(3);
    }
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let mut sink = RowSink::new(connection, file, watch);
    match file.format {
        Format::JsonLines => lines(reader, &mut sink)?,
        _ => document(reader, &mut sink)?,
    }
    let facts = sink.finish()?;
    transaction.commit().map_err(failed)?;
    Ok(facts)
}

/// A value on each line.
fn lines(mut reader: impl std::io::BufRead, sink: &mut RowSink<'_>) -> Result<(), Failure> {
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let longest = LONGEST as u64 * 4;
        let read = (&mut reader).take(longest).read_until(b'\n', &mut line).map_err(malformed)?;
        if read as u64 == longest {
            return Err(malformed(format!("line {number} is too long")));
        }
        if read == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let row = serde_json::from_slice(&line)
            .map_err(|error| malformed(format!("line {number} is not JSON: {error}")))?;
        sink.push(row)?;
    }
    Ok(())
}

/// One array of rows, or an object with one.
fn document(reader: impl Read, sink: &mut RowSink<'_>) -> Result<(), Failure> {
    let mut failure = None;
    let mut reader = serde_json::Deserializer::from_reader(reader);
    let read = Document { sink, failure: &mut failure }.deserialize(&mut reader);
    let read = read.and_then(|()| reader.end());
    match (failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(malformed(format!("it is not JSON: {error}"))),
        (None, Ok(())) => Ok(()),
    }
}

struct Document<'a, 'c> {
    sink: &'a mut RowSink<'c>,
    /// Why a row was not stored.
    failure: &'a mut Option<Failure>,
}

impl Document<'_, '_> {
    fn push<E: de::Error>(&mut self, row: JsonRow) -> Result<(), E> {
        self.sink.push(row).map_err(|failure| {
            *self.failure = Some(failure);
            E::custom("a row was not stored")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array, or an object with one")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element()? {
            self.push(row)?;
        }
        Ok(())
    }

    /// The rows are the only member that is an array of objects; otherwise the object is the row.
    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut row = Vec::new();
        while let Some(member) = members.next_entry::<String, Json>()? {
            row.push(member);
        }
        let is_table = |(_, value): &(String, Json)| {
            value
                .as_array()
                .is_some_and(|rows| !rows.is_empty() && rows.iter().all(Json::is_object))
        };
        let mut tables = row.iter().enumerate().filter(|(_, member)| is_table(member));
        let (Some((index, _)), None) = (tables.next(), tables.next()) else {
            return self.push(JsonRow(row));
        };
        let (_, rows) = row.swap_remove(index);
        for row in rows.as_array().into_iter().flatten() {
            self.push(JsonRow::deserialize(row).map_err(A::Error::custom)?)?;
        }
        Ok(())
    }
}

/// The members of an object in their order; any other value is the member `value`.
struct JsonRow(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for JsonRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Row;

        fn of_value(value: impl Into<Json>) -> JsonRow {
            JsonRow(vec![("value".to_owned(), value.into())])
        }

        impl<'de> Visitor<'de> for Row {
            type Value = JsonRow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonRow, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(JsonRow(members))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonRow, A::Error> {
                let mut items: Vec<Json> = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(of_value(items))
            }

            fn visit_bool<E>(self, value: bool) -> Result<JsonRow, E> {
                Ok(of_value(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<JsonRow, E> {
                Ok(of_value(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<JsonRow, E> {
                Ok(of_value(value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<JsonRow, E> {
                Ok(of_value(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<JsonRow, E> {
                Ok(of_value(value))
            }

            fn visit_unit<E>(self) -> Result<JsonRow, E> {
                Ok(of_value(Json::Null))
            }
        }

        deserializer.deserialize_any(Row)
    }
}

/// Rows on their way into the table: the first ones are kept until the columns are known.
struct RowSink<'c> {
    connection: &'c Connection,
    file: &'c FileTable,
    sample: Vec<JsonRow>,
    sampled: usize,
    open: Option<OpenTable<'c>>,
    count: RowCount<'c>,
}

/// The table once its columns are known.
struct OpenTable<'c> {
    columns: Columns,
    places: HashMap<String, usize>,
    insert: Statement<'c>,
    /// Columns that only later rows have.
    late_columns: u64,
}

impl<'c> RowSink<'c> {
    fn new(connection: &'c Connection, file: &'c FileTable, watch: &'c Watch) -> Self {
        let count = RowCount::new(watch);
        Self { connection, file, sample: Vec::new(), sampled: 0, open: None, count }
    }

    fn push(&mut self, row: JsonRow) -> Result<(), Failure> {
        let mut size = 0;
        for (name, value) in &row.0 {
            let length = value.as_str().map_or(16, str::len);
            if length > LONGEST {
                return Err(malformed(format!("a value has more than {} MiB", LONGEST >> 20)));
            }
            size += name.len() + length;
        }
        if self.open.is_none() {
            self.sampled += size;
            self.sample.push(row);
            if self.sample.len() >= SAMPLE_ROWS || self.sampled >= SAMPLE_BYTES {
                self.open()?;
            }
            return Ok(());
        }
        self.store(row)
    }

    /// Makes the table from the sample and stores it.
    fn open(&mut self) -> Result<(), Failure> {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut names = Vec::new();
        let mut types = Vec::new();
        for (name, value) in self.sample.iter().flat_map(|row| &row.0) {
            let place = *places.entry(name.clone()).or_insert_with(|| {
                names.push(name.clone());
                types.push(ColumnType::Unknown);
                types.len() - 1
            });
            types[place] = types[place].with_json(value);
        }
        let columns = Columns { names: unique_names(names), types };
        columns.create(self.connection, &self.file.name)?;
        let insert = columns.insert(self.connection, &self.file.name)?;
        self.open = Some(OpenTable { columns, places, insert, late_columns: 0 });
        for row in std::mem::take(&mut self.sample) {
            self.store(row)?;
        }
        Ok(())
    }

    fn store(&mut self, row: JsonRow) -> Result<(), Failure> {
        let Some(open) = &mut self.open else { return Ok(()) };
        for (name, value) in &row.0 {
            if !open.places.contains_key(name) {
                open.add_column(self.connection, &self.file.name, name, value)?;
            }
        }
        let mut cells: Vec<Cell<'_>> = Vec::new();
        cells.resize_with(open.columns.names.len(), || Cell::Owned(rusqlite::types::Value::Null));
        for (name, value) in row.0 {
            if let Some(place) = open.places.get(&name) {
                cells[*place] = from_json(value);
            }
        }
        for (index, cell) in cells.iter().enumerate() {
            bind(&mut open.insert, index, cell)?;
        }
        open.insert.raw_execute().map_err(failed)?;
        self.count.one_more()
    }

    fn finish(mut self) -> Result<TableFacts, Failure> {
        if self.open.is_none() {
            self.open()?;
        }
        let Some(open) = self.open else { return Err(malformed("it has no rows")) };
        let mut notes = Vec::new();
        if open.late_columns > 0 {
            notes.push(format!("{} columns appear only after the first rows", open.late_columns));
        }
        Ok(open.columns.facts(self.file, self.count.rows, notes))
    }
}

impl<'c> OpenTable<'c> {
    fn add_column(
        &mut self,
        connection: &'c Connection,
        table: &str,
        name: &str,
        value: &Json,
    ) -> Result<(), Failure> {
        if self.columns.names.len() >= MOST_COLUMNS {
            return Err(malformed(format!("it has more than {MOST_COLUMNS} columns")));
        }
        let place = self.columns.names.len();
        let names = self.columns.names.iter().cloned().chain([name.to_owned()]);
        let Some(own) = unique_names(names).pop() else { return Ok(()) };
        // Later values may have any type.
        let kind = match ColumnType::Unknown.with_json(value) {
            ColumnType::Text | ColumnType::Json => ColumnType::Text,
            _ => ColumnType::Mixed,
        };
        let sql =
            format!("ALTER TABLE {} ADD COLUMN {} {}", quoted(table), quoted(&own), kind.as_str());
        connection.execute_batch(&sql).map_err(failed)?;
        self.columns.names.push(own);
        self.columns.types.push(kind);
        self.places.insert(name.to_owned(), place);
        self.late_columns += 1;
        self.insert = self.columns.insert(connection, table)?;
        Ok(())
    }
}
