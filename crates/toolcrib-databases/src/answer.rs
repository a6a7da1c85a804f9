//! The result of a query as text and data.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolcrib_tool::{ToolOutput, visible};

use crate::protocol::{QueryResult, TableFacts};

/// The most characters of a cell in the text; the data has more of it.
const CELL: usize = 200;

/// The most columns of a table that a text names.
const COLUMNS: usize = 60;

/// The result as a text table with the number of rows, and as data.
pub(crate) fn output(rows: QueryResult) -> ToolOutput {
    let QueryResult { columns, rows, total, counted, tables } = rows;
    let mut text = String::new();
    if columns.is_empty() {
        text.push_str(&described(&tables));
        return ToolOutput::from(text).with_data(json!({"tables": tables}));
    }
    table(&mut text, &columns, &rows);
    let shown = rows.len() as u64;
    let at_least = if counted { "" } else { "at least " };
    let plural = if total == 1 { "row" } else { "rows" };
    let _ = write!(text, "[{at_least}{total} {plural}");
    if shown < total {
        let _ = write!(
            text,
            "; {}: aggregate, or filter with WHERE, or page with LIMIT and OFFSET",
            if shown == 1 {
                "the first is shown".to_owned()
            } else {
                format!("the first {shown} are shown")
            }
        );
    }
    text.push(']');
    for table in &tables {
        for note in &table.notes {
            let _ = write!(text, "\n[{}: {note}]", table.name);
        }
    }
    let data = json!({
        "columns": columns,
        "rows": rows,
        "total": total,
        "total_is_exact": counted,
        "complete": counted && shown == total,
        "tables": tables,
    });
    ToolOutput::from(text).with_data(data)
}

/// The tables with their columns, a table on each line.
pub(crate) fn described(tables: &[TableFacts]) -> String {
    let mut text = String::new();
    for table in tables {
        let mut columns: Vec<String> = Vec::new();
        for column in table.columns.iter().take(COLUMNS) {
            columns.push(format!("{} {}", identifier(&column.name), column.kind));
        }
        if table.columns.len() > COLUMNS {
            columns.push(format!("… {} more", table.columns.len() - COLUMNS));
        }
        let _ = writeln!(
            text,
            "{} ({}): {} {} from {}",
            identifier(&table.name),
            columns.join(", "),
            table.rows,
            if table.rows == 1 { "row" } else { "rows" },
            table.path,
        );
        for note in &table.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    visible(text.trim_end()).into_owned()
}

/// A name as it is written in SQL.
fn identifier(name: &str) -> String {
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !is_keyword(name);
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Whether SQL takes the word for something other than a name. These are the ones that files and columns are called.
pub(crate) fn is_keyword(name: &str) -> bool {
    const KEYWORDS: [&str; 28] = [
        "all", "and", "as", "between", "by", "case", "check", "default", "distinct", "from",
        "group", "having", "in", "index", "is", "join", "limit", "not", "null", "on", "or",
        "order", "select", "set", "table", "to", "values", "where",
    ];
    KEYWORDS.contains(&name.to_lowercase().as_str())
}

/// Columns in equal widths, numbers to the right.
fn table(text: &mut String, columns: &[String], rows: &[Vec<Value>]) {
    let header: Vec<String> = columns.iter().map(|name| shown(name)).collect();
    let lines: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let cells = lines.iter().filter_map(|line| line.get(index));
            cells.chain([name]).map(|cell| cell.chars().count()).max().unwrap_or(0).min(60)
        })
        .collect();
    let is_number = |index: usize| {
        rows.iter()
            .all(|row| row.get(index).is_none_or(|value| value.is_number() || value.is_null()))
    };
    let mut line = |cells: &[String]| {
        let mut padded = String::new();
        for (index, cell) in cells.iter().enumerate() {
            let width = widths.get(index).copied().unwrap_or(0);
            if index > 0 {
                padded.push_str(" | ");
            }
            let _ = if is_number(index) {
                write!(padded, "{cell:>width$}")
            } else {
                write!(padded, "{cell:<width$}")
            };
        }
        text.push_str(padded.trim_end());
        text.push('\n');
    };
    line(&header);
    line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>());
    for cells in &lines {
        line(cells);
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => shown(text),
        other => other.to_string(),
    }
}

/// A text on one line, shortened.
fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(CELL).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    let line = short.replace('\r', "\\r").replace('\n', "\\n").replace('\t', "\\t");
    visible(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_a_table_with_its_number_of_rows() {
        let rows = QueryResult {
            columns: vec!["region".into(), "n".into()],
            rows: vec![vec!["north\nwest".into(), 5.into()], vec![Value::Null, 1200.into()]],
            total: 7,
            counted: false,
            tables: Vec::new(),
        };
        let output = output(rows);
        let text = output.text();
        let expected = "region      |    n\n----------- | ----\nnorth\\nwest |    5\nNULL        | 1200\n[at least 7 rows; ";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(output.data().unwrap()["complete"], json!(false));
    }

    #[test]
    fn names_that_sql_reads_otherwise_are_quoted() {
        for (name, expected) in [
            ("a_1", "a_1"),
            ("1a", "\"1a\""),
            ("a b", "\"a b\""),
            ("Order", "\"Order\""),
            ("a\"b", "\"a\"\"b\""),
        ] {
            assert_eq!(identifier(name), expected);
        }
    }
}
