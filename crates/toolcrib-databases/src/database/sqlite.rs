//! SQLite databases, opened read-only by a process of their own.

use std::path::{Path, PathBuf};

use toolcrib_tool::{CallContext, ToolError};

use crate::jailed::{JailedQuery, available};
use crate::protocol::{QueryLimits, QueryResult, Request, VERSION};

/// Table, kind, column and type of all columns.
pub(super) const COLUMNS: &str = "SELECT s.name, s.type, c.name, c.type FROM sqlite_schema AS s
     JOIN pragma_table_info(s.name) AS c
     WHERE s.type IN ('table', 'view') AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
     ORDER BY s.name, c.cid";

/// Disk space for sorting.
const DISK: u64 = 1 << 30;

pub(super) async fn query(
    path: &Path,
    sql: String,
    limits: QueryLimits,
    cx: &CallContext,
) -> Result<QueryResult, ToolError> {
    available().map_err(ToolError::unavailable)?;
    let unreachable = |error: std::io::Error| {
        ToolError::unavailable("the file of the database cannot be opened")
            .with_hint("Tell the user: `databases` of the server's settings names it.")
            .with_source(error)
    };
    let path: PathBuf = path.canonicalize().map_err(unreachable)?;
    let database = path
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| ToolError::unavailable("the path of the database is not UTF-8"))?;
    let request = Request {
        version: VERSION.to_owned(),
        sql: Some(sql),
        limits,
        files: Vec::new(),
        database: Some(database),
    };
    // The journal and the index of a database in WAL mode are beside it.
    let beside = ["-wal", "-shm", "-journal"].map(|ending| {
        let mut name = path.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    });
    let readable = std::iter::once(path).chain(beside).collect();
    JailedQuery { request, files: Vec::new(), readable, disk: DISK }.run(None, cx).await
}
