//! SQLite as the engine of a query: where it keeps data, its limits, and what it may do.

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use super::functions;
use super::watch::Watch;
use crate::protocol::{Failure, FailureKind, QueryLimits, TableFacts};

/// The database, in the scratch folder of the process.
const FILE: &str = "data.db";

/// How many steps of the engine pass between two looks at the clock.
const STEPS: i32 = 10_000;

/// The limits of the engine. Values, statements and expressions within them fit into the memory of the process.
const LIMITS: [(Limit, i32); 11] = [
    (Limit::SQLITE_LIMIT_LENGTH, 16 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 256 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 2_000),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 500),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 2_000),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Functions that reach out of the database or its tables. Most are not part of this build.
const FORBIDDEN: [&str; 6] =
    ["load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "fsdir"];

/// Pragmas that describe tables. They change nothing, whatever argument they get.
const DESCRIBING: [&str; 8] = [
    // Full-text tables ask for it.
    "data_version",
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
];

/// Tables that tell about the engine, besides those whose names begin with `pragma_` or `sqlite_`.
const OF_THE_ENGINE: [&str; 4] = ["bytecode", "dbstat", "fsdir", "tables_used"];

/// Tables that describe the loaded ones.
const OF_THE_SCHEMA: [&str; 4] =
    ["sqlite_schema", "sqlite_master", "pragma_table_info", "pragma_table_list"];

/// Opens an empty database for loading. What does not fit into memory is in files that end with the process.
pub(super) fn open(limits: &QueryLimits, watch: &Watch) -> Result<Connection, Failure> {
    let connection = Connection::open(FILE).map_err(failed)?;
    let pragmas = "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA locking_mode = EXCLUSIVE;";
    connection.execute_batch(pragmas).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false).map_err(failed)?;
    limited(connection, limits, watch)
}

/// Opens the file of a database to read it.
pub(super) fn open_database(
    path: &str,
    limits: &QueryLimits,
    watch: &Watch,
) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let readable = |connection: Connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let opened = match Connection::open_with_flags(path, flags).and_then(readable) {
        // In WAL mode without other users there is no index beside the file, and none can be made. Without a journal,
        // nobody is writing.
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
            ) && !std::path::Path::new(&format!("{path}-wal")).exists() =>
        {
            let escaped = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let url = format!("file:{escaped}?immutable=1");
            Connection::open_with_flags(url, flags | OpenFlags::SQLITE_OPEN_URI).and_then(readable)
        }
        opened => opened,
    };
    let connection = opened.map_err(|error| {
        let failure = failed(error);
        let message = format!("the database cannot be read: {}", failure.message);
        Failure { kind: FailureKind::Database, message, ..failure }
    })?;
    limited(connection, limits, watch)
}

/// The limits of both kinds.
fn limited(
    connection: Connection,
    limits: &QueryLimits,
    watch: &Watch,
) -> Result<Connection, Failure> {
    let mut connection = connection;
    // A quarter holds pages, the rest is for sorting, grouping and values.
    let cache = limits.memory / 4 / 1024;
    let heap = limits.memory;
    let pragmas = format!(
        "PRAGMA temp_store = FILE; PRAGMA mmap_size = 0; PRAGMA cache_size = -{cache};
         PRAGMA hard_heap_limit = {heap}; PRAGMA trusted_schema = OFF;"
    );
    connection.execute_batch(&pragmas).map_err(failed)?;
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value).map_err(failed)?;
    }
    // Quoted by `"`, a misspelt column would otherwise be a text, and the answer silently wrong.
    let switches = [
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
    ];
    for (switch, on) in switches {
        connection.set_db_config(switch, on).map_err(failed)?;
    }
    functions::add(&connection).map_err(failed)?;
    let clock = watch.clone();
    connection.progress_handler(STEPS, Some(move || clock.is_over())).map_err(failed)?;
    Ok(connection)
}

