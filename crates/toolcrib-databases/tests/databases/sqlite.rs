//! Databases of SQLite.

use std::path::Path;
use std::time::Duration;

use libtest_mimic::Trial;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use toolcrib_databases::{Database, Databases, UrlSource};
use toolcrib_tool::ErrorKind;

use crate::harness::{Crib, database, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_sqlite_database_is_read_and_described", read_and_described),
        trial("a_sqlite_database_is_never_written", never_written),
        trial("a_sqlite_database_in_wal_mode_is_read", wal_mode_is_read),
        trial("the_host_chooses_among_several_databases", the_host_chooses),
        trial("the_schema_shows_the_statement_only", the_schema_shows_the_statement_only),
        trial("a_database_that_cannot_be_reached_is_unavailable", unreachable_databases),
    ]
}

fn shop(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    let connection = Connection::open(&path).expect("a database");
    connection
        .execute_batch(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount REAL);
             INSERT INTO orders VALUES (1, 'Ada', 10.5), (2, 'Bo', 20), (3, 'Ada', 1);
             CREATE VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
             CREATE VIRTUAL TABLE notes USING fts5(body);
             INSERT INTO notes VALUES ('late delivery'), ('paid');",
        )
        .expect("tables");
    format!("sqlite:{}", path.display())
}

fn crib(url: &str) -> Crib {
    Crib::new(Databases::default().with("shop", database(url)).with_timeout(Duration::from_secs(5)))
}

async fn read_and_described() {
    let folder = TempDir::new().expect("a folder");
    let crib = crib(&shop(folder.path(), "shop.db"));
    assert_eq!(
        crib.rows("SELECT * FROM totals ORDER BY 1").await,
        json!([["Ada", 11.5], ["Bo", 20.0]])
    );
    assert_eq!(
        crib.rows("SELECT body FROM notes WHERE notes MATCH 'late'").await,
        json!([["late delivery"]])
    );
    let described = crib.call("describe_database", json!({"table": "ord"})).await;
    assert_eq!(
        described.text(),
        "SQLite, 1 tables and views\ntable orders (id INTEGER, customer TEXT, amount REAL)"
    );
    let all = crib.call("describe_database", json!({})).await;
    assert!(all.text().contains("view totals (customer TEXT, total "), "{}", all.text());
    let wrong = crib.query("SELECT nope FROM orders").await;
    assert!(
        wrong.text().contains("no such column: nope") && wrong.text().contains("describe_database")
    );
    let few =
        Databases::default().with("shop", database(shop(folder.path(), "b.db"))).with_max_rows(1);
    let bounded = Crib::new(few).query("SELECT id FROM orders").await;
    let data = bounded.data().expect("there is data");
    assert_eq!((data["rows"].clone(), data["total"].clone()), (json!([[1]]), json!(3)));
}

async fn never_written() {
    let folder = TempDir::new().expect("a folder");
    let url = shop(folder.path(), "shop.db");
    let crib = crib(&url);
    let before = std::fs::read(folder.path().join("shop.db")).expect("the database");
    for sql in [
        "DELETE FROM orders",
        "INSERT INTO orders VALUES (9, 'x', 1) RETURNING id",
        "WITH x AS (SELECT 1) UPDATE orders SET amount = 0 RETURNING id",
        "DROP TABLE orders",
        "CREATE TABLE x (a)",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = OFF",
        "ATTACH 'other.db' AS o",
        "VACUUM INTO 'copy.db'",
        "SELECT 1; DELETE FROM orders",
        "SELECT load_extension('x')",
        "INSERT INTO notes (notes) VALUES ('rebuild')",
    ] {
        assert!(crib.refuses(sql).await.contains("Only SELECT queries allowed"), "{sql}");
    }
    assert_eq!(std::fs::read(folder.path().join("shop.db")).expect("the database"), before);
    let ends = crib
        .query(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c",
        )
        .await;
    assert_eq!(ends.error_kind(), Some(ErrorKind::Timeout), "{}", ends.text());
}

async fn wal_mode_is_read() {
    let folder = TempDir::new().expect("a folder");
    let url = shop(folder.path(), "shop.db");
    let writer = Connection::open(folder.path().join("shop.db")).expect("a database");
    writer
        .execute_batch("PRAGMA journal_mode = WAL; DELETE FROM orders WHERE id = 3;")
        .expect("it is written");
    let crib = crib(&url);
    assert_eq!(
        crib.rows("SELECT count(*) FROM orders").await,
        json!([[2]]),
        "while somebody has it open"
    );
    writer.execute_batch("DELETE FROM orders WHERE id = 2;").expect("it is written");
    assert_eq!(crib.rows("SELECT count(*) FROM orders").await, json!([[1]]));
    drop(writer);
    assert_eq!(crib.rows("SELECT count(*) FROM orders").await, json!([[1]]), "when nobody has");
}

async fn the_host_chooses() {
    let folder = TempDir::new().expect("a folder");
    let databases = Databases::default()
        .with("a", database(shop(folder.path(), "a.db")))
        .with("b", database(shop(folder.path(), "b.db")));
    let mut crib = Crib::new(databases.clone());
    assert_eq!(crib.query("SELECT 1").await.error_kind(), Some(ErrorKind::MissingContext));
    crib.values = crib.values.with("database", "b");
    assert!(crib.query("SELECT 1").await.is_success());
    let argument = crib.call("db_query", json!({"sql": "SELECT 1", "database": "a"})).await;
    assert!(
        !argument.is_success() || argument.data().is_some_and(|data| data["rows"] == json!([[1]]))
    );
    crib.values = crib.values.with("database", "c");
    assert_eq!(crib.query("SELECT 1").await.error_kind(), Some(ErrorKind::Execution));
    let with_default = databases.with("default", database(shop(folder.path(), "c.db")));
    assert!(Crib::new(with_default).query("SELECT 1").await.is_success());
    assert_eq!(
        Crib::new(Databases::default()).query("SELECT 1").await.error_kind(),
        Some(ErrorKind::Unavailable)
    );
}

async fn the_schema_shows_the_statement_only() {
    let crib = Crib::new(Databases::default());
    let turn = crib.executor.turn(toolcrib_core::TurnOptions::default());
    let definitions = turn.definitions();
    let query = definitions.iter().find(|own| own.name() == "db_query").expect("it is there");
    let schema = query.input_schema().to_string();
    assert!(schema.contains("\"sql\"") && !schema.contains("\"database\""), "{schema}");
    assert_eq!(query.category(), "database");
}

async fn unreachable_databases() {
    let missing = crib("sqlite:/nowhere/shop.db").query("SELECT 1").await;
    assert_eq!(missing.error_kind(), Some(ErrorKind::Unavailable), "{}", missing.text());
    let secret = Database { url: UrlSource::Secret("shop".to_owned()), allow_superuser: false };
    let unset = Crib::new(Databases::default().with("shop", secret)).query("SELECT 1").await;
    assert_eq!(unset.error_kind(), Some(ErrorKind::Unavailable));
    assert!(unset.text().contains("the secret `shop` is missing"), "{}", unset.text());
    let closed = crib("postgres://a@127.0.0.1:1/b").query("SELECT 1").await;
    assert_eq!(closed.error_kind(), Some(ErrorKind::Unavailable), "{}", closed.text());
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("text.db"), "no database, but a text that is long enough")
        .expect("a file");
    let text = crib(&format!("sqlite:{}", folder.path().join("text.db").display()))
        .query("SELECT 1")
        .await;
    assert!(text.text().contains("cannot be read"), "{}", text.text());
}
