//! Editing: at the one place that is meant, or not at all.

use std::fs;
use std::sync::Arc;

use serde_json::json;
use toolcrib_tool::ErrorKind;

use crate::harness::Crib;

#[tokio::test]
async fn a_text_is_replaced_where_it_stands() {
    let crib = Crib::new(&[("a.py", b"DEBUG = True\nPORT = 80\n")]);
    let arguments = json!({"path": "a.py", "source_text": "True", "target_text": "False"});
    let said = crib.text("edit_file", arguments).await;
    assert!(said.starts_with("Edited a.py, line 1\n"), "{said}");
    assert!(said.contains("-DEBUG = True\n+DEBUG = False"), "{said}");
    assert_eq!(fs::read_to_string(crib.path("a.py")).unwrap(), "DEBUG = False\nPORT = 80\n");
    let all = json!({"path": "a.py", "source_text": "=", "target_text": ":=", "replace_all": true});
    let data = crib.data("edit_file", all).await;
    let expected = json!({"path": "a.py", "replaced": 2, "lines": [[1, 1], [2, 2]], "level": "exact", "size": 26});
    assert_eq!(data, expected);
}

#[tokio::test]
async fn what_is_written_a_little_differently_is_found() {
    let crib = Crib::new(&[("a.rs", b"fn main() {\r\n    go();\r\n}\r\n")]);
    let arguments = json!({"path": "a.rs", "source_text": "go();\n}", "target_text": "stop();\n}"});
    let said = crib.text("edit_file", arguments).await;
    assert!(said.contains("(matched but for line endings)"), "{said}");
    assert_eq!(fs::read(crib.path("a.rs")).unwrap(), b"fn main() {\r\n    stop();\r\n}\r\n");
}

#[tokio::test]
async fn what_is_not_there_once_changes_nothing_and_the_answer_says_where() {
    let text = "one\ntwo\none\n";
    let crib = Crib::new(&[("a.txt", text.as_bytes())]);
    for (source, target, says) in [
        ("one", "1", "line 3"),
        ("tow", "2", "The source text is not in the file"),
        ("", "x", "The source text is empty"),
        ("two", "two", "Nothing would change"),
    ] {
        let arguments = json!({"path": "a.txt", "source_text": source, "target_text": target});
        let said = crib.fails("edit_file", arguments, ErrorKind::Execution).await;
        assert!(said.contains("`a.txt` was not edited") && said.contains(says), "{said}");
    }
    assert_eq!(fs::read_to_string(crib.path("a.txt")).unwrap(), text);
    let missing = json!({"path": "b.txt", "source_text": "a", "target_text": "b"});
    crib.fails("edit_file", missing, ErrorKind::Execution).await;
    let outside = json!({"path": "../secret.txt", "source_text": "secret", "target_text": "b"});
    crib.fails("edit_file", outside, ErrorKind::Denied).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_edits_at_a_time_all_count() {
    let lines = (0..16).map(|task| format!("task {task}: 0 done\n")).collect::<Vec<_>>().concat();
    let crib = Arc::new(Crib::new(&[("a.txt", lines.as_bytes())]));
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let crib = Arc::clone(&crib);
            tokio::spawn(async move {
                for round in 0..10 {
                    let line = |round: u32| format!("task {task}: {round} done\n");
                    let arguments = json!({
                        "path": "a.txt", "source_text": line(round), "target_text": line(round + 1),
                    });
                    crib.text("edit_file", arguments).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let expected =
        (0..16).map(|task| format!("task {task}: 10 done\n")).collect::<Vec<_>>().concat();
    assert_eq!(fs::read_to_string(crib.path("a.txt")).unwrap(), expected);
}
