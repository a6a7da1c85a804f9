//! The built-in tools for data, in the real program.

use crate::harness::crib::Crib;

#[test]
fn data_files_are_queried_in_a_process_of_the_program() {
    let crib = Crib::new(&[]);
    std::fs::write(crib.path().join("sales.csv"), "region,n\nnorth,2\nsouth,3\nnorth,4\n")
        .expect("a file");
    let sql = "sql=SELECT region, sum(n) AS total FROM sales GROUP BY region ORDER BY region";
    let run = crib.run(&["call", "data_analysis", "paths=[\"sales.csv\"]", sql]);
    let table = "region | total\n------ | -----\nnorth  |     6\nsouth  |     3\n[2 rows]\n";
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), table), "{run:?}");
    let refused = crib.run(&[
        "call",
        "data_analysis",
        "paths=[\"sales.csv\"]",
        "sql=DELETE FROM sales",
        "--json",
    ]);
    assert_eq!(refused.json()["error"]["kind"], "denied", "{refused:?}");
    let shown = crib.run(&["show", "data_analysis"]).stdout;
    let runs = "runs     a query in a confined process of its own\n";
    assert!(shown.contains(runs) && shown.contains("timeout  1m\n"), "{shown}");
    let planned = crib.run(&["call", "--dry-run", "data_analysis", "paths=[\"sales.csv\"]"]).stdout;
    assert!(
        planned.contains("runs       a query in a confined process of its own\n")
            && planned.contains("limits     60s;"),
        "{planned}"
    );
    crib.config("data_analysis: {max_input: 10B}\nprojects: {one: .}\n");
    let arguments = ["call", "data_analysis", "paths=[\"sales.csv\"]", "--json"];
    assert_eq!(crib.run(&arguments).json()["error"]["kind"], "missing_context");
    let large = crib.run(&[&arguments[..], &["--ctx", "project_id=one"]].concat()).json();
    assert!(large.to_string().contains("data_analysis.max_input"), "{large}");
}

#[test]
fn tools_of_databases_are_offered_once_a_database_is_configured() {
    let crib = Crib::new(&[]);
    assert!(!crib.run(&["list", "--all"]).stdout.contains("db_query"));
    std::fs::write(crib.path().join("notes.db"), "").expect("an empty database");
    let path = crib.path().join("notes.db");
    crib.config(&format!("databases: {{notes: {{url: 'sqlite:{}'}}}}\n", path.display()));
    let run = crib.run(&["call", "db_query", "sql=SELECT 6 * 7 AS answer"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (Some(0), "answer\n------\n    42\n[1 row]\n"),
        "{run:?}"
    );
    let described = crib.run(&["call", "describe_database"]);
    assert_eq!(described.stdout, "SQLite, 0 tables and views\n", "{described:?}");
}
