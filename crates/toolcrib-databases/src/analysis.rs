//! `data_analysis`: SQL over data files of the workspace.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_builtins::{Projects, path_error};
use toolcrib_macros::tool;
use toolcrib_sandbox::OpenFile;
use toolcrib_tool::{CallContext, ErrorKind, ToolError, ToolOutput};

use crate::AnalysisSettings;
use crate::answer::{is_keyword, output};
use crate::jailed::{JailedQuery, available};
use crate::protocol::{FileTable, Format, QueryLimits, Request, VERSION};

/// How many rows an answer has if the call does not say.
const ROWS: usize = 100;

/// The most bytes of an answer's rows.
const ANSWER_BYTES: usize = 512 << 10;

/// Disk space that a query may use beyond that for its files.
const DISK: u64 = 1 << 30;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DataAnalysisArgs {
    /// The files, from the project's folder: `.csv`, `.tsv`, `.json` (an array of objects) or `.jsonl`. Each becomes a
    /// table with the name of the file without its ending: `data/sales-2024.csv` is `sales_2024`.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 4096)))]
    paths: Vec<String>,
    /// One SELECT statement in SQLite's dialect. Without it, the answer describes the tables: columns, types, numbers
    /// of rows.
    #[schemars(length(min = 1, max = 100_000))]
    sql: Option<String>,
    /// How many rows to return at most. Default 100. The number of all rows is always told.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
    /// Whether the first line of CSV and TSV files has the names of the columns; if not, they are column1, column2, ….
    /// Default true.
    header: Option<bool>,
}

/// Query CSV, TSV, JSON and JSONL files of the project with SQL: filter, join, group, aggregate. Read-only. Call it
/// without `sql` to see tables, columns and types. Types come from the values: INTEGER, REAL, BOOLEAN (1 or 0), TEXT;
/// empty CSV fields are NULL, nested JSON is read with `->` and `->>`, dates are texts for `date()` and `strftime()`. Beyond
/// SQLite's functions there are median, stddev, variance, sqrt, pow, exp, ln, log10, log2, floor and ceil.
#[tool(
    category = "data",
    tags("sql", "csv", "json", "analysis"),
    read_only,
    destructive = false,
    idempotent,
    open_world = false,
    reads("files"),
    timeout = "10m",
    wind_down = "1500ms",
    max_concurrent = 4,
    available = available,
    empty_as_absent("sql"),
    examples(
        r#"{"paths": ["sales.csv"]}"#,
        r#"{"paths": ["sales.csv"], "sql": "SELECT region, sum(amount) AS total FROM sales GROUP BY region ORDER BY total DESC"}"#,
        r#"{"paths": ["data/orders.jsonl", "data/customers.csv"], "sql": "SELECT c.name, count(*) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name", "limit": 20}"#
    )
)]
async fn data_analysis(
    args: DataAnalysisArgs,
    #[service] settings: Option<Arc<AnalysisSettings>>,
    #[service] projects: Option<Arc<Projects>>,
    #[context("project_id")] project_id: Option<String>,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let settings = settings.unwrap_or_default();
    let none = || ToolError::unavailable("no folder is configured for it to work in");
    let projects = projects.ok_or_else(none)?;
    let tables = tables(&args)?;
    let files = {
        let (projects, paths, most) =
            (Arc::clone(&projects), args.paths.clone(), settings.max_input);
        let opened = tokio::task::spawn_blocking(move || {
            open(&projects, project_id.as_deref(), &paths, most)
        });
        opened.await.map_err(|error| {
            ToolError::internal("the files cannot be opened").with_source(error)
        })??
    };
    let size: u64 = files.iter().map(OpenFile::size).sum();
    let request = Request {
        version: VERSION.to_owned(),
        sql: args.sql,
        limits: QueryLimits {
            rows: args.limit.unwrap_or(ROWS),
            bytes: ANSWER_BYTES,
            time: settings.timeout,
            memory: settings.memory.max(64 << 20),
        },
        files: tables,
        database: None,
    };
    let disk = size.saturating_mul(2).saturating_add(DISK);
    let query = JailedQuery { request, files, readable: Vec::new(), disk };
    query.run(Some(projects.control_plane()), cx).await.map(output)
}

/// Opens the files as the file tools do.
fn open(
    projects: &Projects,
    project_id: Option<&str>,
    paths: &[String],
    most: u64,
) -> Result<Vec<OpenFile>, ToolError> {
    let workspace = projects.workspace(project_id)?;
    let mut total = 0_u64;
    let mut files = Vec::new();
    for path in paths {
        let file = workspace.open_file(path).map_err(|error| path_error(path, error))?;
        total = total.saturating_add(file.size());
        if total > most {
            let why = format!("the files have more than {} MiB together", most >> 20);
            return Err(ToolError::execution(why)
                .with_hint("Query fewer files. The operator's key is data_analysis.max_input."));
        }
        files.push(file);
    }
    Ok(files)
}

/// The table of each path.
fn tables(args: &DataAnalysisArgs) -> Result<Vec<FileTable>, ToolError> {
    let mut taken = HashSet::new();
    let mut tables = Vec::new();
    for path in &args.paths {
        let (stem, format) = format(path).ok_or_else(|| {
            ToolError::new(ErrorKind::InvalidArgs, format!("`{path}` is no data file by its name"))
                .with_hint(
                    "Files that end with .csv, .tsv, .json, .jsonl or .ndjson can be queried.",
                )
        })?;
        let name = unique(&table_name(stem), &mut taken);
        let header = args.header.unwrap_or(true);
        tables.push(FileTable { name, path: path.clone(), format, header });
    }
    Ok(tables)
}

/// The name of the file without its ending, and its format.
fn format(path: &str) -> Option<(&str, Format)> {
    let name = path.rsplit('/').next()?;
    let (stem, ending) = name.rsplit_once('.')?;
    let format = match ending.to_ascii_lowercase().as_str() {
        "csv" => Format::Csv,
        "tsv" | "tab" => Format::Tsv,
        "json" => Format::Json,
        "jsonl" | "ndjson" => Format::JsonLines,
        _ => return None,
    };
    Some((stem, format))
}

/// A name that needs no quotes in SQL.
fn table_name(stem: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = stem.chars().take(60).map(letter).collect();
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic());
    if !starts_well || is_keyword(&name) || name.to_lowercase().starts_with("sqlite_") {
        return format!("t_{name}");
    }
    name
}

fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let mut own = name.to_owned();
    let mut number = 2;
    while !taken.insert(own.to_lowercase()) {
        own = format!("{name}_{number}");
        number += 1;
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_names_of_their_files() {
        let paths = [
            "data/sales-2024.csv",
            "Sales_2024.CSV",
            "order.json",
            "2024.tsv",
            "ä.jsonl",
            "sqlite_master.csv",
        ];
        let args = DataAnalysisArgs {
            paths: paths.map(str::to_owned).into(),
            sql: None,
            limit: None,
            header: None,
        };
        let names: Vec<_> = tables(&args).unwrap().into_iter().map(|table| table.name).collect();
        assert_eq!(
            names,
            ["sales_2024", "Sales_2024_2", "t_order", "t_2024", "t__", "t_sqlite_master"]
        );
        for path in ["notes.txt", "csv", "a.csv/b", ".json.gz"] {
            let args =
                DataAnalysisArgs { paths: vec![path.into()], sql: None, limit: None, header: None };
            assert_eq!(tables(&args).unwrap_err().kind(), ErrorKind::InvalidArgs, "{path}");
        }
    }
}