/// Tells the engine how many rows each table has, which it does not count by itself. Without that it may
/// index the large table of a join and walk through the small one.
pub(super) fn tell_sizes(connection: &Connection, tables: &[TableFacts]) -> Result<(), Failure> {
    // The first makes the table of sizes, the last reads it; of the schema itself there is nothing to analyze.
    let read_sizes = "ANALYZE sqlite_schema;";
    connection.execute_batch(read_sizes).map_err(failed)?;
    let insert = "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?1, NULL, ?2)";
    let mut insert = connection.prepare(insert).map_err(failed)?;
    for table in tables {
        insert.execute((&table.name, table.rows.to_string())).map_err(failed)?;
    }
    drop(insert);
    connection.execute_batch(read_sizes).map_err(failed)
}

/// From here on, statements can read the loaded tables and do nothing else.
pub(super) fn close_to_writes(connection: &mut Connection, watch: &Watch) -> Result<(), Failure> {
    connection.execute_batch("PRAGMA query_only = ON;").map_err(failed)?;
    let watch = watch.clone();
    let authorizer = move |context: AuthContext<'_>| {
        let Some(what) = objection(&context.action) else { return Authorization::Allow };
        watch.refuse(|| what);
        Authorization::Deny
    };
    connection.authorizer(Some(authorizer)).map_err(failed)
}

/// What is wrong with an action, or `None` if it only reads.
fn objection(action: &AuthAction<'_>) -> Option<String> {
    let name = |name: &str| name.to_lowercase();
    match action {
        AuthAction::Select | AuthAction::Recursive => None,
        // A name of a common table expression is no table, so only what is forbidden is listed.
        AuthAction::Read { table_name, .. } => {
            let name = name(table_name);
            let is_forbidden = name.starts_with("pragma_")
                || name.starts_with("sqlite_")
                || OF_THE_ENGINE.contains(&name.as_str());
            (is_forbidden && !OF_THE_SCHEMA.contains(&name.as_str()))
                .then(|| format!("reading {table_name}"))
        }
        AuthAction::Function { function_name } => FORBIDDEN
            .contains(&name(function_name).as_str())
            .then(|| format!("the function {function_name}")),
        AuthAction::Pragma { pragma_name, .. } => (!DESCRIBING
            .contains(&name(pragma_name).as_str()))
        .then(|| format!("PRAGMA {pragma_name}")),
        AuthAction::Attach { .. } => Some("ATTACH".to_owned()),
        AuthAction::Detach { .. } => Some("DETACH".to_owned()),
        other => {
            let text = format!("{other:?}");
            let word = text.split([' ', '{']).next().unwrap_or_default().to_owned();
            Some(word)
        }
    }
}

/// A failure of the engine, as one of the answer's kinds.
#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
pub(super) fn failed(error: Error) -> Failure {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => FailureKind::Time,
        Some(
            ErrorCode::OutOfMemory
            | ErrorCode::DiskFull
            | ErrorCode::TooBig
            | ErrorCode::SystemIoFailure,
        ) => FailureKind::Size,
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            FailureKind::Refused
        }
        _ => FailureKind::Sql,
    };
    let message = match &error {
        Error::MultipleStatement => "there is more than one statement".to_owned(),
        Error::SqliteFailure(_, Some(message)) => message.clone(),
        Error::SqlInputError { msg, offset, .. } if *offset >= 0 => {
            format!("{msg}, at character {offset}")
        }
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    let kind = if matches!(error, Error::MultipleStatement) { FailureKind::Refused } else { kind };
    Failure::new(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(connection: &Connection, sql: &str) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        lines.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_join_walks_through_the_large_table_and_indexes_the_small_one() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE orders (id, customer); CREATE TABLE customers (id, name);")
            .unwrap();
        let size =
            |name: &str, rows| TableFacts { name: name.to_owned(), rows, ..TableFacts::default() };
        let joins = [
            "SELECT name, count(*) FROM customers c JOIN orders o ON o.customer = c.id GROUP BY name",
            "SELECT name, count(*) FROM orders o JOIN customers c ON o.customer = c.id GROUP BY name",
        ];
        for (orders, customers, large) in [(10_000_000, 1_000, "o"), (1_000, 10_000_000, "c")] {
            connection.execute_batch("ANALYZE; DELETE FROM sqlite_stat1;").unwrap();
            tell_sizes(&connection, &[size("orders", orders), size("customers", customers)])
                .unwrap();
            for join in joins {
                let plan = plan(&connection, join);
                assert!(plan.starts_with(&format!("SCAN {large}; ")), "{join}: {plan}");
            }
        }
    }
}
