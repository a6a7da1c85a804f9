//! What a run leaves behind and what it hides: audit, state, secrets.

use serde_json::Value;

use crate::crib::{Crib, run};

const STORY: &str = r#"
toolcrib: 1
tools:
  - name: story
    description: Print a long line. Read-only.
    annotations: {read_only: true}
    run: {argv: [printf, "the password is hunter2-secret and more"]}
"#;

#[test]
fn every_call_is_a_line_in_the_audit_log() {
    let crib = Crib::new(&[]);
    crib.config("audit: {file: audit.jsonl, arguments: redacted}\n");
    crib.run(&["call", "calculator", "expression=2+2"]);
    crib.run(&["call", "calculator", "expresion=2+2"]);
    crib.run(&["list"]);
    let text = std::fs::read_to_string(crib.path().join("audit.jsonl")).expect("it is written");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["success", "invalid_args"]);
    assert_eq!(lines[0]["arguments"]["expression"], "2+2");
}

#[test]
fn the_rest_of_a_long_output_is_read_by_the_next_run_from_the_state_directory() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("state: {dir: state}\noutput: {max_chars: 10}\n");
    let cut = crib.run(&["call", "story"]).stdout;
    let (_, rest) = cut.split_once(r#""handle":""#).expect("a handle");
    let handle = rest.split('"').next().expect("its end");
    let page = crib.run(&["call", "read_output", &format!("handle={handle}")]);
    assert_eq!(page.stdout, "the password is hunter2-secret and more\n", "{page:?}");
}

#[test]
fn looking_around_makes_no_directories() {
    let crib = Crib::new(&[]);
    crib.config("state: {dir: state}\naudit: {file: audit.jsonl}\n");
    assert_eq!(crib.run(&["list"]).code, Some(0));
    assert_eq!(crib.run(&["show", "calculator"]).code, Some(0));
    assert!(!crib.path().join("state").exists() && !crib.path().join("audit.jsonl").exists());
}

#[test]
fn what_cannot_be_opened_is_named_by_its_key() {
    let crib = Crib::new(&[]);
    crib.config("audit: {file: no/such/folder/audit.jsonl}\n");
    let run = crib.run(&["call", "calculator", "expression=1"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.starts_with("error: audit.file: the audit log no/such"), "{run:?}");
}

#[test]
fn secrets_are_masked_and_those_that_cannot_be_are_named() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("secrets:\n  token: {env: CRIB_TOKEN}\n  brief: {env: CRIB_SHORT}\n  gone: {env: CRIB_ABSENT}\n");
    let mut command = crib.command(&["call", "story"]);
    command.env("CRIB_TOKEN", "hunter2-secret").env("CRIB_SHORT", "abc").env_remove("RUST_LOG");
    let run = run(&mut command);
    assert_eq!(run.stdout, "the password is [masked] and more\n");
    let line = |name: &str| {
        let mut lines = run.stderr.lines();
        lines.find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {run:?}"))
    };
    assert!(line("brief").contains("too short to be masked: give it 4 bytes or more"));
    assert!(line("gone").contains("the server was started without the variable `CRIB_ABSENT`"));
    assert!(!run.stderr.contains("abc") && !run.stderr.contains("CRIB_TOKEN"), "{run:?}");
}
