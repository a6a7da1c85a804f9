//! `db_query` and `describe_database`: read-only SQL over configured databases.

mod postgres;
mod settings;
mod sqlite;

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_macros::tool;
use toolcrib_tool::{CallContext, ToolError, ToolOutput, visible};

use crate::answer::output;
use crate::protocol::{QueryLimits, QueryResult};
use settings::Address;

pub use settings::{Database, Databases, SecretLookup, UrlSource};

/// The memory of the process that queries a SQLite database.
const MEMORY: u64 = 256 << 20;

/// The most rows of a description: a row for each column.
const COLUMNS: usize = 5_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryArgs {
    /// One SELECT statement in the dialect of the database.
    #[schemars(length(min = 1, max = 100_000))]
    sql: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DescribeArgs {
    /// Only tables and views whose names contain this text. Default: all.
    #[schemars(length(min = 1, max = 200))]
    table: Option<String>,
}

/// Read from the configured database with SQL: one SELECT statement. Only SELECT queries allowed. `describe_database`
/// shows the tables and the dialect. Aggregate and filter in the statement: answers are bounded.
#[tool(
    category = "database",
    tags("sql", "database", "postgresql", "sqlite"),
    read_only,
    destructive = false,
    open_world = false,
    timeout = "10m",
    wind_down = "1500ms",
    max_concurrent = 8,
    examples(r#"{"sql": "SELECT status, count(*) FROM orders GROUP BY status"}"#)
)]
async fn db_query(
    args: QueryArgs,
    #[service] databases: Option<Arc<Databases>>,
    #[service] secrets: Option<Arc<SecretLookup>>,
    #[context("database")] database: Option<String>,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let (databases, own) = chosen(databases, database.as_deref())?;
    let limits = limits(&databases);
    let result = match address(&own, secrets.as_deref())? {
        Address::Sqlite(path) => sqlite::query(&path, args.sql, limits, cx).await?,
        Address::Postgres(url) => {
            let access = postgres::Access { url, allow_superuser: own.allow_superuser };
            postgres::query(&access, &args.sql, limits, cx).await?
        }
    };
    Ok(output(result))
}

/// Show the tables and views of the configured database with their columns and types, and the dialect of its SQL.
#[tool(
    category = "database",
    tags("sql", "database", "schema"),
    read_only,
    destructive = false,
    open_world = false,
    timeout = "10m",
    wind_down = "1500ms",
    max_concurrent = 8,
    empty_as_absent("table"),
    examples(r#"{}"#, r#"{"table": "order"}"#)
)]
async fn describe_database(
    args: DescribeArgs,
    #[service] databases: Option<Arc<Databases>>,
    #[service] secrets: Option<Arc<SecretLookup>>,
    #[context("database")] database: Option<String>,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let (databases, own) = chosen(databases, database.as_deref())?;
    let limits = QueryLimits { rows: COLUMNS, bytes: 1 << 20, ..limits(&databases) };
    let (dialect, result) = match address(&own, secrets.as_deref())? {
        Address::Sqlite(path) => {
            ("SQLite", sqlite::query(&path, sqlite::COLUMNS.to_owned(), limits, cx).await?)
        }
        Address::Postgres(url) => {
            let access = postgres::Access { url, allow_superuser: own.allow_superuser };
            ("PostgreSQL", postgres::query(&access, postgres::COLUMNS, limits, cx).await?)
        }
    };
    Ok(description(dialect, &result, args.table.as_deref()))
}

fn limits(databases: &Databases) -> QueryLimits {
    QueryLimits {
        rows: databases.max_rows,
        bytes: databases.max_bytes,
        time: databases.timeout,
        memory: MEMORY,
    }
}

/// The database of the call: the one that the host names in the context, the only one, or the one called `default`.
fn chosen(
    databases: Option<Arc<Databases>>,
    name: Option<&str>,
) -> Result<(Arc<Databases>, Database), ToolError> {
    let databases = databases.unwrap_or_default();
    let known = &databases.databases;
    let own = match (name, known.len()) {
        (Some(name), _) => known.get(name),
        (None, 1) => known.values().next(),
        (None, _) => known.get("default"),
    };
    let Some(own) = own.cloned() else {
        return Err(match name {
            _ if known.is_empty() => ToolError::unavailable("no database is configured"),
            Some(name) => ToolError::execution(format!("there is no database {name:?}"))
                .with_hint("The host has named it. Tell the user that it has to be configured."),
            None => ToolError::new(
                toolcrib_tool::ErrorKind::MissingContext,
                "the host has not supplied `database`, which this tool takes from the context",
            )
            .with_hint(
                "It cannot be given as an argument. Tell the user that the host must set it.",
            ),
        });
    };
    Ok((databases, own))
}

fn address(database: &Database, secrets: Option<&SecretLookup>) -> Result<Address, ToolError> {
    database.address(secrets).map_err(|why| {
        ToolError::unavailable(format!("the database is not reachable: {why}"))
            .with_hint("Tell the user: the server's settings have to be corrected.")
    })
}

/// A table's name and kind, and the names and types of its columns.
type TableOutline = (String, String, Vec<(String, String)>);

/// Tables with their columns, from rows of table, kind, column and type.
fn description(dialect: &str, result: &QueryResult, wanted: Option<&str>) -> ToolOutput {
    let wanted = wanted.map(str::to_lowercase);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut tables: Vec<TableOutline> = Vec::new();
    for row in &result.rows {
        let (name, kind) = (text(row.first()), text(row.get(1)));
        if wanted.as_ref().is_some_and(|wanted| !name.to_lowercase().contains(wanted)) {
            continue;
        }
        if tables.last().is_none_or(|(last, ..)| *last != name) {
            tables.push((name, kind, Vec::new()));
        }
        if let Some((.., columns)) = tables.last_mut() {
            columns.push((text(row.get(2)), text(row.get(3))));
        }
    }
    let mut shown = format!("{dialect}, {} tables and views", tables.len());
    if !result.counted || result.total > result.rows.len() as u64 {
        shown.push_str(" among the first columns; name a part of a table's name for others");
    }
    for (name, kind, columns) in &tables {
        let columns: Vec<String> =
            columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        let _ = write!(shown, "\n{kind} {name} ({})", columns.join(", "));
    }
    let data: Vec<Value> = tables
        .into_iter()
        .map(|(name, kind, columns)| {
            let columns: Vec<Value> = columns
                .into_iter()
                .map(|(name, kind)| json!({"name": name, "type": kind}))
                .collect();
            json!({"name": name, "kind": kind, "columns": columns})
        })
        .collect();
    ToolOutput::from(visible(&shown).into_owned())
        .with_data(json!({"dialect": dialect, "tables": data}))
}
