//! Calls that need approval: asked on a terminal, approved by a flag, denied without either.

use crate::harness::crib::Crib;

const TOUCH: &str = r#"
toolcrib: 1
tools:
  - name: touch_file
    description: Make an empty file.
    input: {properties: {path: {type: string}, token: {type: string, writeOnly: true}}, required: [path]}
    run: {argv: [touch, "--", "${args.path}"]}
"#;

const ASK: &str = "policy: {rules: [{name: writes, tool: touch_*, action: ask}]}\n";

fn crib(config: &str) -> Crib {
    let crib = Crib::new(&[("touch.yaml", TOUCH)]);
    crib.config(config);
    crib
}

fn touched(crib: &Crib) -> bool {
    crib.path().join("made").exists()
}

#[test]
fn without_a_terminal_it_is_denied_and_told_how_to_approve() {
    let crib = crib(ASK);
    let run = crib.run(&["call", "touch_file", "path=made"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(run.stderr, @"
    Error executing touch_file: a rule of the host asks for approval of this call, and there is no terminal to ask on
    Nothing was run. To approve this one call, repeat it with `--yes`; `--dry-run` shows what it would do.
    ");
    let json = crib.run(&["call", "touch_file", "path=made", "--json"]).json();
    assert_eq!(json["error"]["kind"], "denied");
    assert!(!touched(&crib));
}

#[test]
fn yes_approves_asked_calls_but_not_denied_ones() {
    let asked = crib(ASK);
    let run = asked.run(&["call", "touch_file", "path=made", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(touched(&asked));

    let denied = crib("policy: {rules: [{tool: touch_*, action: deny, message: Not here.}]}\n");
    let run = denied.run(&["call", "touch_file", "path=made", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("Not here."), "{run:?}");
    assert!(!touched(&denied));
}

#[test]
fn allowed_calls_need_no_flag() {
    let crib = crib("policy: {on_ask: allow, rules: [{tool: touch_*, action: ask}]}\n");
    assert_eq!(crib.run(&["call", "touch_file", "path=made"]).code, Some(0));
    assert!(touched(&crib));
}

/// A call that is asked about at a terminal.
const CALL: &str = "call touch_file path=made token=hunter2";

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_it_is_asked_about_and_only_a_yes_runs_it() {
    let yes = crib(ASK);
    let run = yes.dialogue(CALL, &[("Run it? [y/N] ", "y\n")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(touched(&yes));
    for part in [
        "approval needed touch_file",
        "policy.rules[0] (writes)",
        "\"path\":\"made\"",
        "runs: ",
        "sandbox: workspace",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    assert!(!run.stdout.contains("hunter2"), "{run:?}");

    let no = crib(ASK);
    let run = no.dialogue(CALL, &[("Run it? [y/N] ", "x\n"), ("Run it? [y/N] ", "\n")]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("the operator did not approve the call"), "{run:?}");
    assert!(!touched(&no));
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_typed_before_a_call_can_have_been_read_does_not_approve_it() {
    let crib = crib(ASK);
    let run = crib.dialogue(CALL, &[("approval needed", "y\n"), ("Run it? [y/N] ", "n\n")]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(!touched(&crib));
}
