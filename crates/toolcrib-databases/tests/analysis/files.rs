//! Which tables files become, and what queries answer.

use std::fmt::Write as _;

use libtest_mimic::Trial;
use serde_json::json;
use toolcrib_tool::ErrorKind;

use crate::harness::{Crib, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("files_of_all_formats_are_joined", files_of_all_formats_are_joined),
        trial("columns_are_typed_by_their_values", columns_are_typed_by_their_values),
        trial("without_a_query_the_tables_are_described", the_tables_are_described),
        trial("separators_quotes_and_bad_lines_of_csv_are_read", separators_and_quotes),
        trial("json_documents_become_rows_with_their_nesting", json_documents),
        trial("results_are_bounded_and_counted", results_are_bounded_and_counted),
        trial("a_wrong_query_is_answered_with_the_tables", a_wrong_query),
        trial("a_file_that_is_not_what_its_name_says_is_reported", wrong_files),
        trial("paths_lead_nowhere_else", paths_lead_nowhere_else),
        trial("nothing_of_a_query_is_left_behind", nothing_is_left_behind),
        trial("functions_for_analysis_are_there", functions_for_analysis),
    ]
}

const SALES: &str = "id,region,amount,paid\n1,north,10.50,true\n2,south,20,false\n3,north,,true\n";

async fn files_of_all_formats_are_joined() {
    let crib = Crib::new(&[
        ("sales.csv", SALES),
        ("data/regions.tsv", "name\tcountry\nnorth\tSweden\nsouth\tItaly\n"),
        (
            "people.json",
            r#"[{"region": "north", "name": "Ada"}, {"region": "south", "name": "Bo"}]"#,
        ),
        ("visits.jsonl", "{\"sale\": 1, \"n\": 5}\n\n{\"sale\": 2, \"n\": 7}\n"),
    ]);
    let rows = crib
        .rows(
            &["sales.csv", "data/regions.tsv", "people.json", "visits.jsonl"],
            "SELECT country, people.name, sum(amount) AS total, sum(n) AS visits
             FROM sales JOIN regions ON regions.name = sales.region
             JOIN people ON people.region = sales.region
             LEFT JOIN visits ON visits.sale = sales.id GROUP BY 1, 2 ORDER BY 1",
        )
        .await;
    assert_eq!(rows, json!([["Italy", "Bo", 20.0, 7], ["Sweden", "Ada", 10.5, 5]]));
}

async fn columns_are_typed_by_their_values() {
    let crib = Crib::new(&[("sales.csv", SALES), ("codes.csv", "code,mixed\n007,1\n12,x\n")]);
    let types = "SELECT typeof(id), typeof(amount), typeof(paid), typeof(region) FROM sales WHERE id IN (1, 3)";
    let rows = crib.rows(&["sales.csv"], types).await;
    assert_eq!(
        rows,
        json!([["integer", "real", "integer", "text"], ["integer", "null", "integer", "text"]])
    );
    assert_eq!(
        crib.rows(&["sales.csv"], "SELECT count(*) FROM sales WHERE paid").await,
        json!([[2]])
    );
    let rows = crib.rows(&["codes.csv"], "SELECT code, mixed FROM codes WHERE code = '007'").await;
    assert_eq!(rows, json!([["007", "1"]]));
    // The types come from the first rows; a later value of another type stays as it is, and is told.
    let mut late = "n\n".to_owned();
    for n in 0..30_000 {
        let _ = writeln!(late, "{n}");
    }
    late.push_str("none\n");
    crib.write("late.csv", &late);
    let result = crib.query(&["late.csv"], "SELECT count(*), sum(n = 'none') FROM late").await;
    assert_eq!(result.data().map(|data| data["rows"].clone()), Some(json!([[30_001, 1]])));
    assert!(
        result.text().contains("column n: 1 value is no INTEGER and stays text"),
        "{}",
        result.text()
    );
}

