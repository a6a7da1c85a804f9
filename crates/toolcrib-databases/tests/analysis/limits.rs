//! Limits of time, memory and input, and cancellation.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;
use toolcrib_databases::AnalysisSettings;
use toolcrib_tool::ErrorKind;

use crate::harness::{Crib, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_query_ends_at_its_time_limit", a_query_ends_at_its_time_limit),
        trial("a_dropped_call_ends_its_query", a_dropped_call_ends_its_query),
        trial("files_that_are_too_large_are_refused_before_they_are_read", too_large),
        trial("a_query_within_little_memory_sorts_on_disk", sorts_on_disk),
    ]
}

async fn a_query_ends_at_its_time_limit() {
    let settings = AnalysisSettings::default().with_timeout(Duration::from_secs(1));
    let crib = Crib::with(&[("a.csv", "n\n1\n")], settings);
    let began = Instant::now();
    let sql =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let text = crib.fails(json!({"paths": ["a.csv"], "sql": sql}), ErrorKind::Timeout).await;
    assert!(text.contains("limit of 1 s"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

async fn a_dropped_call_ends_its_query() {
    let crib = Crib::new(&[("a.csv", "n\n1\n")]);
    let sql =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    let call = crib.call(json!({"paths": ["a.csv"], "sql": sql}));
    assert!(
        tokio::time::timeout(Duration::from_secs(2), call).await.is_err(),
        "it does not end by itself"
    );
    // Other tests have queries at the same time, which end by themselves.
    let running = workers();
    for _ in 0..300 {
        if running.iter().all(|worker| !workers().contains(worker)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{running:?} were running, {:?} still are", workers());
}

/// The processes of queries.
fn workers() -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_worker = |pid: &String| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.ends_with(b"\0query-worker\0")
    };
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_worker).collect()
}

async fn too_large() {
    let settings = AnalysisSettings::default().with_max_input(10);
    let crib = Crib::with(&[("a.csv", "n\n1\n"), ("b.csv", "n\n1234567\n")], settings);
    assert!(crib.call(json!({"paths": ["a.csv"]})).await.is_success());
    let text = crib.fails(json!({"paths": ["a.csv", "b.csv"]}), ErrorKind::Execution).await;
    assert!(text.contains("data_analysis.max_input"), "{text}");
}

async fn sorts_on_disk() {
    let mut many = "n,text\n".to_owned();
    for n in 0..400_000_u32 {
        let mixed = n.wrapping_mul(2_654_435_761);
        let _ = writeln!(many, "{mixed},{mixed:x}{}", "-filling".repeat(6));
    }
    let settings = AnalysisSettings::default().with_memory(64 << 20);
    let crib = Crib::with(&[("many.csv", &many)], settings);
    let sql = "SELECT n FROM (SELECT n, text FROM many ORDER BY text, n) LIMIT 1";
    let rows = crib.rows(&["many.csv"], sql).await;
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
}
