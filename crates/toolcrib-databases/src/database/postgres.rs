//! PostgreSQL: one statement in a read-only transaction.

use std::time::Duration;

use futures_util::{StreamExt as _, pin_mut};
use serde_json::Value;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{
    CancelToken, Client, Config, Error, NoTls, SimpleQueryMessage, SimpleQueryRow,
};
use toolcrib_tool::{CallContext, ErrorKind, ToolError};

use crate::protocol::{QueryLimits, QueryResult};

/// Table, kind, column and type of all columns that the role may see.
pub(super) const COLUMNS: &str = "SELECT
        CASE WHEN n.nspname = ANY (current_schemas(false)) THEN c.relname ELSE n.nspname || '.' || c.relname END,
        CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' ELSE 'table' END,
        a.attname, format_type(a.atttypid, a.atttypmod)
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
       AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%'
       AND has_table_privilege(c.oid, 'SELECT')
     ORDER BY 1, a.attnum";

/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);

/// How much longer than the server's own limit an answer may take.
const GRACE: Duration = Duration::from_secs(2);

/// The longest text of a cell, in characters.
const CELL: usize = 16 << 10;

/// How a database is reached.
pub(super) struct Access {
    pub(super) url: String,
    pub(super) allow_superuser: bool,
}

pub(super) async fn query(
    access: &Access,
    sql: &str,
    limits: QueryLimits,
    cx: &CallContext,
) -> Result<QueryResult, ToolError> {
    let config = config(&access.url, limits.time)?;
    let connecting = timeout(CONNECTING, config.connect(NoTls));
    let connected = tokio::select! {
        connected = connecting => connected,
        () = cx.cancelled() => return Err(cancelled()),
    };
    let (client, connection) = connected
        .map_err(|_| unreachable("it did not answer in 10 s"))?
        .map_err(|error| unreachable(&told(&error)).with_source(error))?;
    // It ends when the client is dropped.
    let driver = AbortOnDrop(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let running = RunningQuery(Some(client.cancel_token()));
    let work = read(&client, sql, limits, access.allow_superuser);
    let outcome = tokio::select! {
        outcome = work => Some(outcome),
        () = tokio::time::sleep(limits.time.saturating_add(GRACE)) => None,
        () = cx.cancelled() => None,
    };
    let is_over = matches!(outcome, Some(Ok(QueryResult { counted: true, .. })));
    running.end(is_over).await;
    drop(driver);
    match outcome {
        Some(outcome) => outcome.map_err(|failure| failure.explained(limits.time)),
        None if cx.is_cancelled()
            && cx.deadline().is_none_or(|end| std::time::Instant::now() < end) =>
        {
            Err(cancelled())
        }
        None => Err(timed_out(limits.time)),
    }
}

/// A query that the server may be working on. However the call ends, the server is told to end it.
struct RunningQuery(Option<CancelToken>);

impl RunningQuery {
    /// Cancels the query unless it is over: rows may still be on their way.
    async fn end(mut self, is_over: bool) {
        let token = self.0.take().filter(|_| !is_over);
        if let Some(token) = token {
            let _ = timeout(GRACE, token.cancel_query(NoTls)).await;
        }
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        if let (Some(token), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            drop(runtime.spawn(async move { timeout(GRACE, token.cancel_query(NoTls)).await }));
        }
    }
}

/// Ends a task with its owner.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The settings of a connection that can only read.
fn config(url: &str, limit: Duration) -> Result<Config, ToolError> {
    let unusable = |why: &str| {
        ToolError::unavailable(format!("the URL of the database cannot be used: {why}"))
            .with_hint("Tell the user: `databases` of the server's settings names it.")
    };
    let mut config: Config = url.parse().map_err(|_| unusable("it is not a URL of PostgreSQL"))?;
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        Host::Unix(_) => true,
    };
    match config.get_ssl_mode() {
        SslMode::Disable => {}
        SslMode::Prefer if config.get_hosts().iter().all(is_local) => {}
        _ => {
            return Err(unusable(
                "connections are not encrypted; for a host other than this one, write `?sslmode=disable` if its \
                 network is trusted, or use a tunnel",
            ));
        }
    }
    let milliseconds = limit.as_millis().min(86_400_000);
    let own = config.get_options().unwrap_or_default();
    let options = format!(
        "{own} -c default_transaction_read_only=on -c statement_timeout={milliseconds} \
         -c idle_in_transaction_session_timeout={milliseconds} -c lock_timeout={milliseconds}"
    );
    config.options(options.trim()).application_name("toolcrib").connect_timeout(CONNECTING);
    config.ssl_mode(SslMode::Disable);
    Ok(config)
}

