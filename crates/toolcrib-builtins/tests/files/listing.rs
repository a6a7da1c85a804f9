//! Listing: by pattern, with totals.

use serde_json::json;
use toolcrib_tool::ErrorKind;

use crate::harness::Crib;

fn project() -> Crib {
    Crib::new(&[
        ("b.rs", b"12"),
        ("a.txt", b"1"),
        (".hidden", b""),
        ("src/main.rs", b"123"),
        ("src/deep/er/lib.rs", b""),
        ("src/deep/notes.md", b""),
    ])
}

async fn paths(crib: &Crib, arguments: serde_json::Value) -> Vec<String> {
    let data = crib.data("file_list", arguments).await;
    let entries = data["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_folder_is_listed_in_order_with_sizes() {
    let crib = project();
    let said = crib.text("file_list", json!({})).await;
    assert_eq!(said, ".hidden  0\na.txt  1\nb.rs  2\nsrc/\n[.: 4 entries]");
    let said = crib.text("file_list", json!({"path": "src/deep", "pattern": "*.md"})).await;
    assert_eq!(said, "notes.md  0\n[src/deep: 1 entry]");
    let said = crib.text("file_list", json!({"pattern": "*.zip"})).await;
    assert_eq!(said, "[.: nothing matches *.zip]");
    crib.text("file_mkdir", json!({"path": "void"})).await;
    let said = crib.text("file_list", json!({"path": "void"})).await;
    assert_eq!(said, "[void: the folder is empty]");
}

#[tokio::test]
async fn patterns_search_as_deep_as_they_specify() {
    let crib = project();
    for (pattern, expected) in [
        ("*.rs", &["b.rs"][..]),
        ("**/*.rs", &["b.rs", "src/deep/er/lib.rs", "src/main.rs"]),
        ("src/*.rs", &["src/main.rs"]),
        (
            "src/**",
            &["src/deep", "src/deep/er", "src/deep/er/lib.rs", "src/deep/notes.md", "src/main.rs"],
        ),
        ("*.{rs,txt}", &["a.txt", "b.rs"]),
        ("[ab].*", &["a.txt", "b.rs"]),
        ("?.rs", &["b.rs"]),
        (".*", &[".hidden"]),
    ] {
        assert_eq!(paths(&crib, json!({"pattern": pattern})).await, expected, "{pattern}");
    }
    assert_eq!(
        paths(&crib, json!({"path": "src", "pattern": "**/*.rs"})).await,
        ["deep/er/lib.rs", "main.rs"]
    );
    for pattern in ["../*", "/etc/*", "src/../../*", "[", "{a"] {
        crib.fails("file_list", json!({"pattern": pattern}), ErrorKind::InvalidArgs).await;
    }
}

#[tokio::test]
async fn omitted_entries_are_counted() {
    let crib = project();
    let data = crib.data("file_list", json!({"pattern": "**", "limit": 3})).await;
    assert_eq!((data["entries"].as_array().unwrap().len(), &data["total"]), (3, &json!(9)));
    assert_eq!(data["complete"], false);
    let said = crib.text("file_list", json!({"pattern": "**", "limit": 3})).await;
    assert!(said.contains("3 of 9: for the others"), "{said}");
}
