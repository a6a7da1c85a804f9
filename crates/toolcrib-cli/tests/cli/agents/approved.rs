//! `toolcrib run --yes`: calls that are approved in advance.

use serde_json::json;
use toolcrib::wire::model::Wire;

use super::harness::crib;
use crate::harness::crib::{Crib, Run};

/// Runs an agent whose model notes these texts, one after the other.
fn noting(crib: &Crib, texts: &[&str], options: &[&str]) -> Run {
    let calls = texts.iter().map(|text| json!({"call": "note", "arguments": {"text": text}}));
    let script: Vec<_> = calls.chain([json!({"text": "Noted."})]).collect();
    let script = serde_json::to_string(&script).expect("JSON");
    std::fs::write(crib.path().join("script.json"), script).expect("a script");
    let all = [options, &["--model", "scripted:script.json", "Note it."]].concat();
    crib.run(&all)
}

fn noted(crib: &Crib) -> String {
    std::fs::read_to_string(crib.path().join("notes.txt")).unwrap_or_default()
}

fn agent() -> Crib {
    crib(Wire::Chat, "http://127.0.0.1:9/v1")
}

#[test]
fn calls_that_a_rule_names_run_without_a_question_and_are_told() {
    let crib = agent();
    let run = noting(&crib, &["a", "b"], &["run", "--yes", "no*"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Noted.\n"), "{run:?}");
    assert_eq!(noted(&crib), "a\nb\n");
    assert!(run.stderr.contains(r#"approved by --yes: note {"text":"b"}"#), "{run:?}");
}

#[test]
fn a_rule_about_arguments_approves_nothing_else() {
    let crib = agent();
    let rule = r#"{"tool": "note", "arguments": {"text": {"glob": "a*"}}}"#;
    let run = noting(&crib, &["ab", "b"], &["run", "--yes", rule]);
    assert_eq!((run.code, noted(&crib).as_str()), (Some(3), "ab\n"), "{run:?}");
    assert!(run.stderr.contains("waits for approval"), "{run:?}");
    let run = crib.run(&["run", "--resume", "--yes", "say"]);
    assert_eq!((run.code, noted(&crib).as_str()), (Some(3), "ab\n"), "{run:?}");
    let run = crib.run(&["run", "--resume", "--yes", "say", "--yes", "note"]);
    assert_eq!((run.code, noted(&crib).as_str()), (Some(0), "ab\nb\n"), "{run:?}");
}

#[test]
fn a_call_that_a_policy_denies_stays_denied() {
    for policy in
        ["policy.rules=[{tool: note, action: deny, message: Never.}]", "policy.on_ask=deny"]
    {
        let crib = agent();
        let run = noting(&crib, &["a"], &["--set", policy, "run", "--yes", "*"]);
        assert_eq!((run.code, noted(&crib).as_str()), (Some(0), ""), "{run:?}");
        let is_told = run.stderr.contains("denied") && !run.stderr.contains("approved by");
        assert!(is_told, "{run:?}");
    }
}

#[test]
fn a_rule_about_no_tool_is_told() {
    let crib = agent();
    let run = noting(&crib, &["a"], &["run", "--yes", "nosuch", "--yes", "no*"]);
    assert_eq!((run.code, noted(&crib).as_str()), (Some(0), "a\n"), "{run:?}");
    assert!(run.stderr.contains("--yes nosuch: no tool has such a name"), "{run:?}");
    assert!(!run.stderr.contains("--yes no*"), "{run:?}");
}

#[test]
fn a_wrong_rule_is_refused() {
    let crib = agent();
    for (rule, why) in [
        ("a b", "a rule is a tool's name"),
        ("{}", "no condition"),
        (r#"{"tool": "note", "action": "allow"}"#, "`action` has no place here"),
        (r#"{"arguments": {"text": {"regex": "("}}}"#, "regular expression"),
    ] {
        let run = noting(&crib, &["a"], &["run", "--yes", rule]);
        assert!(run.code == Some(2) && run.stderr.contains(why), "{rule}: {run:?}");
    }
}