async fn the_tables_are_described() {
    let crib = Crib::new(&[("sales.csv", SALES), ("odd names.csv", "a b,a b,\n1,2,3\n")]);
    let result = crib.call(json!({"paths": ["sales.csv", "odd names.csv"]})).await;
    assert_eq!(
        result.text(),
        "sales (id INTEGER, region TEXT, amount REAL, paid BOOLEAN (1 or 0)): 3 rows from sales.csv\n\
         odd_names (\"a b\" INTEGER, \"a b_2\" INTEGER, column3 INTEGER): 1 row from odd names.csv"
    );
    let data = result.data().expect("there is data");
    assert_eq!(data["tables"][0]["columns"][2], json!({"name": "amount", "type": "REAL"}));
    let rows =
        crib.rows(&["odd names.csv"], "SELECT \"a b\", \"a b_2\", column3 FROM odd_names").await;
    assert_eq!(rows, json!([[1, 2, 3]]));
    let bare = crib
        .call(json!({"paths": ["sales.csv"], "sql": "SELECT column2 FROM sales", "header": false}))
        .await;
    assert_eq!(bare.data().map(|data| data["total"].clone()), Some(json!(4)), "{}", bare.text());
}

async fn separators_and_quotes() {
    let crib = Crib::new(&[
        ("semi.csv", "\u{feff}name;price\r\n\"a;b\";1,5\r\n\"say \"\"hi\"\"\nthere\";2\r\n"),
        ("bad.csv", "a,b\n1\n2,3,4\n"),
    ]);
    let rows = crib.rows(&["semi.csv"], "SELECT name, price FROM semi").await;
    assert_eq!(rows, json!([["a;b", "1,5"], ["say \"hi\"\nthere", "2"]]));
    let result = crib.query(&["bad.csv"], "SELECT * FROM bad").await;
    assert_eq!(result.data().map(|data| data["rows"].clone()), Some(json!([[1, null], [2, 3]])));
    assert!(result.text().contains("1 line has more fields than columns"), "{}", result.text());
    std::fs::write(crib.path("latin.csv"), b"a\ncaf\xe9\n").expect("a file");
    let result = crib.query(&["latin.csv"], "SELECT a FROM latin").await;
    assert!(result.text().contains("not UTF-8"), "{}", result.text());
}

