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
    let diff = "@@ -1,2 +1,2 @@\n-DEBUG = False\n+DEBUG := False\n PORT = 80\n\
                @@ -1,2 +1,2 @@\n DEBUG = False\n-PORT = 80\n+PORT := 80\n";
    let edits = json!([{"level": "exact", "lines": [[1, 1], [2, 2]], "diff": diff}]);
    let expected =
        json!({"path": "a.py", "edits": edits, "replaced": 2, "size": 26, "dry_run": false});
    assert_eq!(data, expected);
}

#[tokio::test]
async fn the_diff_shows_the_carriage_return_of_every_replaced_line() {
    let crib = Crib::new(&[("a.txt", b"a\r\nb\r\nc\r\n")]);
    let arguments = json!({"path": "a.txt", "source_text": "a\nb", "target_text": "A\nB"});
    let said = crib.text("edit_file", arguments).await;
    assert!(said.contains("-a␍\n-b␍\n+A␍\n+B␍\n c␍"), "{said}");
    assert_eq!(fs::read(crib.path("a.txt")).unwrap(), b"A\r\nB\r\nc\r\n");
}

#[tokio::test]
async fn a_source_with_small_differences_is_found() {
    let crib = Crib::new(&[("a.rs", b"fn main() {\r\n    go();\r\n}\r\n")]);
    let arguments = json!({"path": "a.rs", "source_text": "go();\n}", "target_text": "stop();\n}"});
    let said = crib.text("edit_file", arguments).await;
    assert!(said.contains("(matched except for line endings)"), "{said}");
    assert_eq!(fs::read(crib.path("a.rs")).unwrap(), b"fn main() {\r\n    stop();\r\n}\r\n");
}

#[tokio::test]
async fn an_ambiguous_or_missing_source_changes_nothing_and_is_explained() {
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

#[tokio::test]
async fn a_refusal_is_data_as_well() {
    let text = "fn a() {\n    go();\n}\nfn b() {\n    go();\n}\n";
    let crib = Crib::new(&[("a.rs", text.as_bytes()), ("empty", b"")]);
    let refused = async |path: &str, source: &str, target: &str| {
        let arguments = json!({"path": path, "source_text": source, "target_text": target});
        let result = crib.call("edit_file", arguments).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Execution));
        assert!(!result.text().contains("Output before the failure"), "{}", result.text());
        result.data().cloned().unwrap()
    };
    let places = json!([
        {"lines": [2, 2], "text": "    go();", "context": "fn a() {\n    go();"},
        {"lines": [5, 5], "text": "    go();", "context": "fn b() {\n    go();"},
    ]);
    let expected = json!({
        "path": "a.rs", "refused": "ambiguous", "level": "exact", "count": 2, "places": places,
    });
    assert_eq!(refused("a.rs", "    go();", "").await, expected);
    let missing = refused("a.rs", "fn b() {\n    got();\n}", "x").await;
    assert_eq!(missing["refused"], "missing");
    assert_eq!(missing["closest"]["lines"], json!([4, 6]));
    assert_eq!(missing["closest"]["text"], "fn b() {\n    go();\n}");
    assert!(
        missing["closest"]["diff"].as_str().unwrap().contains("-     5      go();"),
        "{missing}"
    );
    let numbered = refused("a.rs", "4\tfn b() {\n5\t    go();", "x").await;
    assert_eq!(numbered["causes"], json!(["line_numbers"]));
    let again = refused("a.rs", "fn c() {", "fn b() {").await;
    assert_eq!(again["already"], json!(null), "too little to tell");
    let omission = refused("a.rs", "fn a() {", "fn a() {\n    // ... existing code ...").await;
    assert_eq!(omission["line"], 2);
    assert_eq!(omission["text"], "// ... existing code ...");
    let blank = refused("a.rs", "\n", "").await;
    assert_eq!(blank, json!({"path": "a.rs", "refused": "blank_source", "count": 6}));
    assert_eq!(refused("empty", "a", "b").await["empty_file"], true);
    assert_eq!(refused("a.rs", "", "b").await, json!({"path": "a.rs", "refused": "empty_source"}));
    assert_eq!(fs::read_to_string(crib.path("a.rs")).unwrap(), text);
}

#[tokio::test]
async fn a_near_line_only_chooses_among_existing_places() {
    let crib = Crib::new(&[("a.txt", b"one\ntwo\none\ntwo\none\n")]);
    let edit = |source: &str, line: usize| json!({"path": "a.txt", "source_text": source, "target_text": "1", "near_line": line});
    let said = crib.fails("edit_file", edit("one", 2), ErrorKind::Execution).await;
    assert!(said.contains("occurs 3 times"), "two are as near: {said}");
    let said = crib.fails("edit_file", edit("onf", 3), ErrorKind::Execution).await;
    assert!(said.contains("is not in the file"), "{said}");
    crib.fails("edit_file", edit("one", 0), ErrorKind::InvalidArgs).await;
    assert!(crib.text("edit_file", edit("one", 4_000)).await.starts_with("Edited a.txt, line 5\n"));
    let now = fs::read_to_string(crib.path("a.txt")).unwrap();
    assert_eq!(now, "one\ntwo\none\ntwo\n1\n");
}

