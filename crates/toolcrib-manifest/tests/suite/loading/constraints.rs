//! Constraints: what is found out about a rule when its file is loaded.

#[cfg(feature = "cel")]
use insta::assert_snapshot;
use toolcrib_manifest::load_str;

const TOOL: &str = "toolcrib: 1
tools:
  - name: logs
    description: Read the last lines of a log.
    input:
      properties:
        lines: {type: integer, default: 200}
        since: {type: string}
        until: {type: string}
        follow: {type: boolean, default: false}
        ratio: {type: number, default: 1}
    context:
      cluster: {from: ctx.cluster_name}
    run:
      argv: [logs, \"--tail=${args.lines}\", \"--since=${args.since}\", \"--until=${args.until}\", {if: follow, then: [-f]}, \"${args.ratio}\"]
    constraints:
";

fn with(constraints: &str) -> String {
    let lines: Vec<_> = constraints.lines().map(|line| format!("      {line}")).collect();
    format!("{TOOL}{}\n", lines.join("\n"))
}

fn shown(constraints: &str) -> String {
    let text = with(constraints);
    let loaded = load_str("logs.yaml", &text);
    let problems = loaded.diagnostics.iter();
    problems
        .map(|problem| problem.render("logs.yaml", &text, false))
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[test]
#[cfg(feature = "cel")]
fn right_ones_are_declared_and_say_nothing() {
    let text = with(
        "- {rule: \"args.lines <= 500 || ctx.cluster == 'dev'\", message: At most 500 lines.}
- rule: >-
    !has(args.since) ||
    has(args.until)
  message: Give until together with since.
- {rule: 'args.follow ? ctx.user == \"ada\" : args.ratio * 2.0 < 3.0', message: \" No. \"}",
    );
    let loaded = load_str("logs.yaml", &text);
    assert_eq!(loaded.diagnostics, []);
    let constraints = &loaded.declarations[0].constraints;
    assert_eq!(constraints[1].rule, "!has(args.since) || has(args.until)");
    assert_eq!(constraints[2].message, "No.");
    let before = loaded.declarations[0].digest();
    let other = load_str("logs.yaml", &text.replace("<= 500", "<= 501"));
    assert_ne!(other.declarations[0].digest(), before, "rules are a part of what is locked");
}

#[test]
#[cfg(feature = "cel")]
fn an_argument_that_only_a_rule_asks_about_is_used() {
    let text = "toolcrib: 1
tools:
  - name: t
    description: A tool.
    input: {properties: {sure: {type: boolean}}, required: [sure]}
    run: {argv: [rm, x]}
    constraints: [{rule: args.sure, message: Be sure.}]
";
    assert_eq!(load_str("t.yaml", text).diagnostics, []);
}

#[test]
#[cfg(feature = "cel")]
fn wrong_ones_are_shown_with_their_place_in_the_rule() {
    assert_snapshot!(
        "constraints",
        shown(
            "- {rule: \"args.lnes <= 500\", message: m}
- {rule: \"args.lines <= 500 || ctx.clster == 'dev'\", message: m}
- {rule: \"args.lines <= \", message: m}
- {rule: args.lines, message: m}
- rule: args.follow && sice(args.since) > 1
  message: m
- {rule: \"args.since > '2020'\", message: m}
- {rule: \"args.lines == 'a\\tb' && foo\", message: \"\"}
- {rul: \"true\", message: m}
- args.lines <= 500
- {rule: 5, message: m}"
        )
    );
}

#[test]
#[cfg(feature = "cel")]
fn more_than_anybody_reads_are_refused() {
    let rules: Vec<_> = (0..33).map(|_| "- {rule: \"true\", message: m}").collect();
    let loaded = load_str("logs.yaml", &with(&rules.join("\n")));
    assert_eq!(loaded.diagnostics[0].message, "a tool has at most 32 constraints");
}

#[test]
#[cfg(not(feature = "cel"))]
fn a_program_that_cannot_check_them_takes_no_file_with_them() {
    let told = shown("- {rule: \"args.lines <= 500\", message: At most 500 lines.}");
    assert!(told.starts_with("error[not-supported-yet]: `constraints`"), "{told}");
    assert!(told.contains("without the feature `cel`"), "{told}");
    assert!(load_str("logs.yaml", &with("[]")).declarations.is_empty());
}