/// Why a statement has no result.
enum ReadFailure {
    Refused(String),
    Database(Error),
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

async fn read(
    client: &Client,
    sql: &str,
    limits: QueryLimits,
    allow_superuser: bool,
) -> Result<QueryResult, ReadFailure> {
    client.batch_execute("START TRANSACTION READ ONLY").await?;
    // It takes a snapshot: from here on, PostgreSQL refuses to make the transaction one that writes.
    let superuser = client.query_one("SELECT current_setting('is_superuser')", &[]).await?;
    if superuser.try_get::<_, &str>(0)? == "on" && !allow_superuser {
        let why = "the role of the database is a superuser, who can read files of its server. Tell the user to \
                   configure another role, or `allow_superuser: true`";
        return Err(ReadFailure::Refused(why.to_owned()));
    }
    // The protocol's Parse takes exactly one statement. What has no columns (COPY, DO, SET, COMMIT, …) is not run.
    let statement = client.prepare(sql).await?;
    if !statement.params().is_empty() {
        return Err(ReadFailure::Refused(
            "the statement has parameters; write values into it".to_owned(),
        ));
    }
    if statement.columns().is_empty() {
        return Err(ReadFailure::Refused("Only SELECT queries allowed".to_owned()));
    }
    let types: Vec<Type> =
        statement.columns().iter().map(|column| column.type_().clone()).collect();
    let columns = statement.columns().iter().map(|column| column.name().to_owned()).collect();
    let mut result = QueryResult { columns, ..QueryResult::default() };
    let mut bytes = 0;
    // As text, in which every type can be shown.
    let rows = client.simple_query_raw(sql).await?;
    pin_mut!(rows);
    while let Some(message) = rows.next().await {
        let SimpleQueryMessage::Row(row) = message? else { continue };
        result.total += 1;
        if result.rows.len() >= limits.rows || (bytes > limits.bytes && !result.rows.is_empty()) {
            return Ok(result);
        }
        bytes += (0..row.len()).map(|index| row.get(index).map_or(4, str::len) + 4).sum::<usize>();
        result.rows.push(cells(&row, &types));
    }
    result.counted = true;
    Ok(result)
}

fn cells(row: &SimpleQueryRow, types: &[Type]) -> Vec<Value> {
    let cell =
        |(index, kind): (usize, &Type)| row.get(index).map_or(Value::Null, |text| cell(text, kind));
    types.iter().enumerate().map(cell).collect()
}

/// A value by its type; types that JSON lacks stay text.
fn cell(text: &str, kind: &Type) -> Value {
    let number = || serde_json::from_str::<serde_json::Number>(text).ok().map(Value::Number);
    let value = match *kind {
        Type::BOOL => Some(Value::Bool(text == "t")),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::FLOAT4 | Type::FLOAT8 => number(),
        // Exact decimals stay exact.
        Type::NUMERIC => text.parse::<i64>().ok().map(Value::from),
        Type::JSON | Type::JSONB if text.len() <= CELL => serde_json::from_str(text).ok(),
        _ => None,
    };
    value.unwrap_or_else(|| {
        let mut short: String = text.chars().take(CELL).collect();
        if short.len() < text.len() {
            short.push_str("… [");
            short.push_str(&text.len().to_string());
            short.push_str(" bytes]");
        }
        short.into()
    })
}

impl ReadFailure {
    fn explained(self, limit: Duration) -> ToolError {
        let error = match self {
            Self::Refused(why) => {
                return ToolError::denied(why)
                    .with_hint("`describe_database` shows the tables that can be read.");
            }
            Self::Database(error) => error,
        };
        match error.code() {
            Some(&SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::ACTIVE_SQL_TRANSACTION) => {
                ToolError::denied(format!("Only SELECT queries allowed: {}", told(&error)))
                    .with_hint("Write one SELECT statement.")
            }
            Some(&SqlState::QUERY_CANCELED) => timed_out(limit),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => ToolError::denied(told(&error)).with_hint(
                "The role of the server may not read that. Tell the user if the task needs it.",
            ),
            Some(&SqlState::SYNTAX_ERROR) if told(&error).contains("multiple commands") => {
                ToolError::denied("Only SELECT queries allowed: there is more than one statement")
                    .with_hint("Write one SELECT statement.")
            }
            Some(_) => ToolError::execution(format!("the query is wrong: {}", told(&error)))
                .with_hint("`describe_database` shows tables, columns and types."),
            None => unreachable(&told(&error)),
        }
        .with_source(error)
    }
}

/// The database's own words, with its hint and the position.
fn told(error: &Error) -> String {
    let Some(own) = error.as_db_error() else { return error.to_string() };
    let mut text = own.message().to_owned();
    if let Some(tokio_postgres::error::ErrorPosition::Original(at)) = own.position() {
        text.push_str(", at character ");
        text.push_str(&at.to_string());
    }
    for more in [own.detail(), own.hint()].into_iter().flatten() {
        text.push_str(". ");
        text.push_str(more);
    }
    text
}

fn unreachable(why: &str) -> ToolError {
    ToolError::unavailable(format!("the database is not reachable: {why}")).with_retryable(true)
}

fn cancelled() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "the query was ended with the call")
}

fn timed_out(limit: Duration) -> ToolError {
    let why =
        format!("the query took longer than its limit of {} s and was ended", limit.as_secs_f64());
    ToolError::new(ErrorKind::Timeout, why)
        .with_hint("Filter on columns with an index, or read fewer rows.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_unencrypted_only_where_that_is_meant() {
        let limit = Duration::from_secs(1);
        for fine in [
            "postgres://a@localhost/b",
            "postgres://a@127.0.0.1:1/b",
            "postgres://a@db.example/b?sslmode=disable",
        ] {
            let config = config(fine, limit).expect(fine);
            let options = config.get_options().unwrap_or_default();
            assert!(
                options.contains("default_transaction_read_only=on")
                    && options.contains("statement_timeout=1000")
            );
        }
        for refused in [
            "postgres://a@db.example/b",
            "postgres://a@localhost/b?sslmode=require",
            "postgres://a@[",
            "x",
        ] {
            assert!(config(refused, limit).is_err(), "{refused}");
        }
    }

    #[test]
    fn values_keep_their_type_and_their_digits() {
        assert_eq!(cell("12", &Type::INT8), Value::from(12));
        assert_eq!(cell("NaN", &Type::FLOAT8), Value::from("NaN"));
        assert_eq!(cell("1.50", &Type::NUMERIC), Value::from("1.50"));
        assert_eq!(cell("t", &Type::BOOL), Value::from(true));
        assert_eq!(cell(r#"{"a": [1]}"#, &Type::JSONB), serde_json::json!({"a": [1]}));
        assert_eq!(cell("2024-01-02", &Type::DATE), Value::from("2024-01-02"));
    }
}