#[tokio::test]
async fn several_edits_are_made_all_or_none() {
    let text = "let a = 1;\nlet b = 2;\nuse();\n\nuse();\n";
    let crib = Crib::new(&[("a.js", text.as_bytes())]);
    let edits = json!([
        {"source_text": "let a = 1;", "target_text": "// a\nconst a = 1;"},
        {"source_text": "  const a = 1;\n  let b = 2;", "target_text": "  const a = 1;\n  const b = 2;"},
        {"source_text": "use();", "target_text": "use(a);", "near_line": 3},
        {"source_text": "const", "target_text": "var", "replace_all": true},
    ]);
    let with = |last: serde_json::Value| {
        let mut edits = edits.as_array().unwrap().clone();
        edits.push(last);
        json!({"path": "a.js", "edits": edits})
    };
    let gone = with(json!({"source_text": "let b = 2;", "target_text": ""}));
    let result = crib.call("edit_file", gone).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Execution));
    let said = result.text().into_owned();
    assert!(said.contains("Edit 5 of 5; none was made. Each edit is made in the result"), "{said}");
    let data = result.data().unwrap();
    assert_eq!((&data["edit"], &data["edits"]), (&json!(5), &json!(5)));
    assert_eq!((&data["stood_before"], &data["refused"]), (&json!(true), &json!("missing")));
    let never = with(json!({"source_text": "nowhere to be seen", "target_text": ""}));
    let said = crib.fails("edit_file", never, ErrorKind::Execution).await;
    assert!(said.contains("Edit 5 of 5; none was made. The source text"), "{said}");
    assert_eq!(fs::read_to_string(crib.path("a.js")).unwrap(), text);

    let made = crib.call("edit_file", json!({"path": "a.js", "edits": edits})).await;
    let said = made.text().into_owned();
    assert!(said.starts_with("Edited a.js\nEdit 1 of 4, line 1\n@@ "), "{said}");
    assert!(said.contains("\nEdit 2 of 4, lines 2-3 (matched except for indentation)\n"), "{said}");
    assert!(said.contains("\nEdit 4 of 4 at 2 places\n"), "{said}");
    let data = made.data().unwrap();
    assert_eq!((&data["replaced"], &data["size"]), (&json!(5), &json!(43)));
    assert_eq!(data["edits"][1]["level"], "indentation");
    assert_eq!(
        fs::read_to_string(crib.path("a.js")).unwrap(),
        "// a\nvar a = 1;\nvar b = 2;\nuse(a);\n\nuse();\n"
    );
}

#[tokio::test]
async fn a_dry_run_shows_the_change_and_writes_nothing() {
    let crib = Crib::new(&[("a.txt", b"one\ntwo\n")]);
    let before = fs::metadata(crib.path("a.txt")).unwrap().modified().unwrap();
    let arguments =
        json!({"path": "a.txt", "source_text": "two", "target_text": "2", "dry_run": true});
    let result = crib.call("edit_file", arguments.clone()).await;
    assert_eq!(
        result.text(),
        "Would edit a.txt, line 2\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\
         Nothing was written: this was a dry run."
    );
    assert_eq!(result.data().unwrap()["dry_run"], true);
    assert_eq!(fs::read(crib.path("a.txt")).unwrap(), b"one\ntwo\n");
    assert_eq!(fs::metadata(crib.path("a.txt")).unwrap().modified().unwrap(), before);
    let mut refused = arguments;
    refused["source_text"] = json!("three");
    crib.fails("edit_file", refused, ErrorKind::Execution).await;
}

#[tokio::test]
async fn contradictory_parts_of_an_edit_are_refused() {
    let crib = Crib::new(&[("a.txt", b"one\n")]);
    let one = json!({"source_text": "one", "target_text": "1"});
    for (arguments, says) in [
        (json!({}), "there is nothing to edit"),
        (json!({"edits": []}), "there is nothing to edit"),
        (json!({"source_text": "one"}), "`target_text` is missing"),
        (json!({"target_text": "1"}), "`source_text` is missing"),
        (json!({"edits": [one], "source_text": "one"}), "Put `source_text`"),
        (json!({"edits": [one], "near_line": 1}), "Put `source_text`"),
        (json!({"edits": [one], "replace_all": true}), "Put `source_text`"),
    ] {
        let mut arguments = arguments;
        arguments["path"] = json!("a.txt");
        let said = crib.fails("edit_file", arguments, ErrorKind::InvalidArgs).await;
        assert!(said.contains(says), "{said}");
    }
    let beside = json!({"path": "a.txt", "source_text": "", "target_text": "", "edits": [one]});
    crib.text("edit_file", beside).await;
    assert_eq!(fs::read_to_string(crib.path("a.txt")).unwrap(), "1\n");
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
