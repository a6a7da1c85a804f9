//! CSV and TSV files.

use std::borrow::Cow;
use std::io::{self, Read};

use csv::{ByteRecord, Reader, ReaderBuilder};
use rusqlite::{Connection, Statement};

use super::column::{ColumnType, from_field};
use super::table::{Columns, RowCount, bind, unique_names};
use super::{LONGEST, SAMPLE_BYTES, SAMPLE_ROWS, malformed};
use crate::protocol::{Failure, FileTable, Format, TableFacts};
use crate::worker::engine::failed;
use crate::worker::watch::Watch;

/// How many bytes at the beginning determine the separator.
const HEAD: usize = 64 << 10;

const SEPARATORS: [u8; 4] = *b",;\t|";

pub(super) fn load(
    connection: &Connection,
    file: &FileTable,
    bytes: &mut impl Read,
    watch: &Watch,
) -> Result<TableFacts, Failure> {
    let mut head = Vec::with_capacity(HEAD);
    bytes.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(malformed)?;
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return Err(malformed("it is UTF-16; only UTF-8 is read"));
    }
    if head.starts_with(&[0xef, 0xbb, 0xbf]) {
        head.drain(..3);
    }
    let separator = if file.format == Format::Tsv { b'\t' } else { separator(&head) };
    let all = io::Cursor::new(head).chain(bytes);
    let reader = ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(256 << 10)
        .from_reader(all);
    CsvFile { file, reader, problems: Problems::default() }.load(connection, watch)
}

/// The character that divides the first line most often, outside of quotes. A comma if none does.
fn separator(head: &[u8]) -> u8 {
    let mut counts = [0_usize; 4];
    let mut quoted = false;
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted && counts.iter().any(|count| *count > 0) => break,
            byte if !quoted => {
                if let Some(index) = SEPARATORS.iter().position(|one| one == byte) {
                    counts[index] += 1;
                }
            }
            _ => {}
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    let index = counts.iter().position(|count| *count == most).unwrap_or(0);
    SEPARATORS[index]
}

struct CsvFile<'f, R> {
    file: &'f FileTable,
    reader: Reader<R>,
    problems: Problems,
}

/// What does not fit the table.
#[derive(Default)]
struct Problems {
    /// Fields of another type than their column, for each column.
    other_type: Vec<u64>,
    too_many_fields: u64,
    too_few_fields: u64,
    not_utf8: u64,
}

impl<R: Read> CsvFile<'_, R> {
    fn load(mut self, connection: &Connection, watch: &Watch) -> Result<TableFacts, Failure> {
        let mut record = ByteRecord::new();
        if !self.next(&mut record)? {
            return Err(malformed("it is empty"));
        }
        let mut sample = Vec::new();
        let names = if self.file.header {
            record.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        } else {
            sample.push(record.clone());
            vec![String::new(); record.len()]
        };
        let mut bytes = 0;
        while bytes < SAMPLE_BYTES && sample.len() < SAMPLE_ROWS && self.next(&mut record)? {
            bytes += record.as_slice().len();
            sample.push(record.clone());
        }
        let mut columns =
            Columns { types: vec![ColumnType::Unknown; names.len()], names: unique_names(names) };
        for record in &sample {
            for (kind, field) in columns.types.iter_mut().zip(record) {
                *kind = kind.with_field(&String::from_utf8_lossy(field));
            }
        }
        self.problems.other_type = vec![0; columns.names.len()];
        columns.create(connection, &self.file.name)?;
        let transaction = connection.unchecked_transaction().map_err(failed)?;
        let mut insert = columns.insert(connection, &self.file.name)?;
        let mut count = RowCount::new(watch);
        for record in sample.drain(..) {
            self.row(&record, &columns, &mut insert)?;
            count.one_more()?;
        }
        while self.next(&mut record)? {
            self.row(&record, &columns, &mut insert)?;
            count.one_more()?;
        }
        drop(insert);
        transaction.commit().map_err(failed)?;
        let notes = self.problems.notes(&columns);
        Ok(columns.facts(self.file, count.rows, notes))
    }

    fn next(&mut self, record: &mut ByteRecord) -> Result<bool, Failure> {
        self.reader.read_byte_record(record).map_err(malformed)
    }

    fn row(
        &mut self,
        record: &ByteRecord,
        columns: &Columns,
        insert: &mut Statement<'_>,
    ) -> Result<(), Failure> {
        let width = columns.names.len();
        self.problems.too_many_fields += u64::from(record.len() > width);
        self.problems.too_few_fields += u64::from(record.len() < width);
        for (index, kind) in columns.types.iter().enumerate() {
            let field = record.get(index).unwrap_or_default();
            if field.len() > LONGEST {
                return Err(malformed(format!("a field has more than {} MiB", LONGEST >> 20)));
            }
            let text = String::from_utf8_lossy(field);
            self.problems.not_utf8 += u64::from(matches!(text, Cow::Owned(_)));
            let (cell, fits) = from_field(&text, *kind);
            self.problems.other_type[index] += u64::from(!fits);
            bind(insert, index, &cell)?;
        }
        insert.raw_execute().map_err(failed)?;
        Ok(())
    }
}

impl Problems {
    fn notes(&self, columns: &Columns) -> Vec<String> {
        let mut notes = Vec::new();
        for ((name, kind), count) in columns.names.iter().zip(&columns.types).zip(&self.other_type)
        {
            if *count > 0 {
                let kind = kind.shown();
                let rest = if *count == 1 { "value is no" } else { "values are no" };
                let stays = if *count == 1 { "stays" } else { "stay" };
                notes.push(format!("column {name}: {count} {rest} {kind} and {stays} text"));
            }
        }
        let counted = [
            (
                self.too_many_fields,
                ["line has", "lines have"],
                "more fields than columns; the rest is left out",
            ),
            (
                self.too_few_fields,
                ["line has", "lines have"],
                "fewer fields than columns; the rest is NULL",
            ),
            (self.not_utf8, ["field is", "fields are"], "not UTF-8; other bytes are replaced"),
        ];
        let counted = counted.into_iter().filter(|(count, ..)| *count > 0);
        let words = |count, [one, many]: [&'static str; 2]| if count == 1 { one } else { many };
        notes.extend(
            counted.map(|(count, who, what)| format!("{count} {} {what}", words(count, who))),
        );
        notes.truncate(20);
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_is_the_one_that_divides_the_first_line() {
        for (head, expected) in [
            ("a,b,c\n1;2", b','),
            ("a;b;c\n1,5;2", b';'),
            ("\"x,y,z\"\tb\tc", b'\t'),
            ("a|b", b'|'),
            ("one\ntwo", b','),
            ("", b','),
        ] {
            assert_eq!(separator(head.as_bytes()), expected, "{head}");
        }
    }
}
