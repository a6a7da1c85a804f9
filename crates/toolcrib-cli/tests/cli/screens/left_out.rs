//! Omitted output is reported once, with a count.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::crib::Crib;

const GOOD: &str = "toolcrib: 1
tools:
  - name: say_hello
    description: Say hello to somebody. Politely.
    run: {argv: [printf, hello]}
";

/// A crib with this many broken manifests beside a valid one.
fn broken(count: usize) -> Crib {
    let crib = Crib::new(&[("a.yaml", GOOD)]);
    for number in 0..count {
        let text = GOOD.replace("description", "descripton");
        fs::write(crib.path().join(format!("tools.d/b{number:03}.yaml")), text)
            .expect("the file system");
    }
    crib
}

#[test]
fn many_broken_files_are_one_line_outside_of_check() {
    let crib = broken(150);
    for command in [&["list"][..], &["call", "say_hello"]] {
        let run = crib.run(command);
        assert_eq!(run.code, Some(0), "{run:?}");
        let lines: Vec<_> =
            run.stderr.lines().filter(|line| line.starts_with("left out")).collect();
        let [line] = lines.as_slice() else { panic!("{run:?}") };
        assert!(
            line.contains("150 files with errors, the first at tools.d/b000.yaml:3:5"),
            "{line}"
        );
    }
    let check = crib.run(&["check", "--limit", "0"]);
    assert_eq!(check.stderr.matches("did you mean `description`?").count(), 150);
}

#[test]
fn repeated_hints_are_shown_once_with_a_count() {
    let crib = Crib::new(&[("a.yaml", GOOD)]);
    for number in 0..30 {
        let text = GOOD.replace("say_hello", &format!("say_{number}"));
        fs::write(crib.path().join(format!("tools.d/b{number:02}.yaml")), text)
            .expect("the file system");
    }
    let check = crib.run(&["check"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    assert_eq!(check.stderr.matches("hint[untested]").count(), 1);
    assert!(
        check.stderr.contains("and 30 more problems like it, at tools.d/b00.yaml:3:11, "),
        "{}",
        check.stderr
    );
    assert!(!check.stderr.contains("not shown"), "{}", check.stderr);
    assert!(check.stdout.contains("62 hints"), "{}", check.stdout);
    let whole = crib.run(&["check", "--limit", "0"]);
    assert_eq!(whole.stderr.matches("hint[untested]").count(), 31);
    let json = crib.run(&["check", "--json"]).json();
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(62));
}

#[test]
fn strict_fails_without_tests() {
    let crib = Crib::new(&[("a.yaml", GOOD)]);
    assert_eq!(crib.run(&["test"]).code, Some(0));
    let strict = crib.run(&["test", "--strict"]);
    assert_eq!(strict.code, Some(1));
    assert!(strict.stderr.contains("--strict wants at least one"), "{}", strict.stderr);
}

#[test]
fn a_readable_state_folder_does_not_prevent_listings() {
    let crib = Crib::new(&[("a.yaml", GOOD)]);
    crib.config("state: {dir: state}\n");
    let state = crib.path().join("state");
    fs::create_dir(&state).expect("the file system");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("the file system");
    for command in [
        &["list"][..],
        &["why", "say_hello"],
        &["show", "say_hello"],
        &["search", "hello"],
        &["export", "--format", "mcp"],
        &["call", "say_hello", "--dry-run"],
    ] {
        let run = crib.run(command);
        assert_eq!(run.code, Some(0), "{command:?} {run:?}");
        assert!(run.stderr.contains("the state folder cannot be used"), "{command:?} {run:?}");
    }
    let doctor = crib.run(&["doctor"]);
    assert!(doctor.stdout.contains("others may read"), "{doctor:?}");
}

#[test]
fn other_files_in_manifest_directories_are_counted_and_named() {
    let crib = Crib::new(&[
        ("a.yaml", GOOD),
        ("b.YAML", GOOD),
        ("c.json", "{}"),
        (".hidden", ""),
        ("a.yaml~", GOOD),
    ]);
    fs::create_dir_all(crib.path().join("tools.d/sub")).expect("the file system");
    fs::create_dir_all(crib.path().join("tools.d/available")).expect("the file system");
    for command in [&["check"][..], &["list", "--all"]] {
        let run = crib.run(command);
        let said = "3 entries of tools.d left aside: b.YAML, c.json, sub/; manifests end in";
        assert!(run.stderr.contains(said), "{run:?}");
    }
    let json = crib.run(&["check", "--json"]).json();
    assert_eq!(json["left_aside"].as_array().map(Vec::len), Some(3));
}

#[test]
fn files_that_a_manifest_names_are_not_told_as_left_aside() {
    let crib = Crib::new(&[("c.json", "{}")]);
    for (name, template) in [("ends", "script"), ("words", "worker")] {
        assert_eq!(crib.run(&["new", name, "--template", template]).code, Some(0));
    }
    for command in [&["check"][..], &["list", "--all"]] {
        let run = crib.run(command);
        assert!(run.stderr.contains("1 entry of tools.d left aside: c.json;"), "{run:?}");
    }
    let json = crib.run(&["check", "--json"]).json();
    assert_eq!(json["left_aside"], serde_json::json!(["tools.d/c.json"]));
}

#[test]
fn errors_come_first_and_hints_last() {
    let hint = GOOD.replace("say_hello", "say_a");
    let error = GOOD.replace("description", "descripton").replace("say_hello", "say_b");
    let warning = GOOD.replace("say_hello", "say_c").replace("to somebody. Politely.", "");
    let crib = Crib::new(&[("a.yaml", &hint), ("b.yaml", &error), ("c.yaml", &warning)]);
    let check = crib.run(&["check"]);
    let kinds = check.stderr.lines().filter_map(|line| Some(line.split_once('[')?.0));
    let kinds: Vec<&str> =
        kinds.filter(|kind| ["error", "warning", "hint"].contains(kind)).collect();
    let first = |kind: &str| kinds.iter().position(|own| *own == kind);
    let last = |kind: &str| kinds.iter().rposition(|own| *own == kind);
    assert!(last("error") < first("warning") && last("warning") < first("hint"), "{kinds:?}");
    assert!(first("error") == Some(0) && last("hint").is_some(), "{}", check.stderr);
}

#[test]
fn a_fix_without_edits_is_reported() {
    let crib = Crib::new(&[("a.yaml", GOOD)]);
    let check = crib.run(&["check", "--fix"]);
    assert!(check.stderr.contains("`--fix` changed nothing"), "{check:?}");
    assert!(!crib.run(&["check"]).stderr.contains("--fix"));
}

#[test]
fn a_shared_skip_reason_is_printed_once() {
    let test = |at| format!("      - {{name: number {at}, expect: {{text_contains: [x]}}}}\n");
    let tests = (0..5).map(test).collect::<Vec<_>>().concat();
    let tool = GOOD.replace("argv: [printf, hello]", "argv: [no-such-program-here]");
    let crib = Crib::new(&[("a.yaml", &format!("{tool}    tests:\n{tests}"))]);
    let run = crib.run(&["test"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout.matches("no-such-program-here").count(), 1, "{}", run.stdout);
    assert!(run.stdout.contains("\nskipped 5 tests: "), "{}", run.stdout);
    assert!(run.stdout.contains("  skipped  number 4\n"), "{}", run.stdout);
}
