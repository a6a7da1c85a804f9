//! What policies decide.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_tool::{Approval, Arguments, Layer, Source, ToolDefinition, ToolEntry, tool_fn};

use super::{Action, ArgumentPattern, DecidedBy, OnAsk, Policy, PolicyRule, Verdict};
use crate::AnnotationPattern;

fn entry(name: &str, approval: Approval, read_only: bool) -> ToolEntry {
    let definition = ToolDefinition::builder(name)
        .description("A tool.")
        .approval(approval)
        .read_only(read_only)
        .build()
        .expect("it is right");
    let body = Arc::new(tool_fn(|_: Value, _| async { "done" }));
    ToolEntry::new(definition, body, Source::new(Layer::Manifest, "tools.d/a.yml"))
}

fn arguments(value: &Value) -> Arguments {
    Arguments::from_validated(value.to_string())
}

fn decide(rules: impl IntoIterator<Item = PolicyRule>, arguments_: &Value) -> Verdict {
    let policy = Policy::new(OnAsk::Wait, rules).expect("the rules are right");
    policy.decide(&entry("db_query", Approval::Never, false), &arguments(arguments_))
}

fn by_rule(position: usize) -> DecidedBy {
    DecidedBy::Rule { position, name: None }
}

#[test]
fn without_a_matching_rule_the_definition_decides() {
    let policy = Policy::default();
    for (approval, read_only, asks) in [
        (Approval::Never, false, false),
        (Approval::Destructive, false, true),
        (Approval::Destructive, true, false),
        (Approval::Always, true, true),
    ] {
        let entry = entry("t", approval, read_only);
        let verdict = policy.decide(&entry, &arguments(&json!({})));
        assert_eq!(matches!(verdict, Verdict::Ask { .. }), asks, "{approval:?}, {read_only}");
        assert_eq!(verdict.by(), &DecidedBy::Definition);
        assert_eq!(policy.needs_look(&entry.definition), asks);
    }
}

#[test]
fn every_condition_of_a_rule_must_hold() {
    let rule = || {
        PolicyRule::deny()
            .tool("db_*")
            .source("manifest:tools.d/*")
            .annotations(AnnotationPattern { destructive: Some(true), ..Default::default() })
            .argument("table", ArgumentPattern::glob("user*"))
    };
    let call = json!({"table": "users"});
    assert!(matches!(decide([rule()], &call), Verdict::Deny { .. }));
    for weaker in [
        rule().tool("fs_*"),
        rule().source("host"),
        rule().annotations(AnnotationPattern { open_world: Some(false), ..Default::default() }),
        rule().argument("table", ArgumentPattern::glob("orders")),
        rule().argument("missing", ArgumentPattern::glob("*")),
    ] {
        assert!(matches!(decide([weaker], &call), Verdict::Allow { .. }));
    }
}

