//! A real PostgreSQL server.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;
use toolcrib_databases::{Database, Databases, UrlSource};
use toolcrib_tool::ErrorKind;

use crate::harness::{Crib, database, trial};
use crate::server::Server;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("a_postgresql_database_is_read_and_never_written", read_and_never_written)]
}

const TABLES: &str = "
    CREATE ROLE reader LOGIN; CREATE ROLE writer LOGIN;
    CREATE SCHEMA sales AUTHORIZATION writer; GRANT CREATE ON SCHEMA public TO writer, reader;
    CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount numeric(10,2), paid boolean, at timestamptz,
                         tags text[], extra jsonb);
    INSERT INTO orders VALUES (1, 'Ada', 10.50, true, '2024-01-02 03:04:05+00', '{a,b}', '{\"k\": [1]}'),
                              (2, NULL, 20, false, NULL, NULL, NULL);
    CREATE TABLE secret (word text); INSERT INTO secret VALUES ('SESAME');
    CREATE SEQUENCE numbers;
    GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO reader; GRANT USAGE ON SEQUENCE numbers TO reader;";

/// What the role could do outside of a read-only transaction, or what does not read.
const WRITES: [&str; 21] = [
    "DELETE FROM orders",
    "INSERT INTO orders (id) VALUES (9) RETURNING id",
    "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "CREATE TABLE public.mine (a int)",
    "CREATE TABLE public.mine AS SELECT 1",
    "SELECT 1 AS a INTO public.mine",
    "TRUNCATE orders",
    "SELECT nextval('numbers')",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "COMMIT",
    "ROLLBACK",
    "BEGIN READ WRITE",
    "SELECT 1; DELETE FROM orders",
    "COMMIT; DELETE FROM orders",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "COPY orders TO STDOUT",
    "SELECT * FROM orders FOR UPDATE",
];

/// What a plain role may not do at all.
const REACHES: [&str; 6] = [
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "COPY orders TO PROGRAM 'id'",
    "COPY orders FROM '/etc/passwd'",
    "SELECT * FROM secret",
];

async fn read_and_never_written() {
    let Some(server) = Server::start() else { return };
    server.run("postgres", "CREATE DATABASE shop").await;
    server.run("shop", TABLES).await;
    let limit = Duration::from_secs(5);
    let reader = Databases::default().with("shop", database(server.url("reader", "shop")));
    let crib = Crib::new(reader.clone().with_timeout(limit));

    let rows = crib.rows("SELECT * FROM orders ORDER BY id").await;
    let first = json!([1, "Ada", "10.50", true, rows[0][4], "{a,b}", {"k": [1]}]);
    assert_eq!(
        rows,
        json!([first, [2, null, 20, false, null, null, null]]).as_array().map_or(
            json!(null),
            |all| {
                // An exact decimal is a text with its digits.
                json!([all[0], [2, null, "20.00", false, null, null, null]])
            }
        )
    );
    assert!(rows[0][4].as_str().is_some_and(|at| at.starts_with("2024-01-0")), "{rows}");
    assert_eq!(crib.rows("VALUES (1), (2);").await, json!([[1], [2]]));
    let described = crib.call("describe_database", json!({})).await;
    assert!(described.text().starts_with("PostgreSQL, 1 tables and views\ntable orders (id bigint, customer text, amount numeric(10,2)"), "{}", described.text());

    for sql in WRITES {
        let text = crib.refuses(sql).await;
        assert!(text.contains("Only SELECT queries allowed"), "{sql}: {text}");
    }
    // PostgreSQL 15 makes large objects in read-only transactions, too. It is not committed.
    assert!(
        crib.query("SELECT lo_create(4711)")
            .await
            .error_kind()
            .is_none_or(|kind| kind == ErrorKind::Denied)
    );
    for sql in REACHES {
        let result = crib.query(sql).await;
        assert!(!result.is_success(), "{sql}: {}", result.text());
        assert!(
            !result.text().contains("SESAME") && !result.text().contains("root:"),
            "{sql}: {}",
            result.text()
        );
    }
    assert_eq!(
        server
            .value(
                "shop",
                "SELECT count(*)::text || ' ' || (SELECT last_value FROM numbers) || ' ' || (SELECT count(*) FROM pg_largeobject_metadata) FROM orders"
            )
            .await,
        "2 1 0"
    );

    // Rows, bytes and time.
    let few = Crib::new(reader.clone().with_max_rows(3))
        .query("SELECT generate_series(1, 1000000)")
        .await;
    let data = few.data().expect("there is data");
    assert_eq!(
        (data["rows"].clone(), data["total_is_exact"].clone()),
        (json!([[1], [2], [3]]), json!(false))
    );
    let short = Crib::new(reader.clone().with_timeout(Duration::from_secs(1)));
    let began = Instant::now();
    let late =
        short.query("SELECT set_config('statement_timeout', '0', false), pg_sleep(600)").await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Timeout), "{}", late.text());
    assert!(began.elapsed() < Duration::from_secs(60));
    let sleeping = "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND state = 'active' \
                    AND pid <> pg_backend_pid()";

    // A call that is dropped ends its query on the server.
    let patient = Crib::new(reader.with_timeout(Duration::from_secs(600)));
    let call = patient.query("SELECT pg_sleep(600)");
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    let mut left = String::new();
    for _ in 0..200 {
        left = server.value("shop", sleeping).await;
        if left == "0" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(left, "0", "queries still run");

    // A superuser reads files of its server, so it has to be allowed.
    let owner = |allow_superuser| {
        let url = UrlSource::Url(server.url("owner", "shop"));
        Crib::new(Databases::default().with("shop", Database { url, allow_superuser }))
    };
    assert!(owner(false).refuses("SELECT 1").await.contains("superuser"));
    assert_eq!(owner(true).rows("SELECT word FROM secret").await, json!([["SESAME"]]));
    assert!(!owner(true).query("DELETE FROM orders").await.is_success());
}
