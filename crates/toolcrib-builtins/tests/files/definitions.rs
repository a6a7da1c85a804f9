//! The definitions of the tools of this family, and the names under which they are exposed.

use serde_json::json;
use tempfile::TempDir;
use toolcrib_builtins::{Builtins, NameProfile, Projects};
use toolcrib_core::TurnOptions;
use toolcrib_tool::{ErrorKind, Services, ToolCall, ToolDefinition, native_tools};

use crate::harness::{Crib, executor};

fn names(builtins: &Builtins) -> Vec<String> {
    let turn = executor(builtins).turn(TurnOptions::default());
    let names = turn.definitions().iter().map(|definition| definition.name().to_owned());
    names.collect()
}

fn file_tools() -> Vec<ToolDefinition> {
    let definitions = native_tools().into_iter().map(|tool| (tool.definition)().unwrap());
    definitions.filter(|definition| definition.category() == "file").collect()
}

#[test]
fn only_one_profile_of_names_is_exposed() {
    let builtins = || Builtins::new().projects(Projects::in_folder("."));
    let mut expected: Vec<_> = NameProfile::Default.names().collect();
    expected.sort_unstable();
    assert_eq!(names(&builtins()), expected);
    let mut expected: Vec<_> = NameProfile::Harness.names().collect();
    expected.sort_unstable();
    assert_eq!(names(&builtins().profile(NameProfile::Harness)), expected);
}

#[tokio::test]
async fn both_names_of_a_tool_do_the_same() {
    let home = TempDir::new().unwrap();
    std::fs::write(home.path().join("a.txt"), "alpha").unwrap();
    let projects = Projects::in_folder(home.path());
    let crib = Crib::over(home, projects, NameProfile::Harness);
    assert_eq!(crib.text("read_file", json!({"path": "a.txt"})).await, "alpha");
    crib.fails("file_read", json!({"path": "a.txt"}), ErrorKind::NotFound).await;
    crib.text("write_file", json!({"path": "d/b.txt", "content": "b"})).await;
    crib.text("make_dir", json!({"path": "e"})).await;
    assert_eq!(crib.data("list_files", json!({})).await["total"], 3);
    assert_eq!(crib.data("search_files", json!({"pattern": "b"})).await["total"], 1);
    assert_eq!(crib.data("file_exists", json!({"path": "e"})).await["kind"], "folder");
    crib.text("delete_file", json!({"path": "d", "recursive": true})).await;
    let definitions = file_tools();
    for (default, harness) in NameProfile::Default.names().zip(NameProfile::Harness.names()) {
        let of = |name: &str| {
            let found = definitions.iter().find(|definition| definition.name() == name);
            let mut value = found.unwrap().to_full_value();
            value["name"] = json!(null);
            value
        };
        assert_eq!(of(default), of(harness));
    }
}

#[tokio::test]
async fn without_a_folder_the_tools_are_unavailable_with_the_reason() {
    let executor = executor(&Builtins::new());
    let turn = executor.turn(TurnOptions::default().services(Services::new()));
    assert!(turn.definitions().is_empty());
    let result = turn.call(ToolCall::new("1", "file_read", r#"{"path": "a"}"#)).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Unavailable));
    assert!(result.text().contains("no folder is configured"), "{}", result.text());
}

#[test]
fn every_tool_has_a_description_and_annotations() {
    for definition in file_tools() {
        let name = definition.name();
        let hints = definition.annotations();
        let reads = ["read", "list", "exists", "search"].iter().any(|verb| name.contains(verb));
        assert_eq!((hints.read_only, hints.open_world), (reads, false), "{name}");
        assert_eq!(hints.destructive, !reads && !name.contains("dir"), "{name}");
        assert!(definition.blocking() && definition.cache().is_none(), "{name}");
        let resources = definition.resources();
        let touched = if reads { resources.read() } else { resources.written() };
        assert_eq!(touched, ["files"], "{name}");
        let properties = &definition.input_schema()["properties"];
        assert!(properties.get("project_id").is_none(), "{name}: a model could choose");
        assert_eq!(definition.injections()[0].parameter(), "project_id", "{name}");
        for (property, schema) in properties.as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}.{property}");
        }
        let validator = jsonschema::validator_for(definition.input_schema()).unwrap();
        assert!(!validator.is_valid(&json!({"no_such_argument": 1})), "{name}");
        assert!(definition.input_examples().len() >= 3, "{name} has too few examples");
        for example in definition.input_examples() {
            assert!(validator.is_valid(example), "{name}: {example}");
        }
    }
}

#[test]
fn what_is_written_to_a_file_is_previewed() {
    let written = |name: &str, text: &str| {
        let tool =
            toolcrib_tool::native_tools().into_iter().find(|tool| tool.name == name).unwrap();
        let body = (tool.body)();
        assert!(body.previews(), "{name}");
        let (id, value) = (toolcrib_tool::CallId::new("1"), serde_json::from_str(text).unwrap());
        body.preview(&toolcrib_tool::PartialArguments::new(&id, &value))
            .and_then(|update| update.tip)
    };
    for (name, text, tip) in [
        ("write_file", r#"{"path": "a.txt"}"#, Some("writes a.txt")),
        (
            "file_write",
            r#"{"path": "a.txt", "content": "one\ntw"}"#,
            Some("writes a.txt, 2 lines so far"),
        ),
        (
            "write_file",
            r#"{"path": "a", "mode": "append", "content": "x"}"#,
            Some("appends to a, 1 line so far"),
        ),
        ("write_file", r#"{"content": "one"}"#, None),
        (
            "edit_file",
            r#"{"path": "a", "source_text": "x", "target_text": "y\nz"}"#,
            Some("edits a, 2 lines so far"),
        ),
        (
            "edit_file",
            r#"{"path": "a", "edits": [{"target_text": "y\nz"}, {"source_text": "b", "target_text": "c"}, {}]}"#,
            Some("edits a, 3 lines so far"),
        ),
        ("edit_file", r#"{"path": "a", "edits": [1, null]}"#, Some("edits a")),
    ] {
        assert_eq!(written(name, text).as_deref(), tip, "{text}");
    }
}