#[test]
fn arguments_are_found_by_name_and_by_pointer_and_seen_as_text_or_as_value() {
    let call = json!({
        "path": "/etc/passwd",
        "options": {"depth": 3, "a/b": [1, "x"]},
        "/odd": true,
    });
    for (place, pattern, matches) in [
        ("path", ArgumentPattern::glob("/etc/*"), true),
        ("path", ArgumentPattern::glob("/etc"), false),
        ("path", ArgumentPattern::regex("passwd$"), true),
        ("/path", ArgumentPattern::equals("/etc/passwd"), true),
        ("/options/depth", ArgumentPattern::equals(3.0), true),
        ("/options/depth", ArgumentPattern::equals("3"), false),
        ("/options/depth", ArgumentPattern::glob("3"), true),
        ("options", ArgumentPattern::equals(json!({"a/b": [1.0, "x"], "depth": 3})), true),
        ("options", ArgumentPattern::equals(json!({"depth": 3})), false),
        ("/options/a~1b", ArgumentPattern::glob(r#"[1,"x"]"#), true),
        ("/options/a~1b/1", ArgumentPattern::equals("x"), true),
        ("/~1odd", ArgumentPattern::equals(true), true),
        ("options.depth", ArgumentPattern::glob("*"), false),
    ] {
        let verdict = decide([PolicyRule::deny().argument(place, pattern.clone())], &call);
        assert_eq!(matches!(verdict, Verdict::Deny { .. }), matches, "{place} {pattern:?}");
    }
}

#[test]
fn large_integers_are_not_compared_as_doubles() {
    let rule = PolicyRule::deny().argument("n", ArgumentPattern::equals(9_007_199_254_740_993_u64));
    let verdict = decide([rule], &json!({"n": 9_007_199_254_740_992_u64}));
    assert!(matches!(verdict, Verdict::Allow { .. }));
}

#[test]
fn a_config_files_policy_is_read_and_its_mistakes_are_named() {
    let policy: Policy = serde_json::from_value(json!({
        "on_ask": "allow",
        "rules": [
            {"name": "no drops", "tool": "db_*", "action": "deny", "message": "No.",
             "annotations": {"read_only": false}, "arguments": {"sql": {"regex": "drop"}}},
            {"source": "manifest", "action": "ask"},
        ],
    }))
    .expect("it is right");
    let entry = entry("db_query", Approval::Never, false);
    let verdict = policy.decide(&entry, &arguments(&json!({"sql": "drop it"})));
    let by = DecidedBy::Rule { position: 0, name: Some("no drops".into()) };
    assert_eq!(verdict, Verdict::Deny { by, message: "No.".to_owned() });
    let verdict = policy.decide(&entry, &arguments(&json!({})));
    assert_eq!(verdict, Verdict::Allow { by: by_rule(1) });

    for (written, message) in [
        (json!({"on_ask": "wild"}), "unknown variant `wild`"),
        (json!({"rule": []}), "unknown field `rule`"),
        (json!({"rules": [{"tool": "a"}]}), "missing field `action`"),
        (json!({"rules": [{"action": "ask", "args": {}}]}), "unknown field `args`"),
        (
            json!({"rules": [{"action": "ask"}, {"action": "ask", "arguments": {"a": {"regex": "["}}}]}),
            "`[` is not a regular expression",
        ),
    ] {
        let error = serde_json::from_value::<Policy>(written).expect_err("it is wrong");
        assert!(error.to_string().contains(message), "{error}");
    }
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![Just(Action::Allow), Just(Action::Ask), Just(Action::Deny)]
}

/// A rule over the calls below, and whether it matches by an independent reading.
fn rule() -> impl Strategy<Value = (Action, Option<&'static str>, Option<u8>)> {
    let tool = prop::option::of(prop_oneof![Just("a"), Just("b"), Just("?"), Just("a*")]);
    (action(), tool, prop::option::of(0..3_u8))
}

proptest! {
    #[test]
    fn the_first_matching_rule_decides_and_no_setting_lifts_a_denial(
        rules in prop::collection::vec(rule(), 0..6),
        name in prop_oneof![Just("a"), Just("b")],
        n in 0..3_u8,
    ) {
        let written = || rules.iter().map(|(action, tool, n)| {
            let mut rule = PolicyRule::new(*action);
            if let Some(tool) = tool { rule = rule.tool(*tool); }
            if let Some(n) = n { rule = rule.argument("n", ArgumentPattern::equals(*n)); }
            rule
        });
        let expected = rules.iter().position(|(_, tool, wanted)| {
            tool.is_none_or(|tool| tool == name || tool == "?" || tool == "a*" && name == "a")
                && wanted.is_none_or(|wanted| wanted == n)
        });
        let entry = entry(name, Approval::Always, true);
        let call = arguments(&json!({"n": n}));
        let guarded = Policy::new(OnAsk::Wait, written()).unwrap().decide(&entry, &call);
        let unasked = Policy::new(OnAsk::Allow, written()).unwrap().decide(&entry, &call);
        let refusing = Policy::new(OnAsk::Deny, written()).unwrap();
        let refused = refusing.decide(&entry, &call);
        prop_assert_eq!(refused.by(), guarded.by());
        for on_ask in [OnAsk::Wait, OnAsk::Allow, OnAsk::Deny] {
            let policy = Policy::new(on_ask, written()).unwrap();
            if let Some(verdict) = policy.verdict_of_every_call(&entry) {
                let decided = policy.decide(&entry, &call);
                prop_assert_eq!(
                    std::mem::discriminant(&verdict),
                    std::mem::discriminant(&decided)
                );
            }
        }

        let by = expected.map_or(DecidedBy::Definition, by_rule);
        prop_assert_eq!(guarded.by(), &by);
        let action = expected.map_or(Action::Ask, |position| rules[position].0);
        match action {
            Action::Allow => {
                prop_assert_eq!(&guarded, &Verdict::Allow { by });
                prop_assert_eq!(&guarded, &unasked);
                prop_assert_eq!(&guarded, &refused);
            }
            Action::Ask => {
                let asked = matches!(guarded, Verdict::Ask { .. });
                prop_assert!(asked);
                prop_assert_eq!(unasked, Verdict::Allow { by });
                let refused = matches!(refused, Verdict::Deny { .. });
                prop_assert!(refused);
            }
            Action::Deny => {
                let denied = matches!(guarded, Verdict::Deny { .. });
                prop_assert!(denied);
                prop_assert_eq!(&guarded, &unasked);
                prop_assert_eq!(&guarded, &refused);
            }
        }
    }
}

#[test]
fn a_tool_is_denied_altogether_only_where_no_call_gets_past_the_rules() {
    let denies = |rules: Vec<PolicyRule>| {
        let policy = Policy::new(OnAsk::Wait, rules).expect("the rules are right");
        let verdict = policy.verdict_of_every_call(&entry("db_query", Approval::Never, false));
        verdict.filter(|verdict| matches!(verdict, Verdict::Deny { .. }))
    };
    let drops = || ArgumentPattern::glob("drop*");
    assert!(denies(vec![PolicyRule::deny().tool("db_*")]).is_some());
    assert!(denies(vec![PolicyRule::deny().argument("sql", drops())]).is_none());
    assert!(denies(vec![PolicyRule::deny().tool("file_*")]).is_none());
    let narrow = PolicyRule::deny().argument("sql", drops());
    assert!(matches!(
        denies(vec![narrow, PolicyRule::deny()]),
        Some(Verdict::Deny { by, .. }) if by == by_rule(1)
    ));
    let allowed = PolicyRule::allow().argument("sql", drops());
    assert!(denies(vec![allowed, PolicyRule::deny()]).is_none());
    assert!(denies(vec![PolicyRule::ask(), PolicyRule::deny()]).is_none());
}

#[test]
fn every_call_asks_only_if_no_arguments_get_past_the_question() {
    let asks = |rules: Vec<PolicyRule>, approval| {
        let policy = Policy::new(OnAsk::Wait, rules).expect("the rules are right");
        let verdict = policy.verdict_of_every_call(&entry("db_query", approval, false));
        matches!(verdict, Some(Verdict::Ask { .. }))
    };
    let reads = || ArgumentPattern::glob("select*");
    assert!(asks(Vec::new(), Approval::Always));
    assert!(!asks(Vec::new(), Approval::Never));
    assert!(asks(vec![PolicyRule::ask().tool("db_*")], Approval::Never));
    assert!(!asks(vec![PolicyRule::allow().argument("sql", reads())], Approval::Always));
    assert!(asks(vec![PolicyRule::ask().argument("sql", reads())], Approval::Always));
}
