//! Searching: which lines, which files, and what is skipped.

use serde_json::json;
use toolcrib_tool::ErrorKind;

use crate::harness::Crib;

fn project() -> Crib {
    Crib::new(&[
        (".gitignore", b"target/\n*.log\n!keep.log\n/top.txt\n"),
        ("main.rs", b"fn main() {\n    todo(1);\n}\n\n\n\nfn other() {}\n"),
        ("src/lib.rs", b"// TODO: more\nfn lib() {}\n"),
        ("src/.gitignore", b"generated.rs\n!special.log\n"),
        ("src/generated.rs", b"todo\n"),
        ("src/special.log", b"todo\n"),
        ("src/top.txt", b"todo\n"),
        ("top.txt", b"todo\n"),
        ("target/out.rs", b"todo\n"),
        ("run.log", b"todo\n"),
        ("keep.log", b"todo\n"),
        (".git/HEAD", b"todo\n"),
        ("image.bin", b"todo\0todo\n"),
        ("dos.txt", b"one\r\ntodo\r\n"),
    ])
}

async fn places(crib: &Crib, arguments: serde_json::Value) -> Vec<String> {
    let data = crib.data("file_search", arguments).await;
    let matches = data["matches"].as_array().unwrap();
    matches
        .iter()
        .map(|found| format!("{}:{}", found["path"].as_str().unwrap(), found["line"]))
        .collect()
}

#[tokio::test]
async fn matching_lines_are_found_with_context() {
    let crib = project();
    let said = crib
        .text("file_search", json!({"pattern": r"^fn \w+\(", "glob": "*.rs", "context": 1}))
        .await;
    let expected = "main.rs
  1: fn main() {
  2-     todo(1);
  --
  6- \n  7: fn other() {}
src/lib.rs
  1- // TODO: more
  2: fn lib() {}
[3 lines in 2 of 2 files]";
    assert_eq!(said, expected);
    let data = crib.data("file_search", json!({"pattern": "main"})).await;
    let expected = json!([{"path": "main.rs", "line": 1, "text": "fn main() {"}]);
    assert_eq!(data["matches"], expected);
}

#[tokio::test]
async fn ignored_files_are_skipped_unless_requested() {
    let crib = project();
    let found = places(&crib, json!({"pattern": "todo"})).await;
    assert_eq!(
        found,
        ["dos.txt:2", "keep.log:1", "main.rs:2", "src/special.log:1", "src/top.txt:1"]
    );
    // The rules of the folders above also apply when the search begins below.
    let found = places(&crib, json!({"pattern": "todo", "path": "src"})).await;
    assert_eq!(found, ["src/special.log:1", "src/top.txt:1"]);
    let all = places(&crib, json!({"pattern": "todo", "include_ignored": true})).await;
    let more = ["run.log:1", "src/generated.rs:1", "target/out.rs:1", "top.txt:1"];
    assert!(more.iter().all(|place| all.iter().any(|found| found == place)), "{all:?}");
    assert!(
        !all.iter().any(|place| place.starts_with(".git/") || place.starts_with("image")),
        "{all:?}"
    );
    // A file that is named explicitly is searched.
    assert_eq!(places(&crib, json!({"pattern": "todo", "path": "run.log"})).await, ["run.log:1"]);
}

#[tokio::test]
async fn patterns_are_regular_expressions_unless_literal() {
    let crib = project();
    let found = async |arguments| places(&crib, arguments).await;
    assert_eq!(found(json!({"pattern": "todo(1)", "literal": true})).await, ["main.rs:2"]);
    assert_eq!(found(json!({"pattern": "todo(1)"})).await, Vec::<String>::new());
    let upper = json!({"pattern": "TODO", "ignore_case": true, "glob": "src/*.rs"});
    assert_eq!(found(upper).await, ["src/lib.rs:1"]);
    assert_eq!(found(json!({"pattern": "todo$", "glob": "dos.txt"})).await.len(), 0);
    for pattern in ["(", "a{99999}{99999}", "\n", "[z-a]"] {
        crib.fails("file_search", json!({"pattern": pattern}), ErrorKind::InvalidArgs).await;
    }
    // No pattern takes forever: matching is linear.
    crib.text("file_write", json!({"path": "a", "content": "a".repeat(50_000)})).await;
    assert_eq!(found(json!({"pattern": "(a*)*b", "path": "a"})).await.len(), 0);
}

#[tokio::test]
async fn matches_beyond_the_limit_are_counted_and_long_lines_are_cut() {
    let many = "hit\n".repeat(500);
    let long = format!("{}needle{}\n", "\u{fc}".repeat(2000), "x".repeat(2000));
    let crib = Crib::new(&[("many", many.as_bytes()), ("long", long.as_bytes())]);
    let data = crib.data("file_search", json!({"pattern": "hit", "limit": 7})).await;
    assert_eq!((data["matches"].as_array().unwrap().len(), &data["total"]), (7, &json!(500)));
    assert_eq!(data["complete"], false);
    let data = crib.data("file_search", json!({"pattern": "needle"})).await;
    let text = data["matches"][0]["text"].as_str().unwrap();
    assert!(text.contains("needle") && text.starts_with("[…]") && text.ends_with("[…]"), "{text}");
    assert!(text.chars().count() < 400, "{text}");
}

#[tokio::test]
async fn only_the_beginning_of_a_huge_binary_file_is_read() {
    let crib = Crib::new(&[("z.txt", b"needle\n")]);
    for name in ["a.img", "b.img"] {
        // A sparse file: it takes no space but would take seconds to read.
        std::fs::File::create(crib.path(name)).unwrap().set_len(10 << 30).unwrap();
    }
    let data = crib.data("file_search", json!({"pattern": "needle"})).await;
    assert_eq!((&data["total"], &data["complete"]), (&json!(1), &json!(true)), "{data}");
}
