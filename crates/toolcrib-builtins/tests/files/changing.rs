//! Writing, appending, deleting, creating folders.

use std::fs;

use serde_json::json;
use toolcrib_tool::ErrorKind;

use crate::harness::Crib;

#[tokio::test]
async fn a_file_is_written_and_appended_to() {
    let crib = Crib::new(&[]);
    let said = crib.text("file_write", json!({"path": "new/a.txt", "content": "one\n"})).await;
    assert_eq!(said, "Wrote 4 bytes to the new file new/a.txt");
    let more = json!({"path": "new/a.txt", "content": "two\n", "mode": "append"});
    let said = crib.text("file_write", more).await;
    assert_eq!(said, "Added 4 bytes to new/a.txt, which now has 8");
    assert_eq!(fs::read_to_string(crib.path("new/a.txt")).unwrap(), "one\ntwo\n");
    let data = crib.data("file_write", json!({"path": "new/a.txt", "content": ""})).await;
    assert_eq!(data, json!({"path": "new/a.txt", "written": 0, "size": 0, "created": false}));
    let first = json!({"path": "log", "content": "x", "mode": "append"});
    assert_eq!(crib.data("file_write", first).await["created"], true);
}

#[tokio::test]
async fn protected_or_existing_paths_are_not_overwritten() {
    let crib = Crib::new(&[("a.txt", b"alpha"), ("dir/b.txt", b"")]);
    for (path, kind) in [
        (".git/hooks/pre-commit", ErrorKind::Denied),
        (".mcp.json", ErrorKind::Denied),
        ("tools.d/evil.yaml", ErrorKind::Denied),
        ("dir", ErrorKind::Execution),
        ("a.txt/b.txt", ErrorKind::Execution),
        ("dir/", ErrorKind::InvalidArgs),
        ("", ErrorKind::InvalidArgs),
    ] {
        crib.fails("file_write", json!({"path": path, "content": "x"}), kind).await;
    }
    assert!(!crib.path(".git").exists() && !crib.path("tools.d").exists());
}

#[tokio::test]
async fn files_and_folders_are_deleted_as_asked() {
    let crib = Crib::new(&[("a.txt", b""), ("dir/b.txt", b""), ("dir/c/d.txt", b"")]);
    assert_eq!(crib.text("file_delete", json!({"path": "a.txt"})).await, "Deleted a.txt");
    let said = crib.fails("file_delete", json!({"path": "a.txt"}), ErrorKind::Execution).await;
    assert!(said.contains("there is no such file"), "{said}");
    let said = crib.fails("file_delete", json!({"path": "dir"}), ErrorKind::Execution).await;
    assert!(said.contains("not empty") && said.contains("recursive"), "{said}");
    let data = crib.data("file_delete", json!({"path": "dir", "recursive": true})).await;
    assert_eq!(data, json!({"path": "dir", "kind": "folder", "deleted": 4}));
    let root =
        crib.fails("file_delete", json!({"path": ".", "recursive": true}), ErrorKind::Execution);
    assert!(root.await.contains("the project's own folder"));
    assert!(crib.path(".").exists());
}

#[tokio::test]
async fn creating_an_existing_folder_is_not_an_error() {
    let crib = Crib::new(&[("a.txt", b"")]);
    let data = crib.data("file_mkdir", json!({"path": "x/y/z/"})).await;
    assert_eq!(data, json!({"path": "x/y/z", "created": true}));
    assert_eq!(crib.data("file_mkdir", json!({"path": "x/y"})).await["created"], false);
    crib.fails("file_mkdir", json!({"path": "a.txt/b"}), ErrorKind::Execution).await;
    let exists = async |path: &str| crib.data("file_exists", json!({"path": path})).await;
    assert_eq!(exists("x/y/z").await, json!({"path": "x/y/z", "exists": true, "kind": "folder"}));
    let file = json!({"path": "a.txt", "exists": true, "kind": "file", "size": 0});
    assert_eq!(exists("a.txt").await, file);
    assert_eq!(exists("none").await, json!({"path": "none", "exists": false}));
}