async fn json_documents() {
    let crib = Crib::new(&[
        (
            "wrapped.json",
            r#"{"count": 2, "items": [{"z": 1, "a": {"deep": [1, 2]}}, {"z": 2, "new": "x"}]}"#,
        ),
        ("one.json", r#"{"name": "only", "n": 1}"#),
        ("scalars.json", r#"[1, 2.5, null, "x"]"#),
    ]);
    let rows = crib
        .rows(&["wrapped.json"], "SELECT z, a ->> '$.deep[1]', new FROM wrapped ORDER BY z")
        .await;
    assert_eq!(rows, json!([[1, 2, null], [2, null, "x"]]));
    assert_eq!(crib.rows(&["one.json"], "SELECT * FROM one").await, json!([["only", 1]]));
    let rows = crib.rows(&["scalars.json"], "SELECT value, typeof(value) FROM scalars").await;
    assert_eq!(rows, json!([[1, "integer"], [2.5, "real"], [null, "null"], ["x", "text"]]));
    let rows = crib
        .rows(&["wrapped.json"], "SELECT e.value FROM wrapped, json_each(wrapped.a, '$.deep') e")
        .await;
    assert_eq!(rows, json!([[1], [2]]));
}

async fn results_are_bounded_and_counted() {
    let mut many = "n,text\n".to_owned();
    for n in 0..5_000 {
        let _ = writeln!(many, "{n},{}", "x".repeat(300));
    }
    let crib = Crib::new(&[("many.csv", &many)]);
    let result = crib.query(&["many.csv"], "SELECT n FROM many").await;
    let data = result.data().expect("there is data").clone();
    assert_eq!((data["rows"].as_array().map(Vec::len), &data["total"]), (Some(100), &json!(5_000)));
    assert_eq!((&data["total_is_exact"], &data["complete"]), (&json!(true), &json!(false)));
    assert!(result.text().contains("[5000 rows; the first 100 are shown"), "{}", result.text());
    // Bytes bound the answer before rows do.
    let sql = "SELECT a.text || a.text || a.text FROM many a";
    let result = crib.call(json!({"paths": ["many.csv"], "sql": sql, "limit": 2000})).await;
    let shown = result.data().and_then(|data| data["rows"].as_array().map(Vec::len));
    assert!(shown.is_some_and(|shown| (100..1_000).contains(&shown)), "{shown:?}");
    let none = crib.query(&["many.csv"], "SELECT n FROM many WHERE n < 0").await;
    assert!(none.text().ends_with("[0 rows]"), "{}", none.text());
}

async fn a_wrong_query() {
    let crib = Crib::new(&[("sales.csv", SALES)]);
    for (sql, why) in [
        ("SELECT nope FROM sales", "no such column: nope"),
        ("SELECT \"nope\" FROM sales", "no such column"),
        ("SELECT * FROM sale", "no such table: sale"),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM sales WHERE id = ?", "parameters"),
    ] {
        let arguments = json!({"paths": ["sales.csv"], "sql": sql});
        let text = crib.fails(arguments, ErrorKind::Execution).await;
        assert!(text.contains(why) && text.contains("sales (id INTEGER, region TEXT"), "{text}");
    }
    let two = json!({"paths": ["sales.csv"], "sql": "SELECT 1; SELECT 2"});
    let text = crib.fails(two, ErrorKind::Denied).await;
    assert!(
        text.contains("Only SELECT queries allowed: there is more than one statement"),
        "{text}"
    );
    assert!(crib.query(&["sales.csv"], "SELECT 1; -- the end\n").await.is_success());
}

async fn wrong_files() {
    let crib = Crib::new(&[
        ("broken.json", "[{\"a\": 1}, {"),
        ("broken.jsonl", "{}\nnope\n"),
        ("empty.csv", ""),
    ]);
    for (path, why) in
        [("broken.json", "not JSON"), ("broken.jsonl", "line 2"), ("empty.csv", "empty")]
    {
        let text = crib.fails(json!({"paths": [path]}), ErrorKind::Execution).await;
        assert!(text.contains(path) && text.contains(why), "{text}");
    }
    std::fs::write(crib.path("wide.csv"), b"\xff\xfea\0").expect("a file");
    assert!(
        crib.fails(json!({"paths": ["wide.csv"]}), ErrorKind::Execution).await.contains("UTF-16")
    );
    assert!(crib.fails(json!({"paths": ["a.txt"]}), ErrorKind::InvalidArgs).await.contains(".csv"));
    assert!(
        crib.fails(json!({"paths": ["gone.csv"]}), ErrorKind::Execution).await.contains("gone.csv")
    );
}

async fn paths_lead_nowhere_else() {
    let crib = Crib::new(&[("sales.csv", SALES)]);
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, crib.path(name)).expect("a link");
    };
    link("../secret.csv", "link.csv");
    link("sales.csv", "inside.csv");
    link("/etc/passwd", "passwd.csv");
    for path in ["../secret.csv", "link.csv", "passwd.csv", "/etc/passwd.csv", "~/.ssh/a.csv"] {
        let result = crib.call(json!({"paths": [path]})).await;
        assert!(!result.is_success(), "{path}");
        assert!(
            !result.text().contains("SESAME") && !result.text().contains("root"),
            "{}",
            result.text()
        );
    }
    assert!(crib.query(&["inside.csv"], "SELECT * FROM inside").await.is_success());
    std::fs::create_dir(crib.path("folder.csv")).expect("a folder");
    assert!(!crib.call(json!({"paths": ["folder.csv"]})).await.is_success());
}

async fn nothing_is_left_behind() {
    let crib = Crib::new(&[("sales.csv", SALES)]);
    let scratch = toolcrib_sandbox::scratch_folder().expect("programs can be started");
    let own = |name: &std::ffi::OsStr| {
        let file = scratch.join(name).join("data.db");
        file.exists()
    };
    let left = || {
        let entries = std::fs::read_dir(&scratch).into_iter().flatten().flatten();
        entries.filter(|entry| own(&entry.file_name())).count()
    };
    assert!(crib.query(&["sales.csv"], "SELECT 1 FROM sales").await.is_success());
    // Other tests may run queries at the same time.
    for _ in 0..100 {
        if left() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(left(), 0);
}

async fn functions_for_analysis() {
    let crib = Crib::new(&[("n.csv", "n\n1\n2\n3\n10\n")]);
    let sql = "SELECT median(n), round(stddev(n), 3), round(variance(n), 2), sqrt(16), pow(2, 10), log10(1000), \
               floor(2.7), ceil(2.1), sqrt(-1), median(NULL) FROM n";
    let rows = crib.rows(&["n.csv"], sql).await;
    assert_eq!(rows, json!([[2.5, 4.082, 16.67, 4.0, 1024.0, 3.0, 2.0, 3.0, null, null]]));
}
