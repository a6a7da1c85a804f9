//! Which rules are refused when they are parsed, what they decide, and their maximum cost.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_constraints::{Constraints, Kind, Names, Rule, RuleError};
use toolcrib_tool::{Arguments, Constraint, ContextValues, ErrorKind, ToolError};

fn arguments(value: &Value) -> Arguments {
    Arguments::from_validated(value.to_string())
}

fn rules(texts: &[&str]) -> Constraints {
    let rules = texts.iter().map(|text| {
        let rule = Rule::parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        (rule, format!("Broken: {text}"))
    });
    Constraints::new(rules)
}

fn ask(text: &str, args: &Value) -> Result<(), ToolError> {
    let values = ContextValues::new()
        .with("cluster", "dev")
        .with("user", json!({"name": "ada", "roles": ["ops"]}))
        .with("gone", Value::Null);
    rules(&[text]).check(&arguments(args), &values)
}

#[test]
fn satisfied_rules_accept_the_call() {
    let args = json!({
        "lines": 200, "ratio": 0.5, "pod": "web-1", "names": ["a", "b"], "on": true,
        "deep": {"list": [{"n": 1}, {"n": 2}]}, "huge": 18_446_744_073_709_551_615_u64, "text": "é😀",
    });
    for text in [
        "args.lines <= 500 || ctx.cluster == 'prod'",
        "args.lines > 500 ? ctx.cluster == 'prod' : true",
        "args.on",
        "!(args.lines == 5)",
        "args.lines == 200 && args.lines + 1 == 201 && args.lines % 2 == 0 && -args.lines < 0",
        "args.lines > 199.5 && args.ratio < 1 && args.ratio * 2.0 == 1.0",
        "args.huge > 1",
        "args.pod.startsWith('web-') && args.pod.endsWith('1') && args.pod.contains('b')",
        "size(args.names) == 2 && args.names.size() == 2 && args.names[0] == 'a'",
        "'a' in args.names && !('c' in args.names)",
        "'pod' in args && !('nope' in args) && has(args.pod) && !has(args.nope)",
        "args['pod'] == 'web-1'",
        "args.names.all(n, n != 'root') && args.names.exists(n, n == 'a')",
        "args.names.exists_one(n, n == 'a')",
        "args.deep.list.map(x, x.n) == [1, 2]",
        "size(args.deep.list.filter(x, x.n > 1)) == 1",
        "args.names.all(a, args.names.exists(b, a == b))",
        "ctx.user.name == 'ada' && 'ops' in ctx.user.roles",
        "!has(ctx.gone) && !has(ctx.unknown)",
        "size(args.text) == 2",
        "string(args.lines) == '200' && int('5') == 5 && double(args.lines) == 200.0",
        "type(args.pod) == string",
        "args.lines in [100, 200]",
        "{'dev': 500, 'prod': 50}[ctx.cluster] >= args.lines",
    ] {
        assert!(ask(text, &args).is_ok(), "{text}: {:?}", ask(text, &args));
    }
}

#[test]
fn a_rule_that_cannot_be_evaluated_refuses_the_call() {
    let args = json!({"lines": 200, "pod": "web", "list": [1]});
    for (text, said) in [
        ("args.missing > 5", "`missing` is absent"),
        ("args.pod > 5", "found no matching overload"),
        ("args.pod", "the rule yields a string"),
        ("args.list[7] == 1", "could not be checked"),
        ("args.lines / 0 == 1", "could not be checked"),
        ("ctx.gone == 1", "`gone` is absent"),
        ("args.lines + 9223372036854775807 > 0", "could not be checked"),
        ("args.list.map(x, x).exists(x, x.y)", "could not be checked"),
    ] {
        let refused = ask(text, &args).expect_err(text);
        assert_eq!(refused.kind(), ErrorKind::Constraint, "{text}");
        let message = refused.message();
        assert!(message.starts_with("Broken: ") && message.contains(said), "{text}: {message}");
    }
    // Context values belong to the host, and no message contains them.
    let refused =
        ask("ctx.user == 5 || ctx.user.name > 5", &args).expect_err("it cannot be decided");
    assert!(
        !refused.message().contains("ada") && refused.hints().iter().all(|h| !h.contains("ada"))
    );
}

#[test]
fn all_broken_rules_are_reported_at_once() {
    let rules = rules(&["args.a == 1", "args.b == 1", "true"]);
    let refused = rules.check(&arguments(&json!({"a": 2, "b": 2})), &ContextValues::new());
    let refused = refused.expect_err("two are broken");
    assert_eq!(refused.message(), "the call breaks 2 rules of this tool");
    assert_eq!(refused.hints().len(), 3, "{:?}", refused.hints());
}

#[test]
fn a_whole_number_is_a_double_if_the_schema_type_is_number() {
    let schema = json!({"properties": {"ratio": {"type": "number"}, "n": {"type": "integer"}}});
    let rule = || vec![(Rule::parse("args.ratio * 2.0 < 3.0").expect("right"), "No.".to_owned())];
    let args = arguments(&json!({"ratio": 1}));
    let values = ContextValues::new();
    assert!(Constraints::new(rule()).check(&args, &values).is_err(), "int times double");
    assert!(Constraints::new(rule()).with_schema(&schema).check(&args, &values).is_ok());
}

#[test]
fn an_unrepresentable_number_is_refused_if_a_rule_uses_it() {
    let asks = |rule: &str, args: &str| {
        rules(&[rule]).check(&Arguments::from_validated(args.to_owned()), &ContextValues::new())
    };
    for (rule, args, number) in [
        // After rounding, each of these would be true.
        (
            "args.n <= 18446744073709551616.0",
            r#"{"n":18446744073709551617}"#,
            "18446744073709551617",
        ),
        ("args.n >= 0.1", r#"{"n":0.09999999999999999999999}"#, "0.09999999999999999999999"),
        ("args.n != args.m", r#"{"n":123456789012345678901,"m":123456789012345678902}"#, "1234"),
        ("args['n'] != 5", r#"{"n":-9223372036854775809}"#, "-9223372036854775809"),
        ("args.all.exists(n, n < 1.0)", r#"{"all":[2,0.99999999999999999999999999]}"#, "0.9999"),
    ] {
        let refused = asks(rule, args).expect_err(rule);
        assert!(refused.message().contains(number), "{rule}: {}", refused.message());
        assert!(refused.message().contains("64-bit integers and doubles"), "{}", refused.message());
    }
    let wide = r#"{"n":3,"id":123456789012345678901}"#;
    assert!(asks("args.n == 3", wide).is_ok(), "no rule asks about it");
    for kept in ["18446744073709551615", "-9223372036854775808", "0.1", "1e2", "-0", "1e300"] {
        assert!(asks("args.n > -1e19", &format!("{{\"n\":{kept}}}")).is_ok(), "{kept}");
    }
    assert!(asks("args.n == 100.0", r#"{"n":1e2}"#).is_ok());
}

#[test]
fn a_whole_number_beyond_doubles_is_refused_if_the_schema_type_is_number() {
    let schema = json!({"properties": {"n": {"type": "number"}}});
    let rule = Rule::parse("args.n <= 9007199254740992.0").expect("right");
    let rules = Constraints::new([(rule, "No.".to_owned())]).with_schema(&schema);
    let asks = |n: &str| {
        let args = Arguments::from_validated(format!("{{\"n\":{n}}}"));
        rules.check(&args, &ContextValues::new())
    };
    let refused = asks("9007199254740993").expect_err("it is larger");
    assert!(refused.message().contains("9007199254740993"), "{}", refused.message());
    assert!(asks("9007199254740992").is_ok());
    assert!(asks("-9223372036854775808").is_ok());
    assert_eq!(asks("9007199254740994").expect_err("it is larger").message(), "No.");
}

#[test]
fn a_context_parameter_has_the_name_in_its_tool() {
    let rule = Rule::parse("ctx.where == 'dev'").expect("right");
    let rules = Constraints::new([(rule, "No.".to_owned())]).with_context("where", "cluster");
    let values = ContextValues::new().with("cluster", "dev").with("where", "elsewhere");
    assert!(rules.check(&arguments(&json!({})), &values).is_ok());
}

fn names() -> Names {
    Names::new()
        .argument("lines", Kind::Other, true)
        .argument("previous", Kind::Boolean, false)
        .argument("any", Kind::Unknown, false)
        .context("cluster")
        .context("user")
}

fn wrong(text: &str) -> Vec<RuleError> {
    Rule::parse_for(text, &names()).err().unwrap_or_default()
}

#[test]
fn errors_in_a_rule_are_found_when_it_is_parsed() {
    let mut missed = Vec::new();
    for (text, place, message, help) in [
        ("", "", "the rule is empty", "write one such as"),
        ("args.lines <=", "", "the rule ends too early", ""),
        ("args.lines <= 5 5", "5", "unexpected '5' here", ""),
        ("args.lines = 5", "=", "the rule is not a CEL expression", ""),
        ("args.lnes <= 5", "lnes", "no argument is called `lnes`", "did you mean `lines`?"),
        ("args['lnes'] == 5", "lnes", "no argument is called `lnes`", "did you mean `lines`?"),
        ("has(args.previos)", "previos", "no argument is called", "did you mean `previous`?"),
        ("args.cluster == 'a'", "cluster", "no argument", "write `ctx.cluster`"),
        ("ctx.clster == 'a'", "clster", "no context value", "did you mean `cluster`?"),
        ("ctx.zone == 'a'", "zone", "no context value is called", "declare it: `context:"),
        ("lines <= 5", "lines", "nothing called `lines`", "write `args.lines`"),
        ("arg.lines <= 5", "arg", "nothing called `arg`", "did you mean `args`?"),
        ("ctx.cluster == dev", "dev", "nothing called `dev`", "put strings in quotes"),
        ("args.lines", "lines", "the rule is an argument of another type", "compare it"),
        ("'always'", "'", "the rule is a text", "compare it"),
        ("args.lines + 1", "+", "the rule is a sum", "compare it"),
        ("size(ctx.user)", "(", "the rule is a number", "compare it"),
        ("args.lines && true", "lines", "this is an argument of another type", "compare it"),
        ("!(args.lines)", "lines", "this is an argument of another type", "compare it"),
        ("true ? 1 : true", "?", "the rule is a number", "compare it"),
        ("ctx.user.matches('a')", "(", "no function `matches`", "`pattern`"),
        ("siz(ctx.user) == 1", "(", "no function `siz`", "did you mean `size`?"),
        ("now() > 5", "(", "no function `now`", "there are contains"),
        ("Thing{a: 1} == 5", "{", "do not support messages", "write a map"),
        ("[1].all(x, y > 1)", "y", "nothing called `y`", ""),
    ] {
        let errors = wrong(text);
        let first = errors.first().unwrap_or_else(|| panic!("nothing is wrong with {text}"));
        let right = first.message.contains(message)
            && first.help.as_deref().unwrap_or_default().contains(help)
            && text[first.range.clone()].starts_with(place);
        if !right {
            missed.push(format!("{text}: {:?}: {errors:?}", &text[first.range.clone()]));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    for right in [
        "args.previous",
        "args.any",
        "args.any || args.previous",
        "[1, 2].all(x, x > args.lines)",
        "[[1]].all(x, x.exists(y, y == args.lines))",
        "ctx.user.anything.below == 1",
        "args.previous ? args.lines < 5 : ctx.cluster == 'dev'",
    ] {
        assert_eq!(wrong(right), [], "{right}");
    }
}

#[test]
fn an_optional_argument_without_has_is_reported() {
    let uses = |text: &str| Rule::parse(text).expect("right").uses(&names());
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(uses("args.previous && args.lines < 5").unguarded, of(&["previous"]));
    assert_eq!(uses("args.previous && args.lines < 5").arguments, of(&["lines", "previous"]));
    assert_eq!(uses("!has(args.previous) || args.previous").unguarded, of(&[]));
    assert_eq!(uses("'any' in args && args.any == 1").unguarded, of(&[]));
    assert_eq!(uses("args['any'] == 1").unguarded, of(&["any"]));
}

#[test]
fn rules_are_limited_when_they_are_parsed() {
    let long = format!("args.lines == {}", "1".repeat(3_000));
    assert!(wrong(&long)[0].message.contains("more than 2000 bytes"));
    for deep in [
        format!("{}true{}", "(".repeat(900), ")".repeat(900)),
        format!("{}true", "!".repeat(1_500)),
        format!("{}1 == 1", "-".repeat(1_500)),
        format!("true{}", " && true".repeat(240)),
        format!("1{} == 1", " + 1".repeat(450)),
        format!("{}1{} == []", "[".repeat(900), "]".repeat(900)),
        format!("args{} == 1", ".a".repeat(900)),
        format!("{}true{}", "true ? ".repeat(100), " : true".repeat(100)),
    ] {
        // Refused or accepted, but never a stack overflow.
        let _ = wrong(&deep);
    }
    let loops = "[1].all(a, [1].all(b, [1].all(c, a + b + c > 0)))";
    assert!(wrong(loops)[0].message.contains("more than 2 deep"), "{:?}", wrong(loops));
}

#[test]
fn rules_are_limited_when_they_are_evaluated() {
    let numbers: Vec<u32> = (0..700).collect();
    let small = json!({"list": numbers.iter().take(400).collect::<Vec<_>>()});
    let large = json!({"list": numbers});
    let pairs = "args.list.all(a, args.list.all(b, a + b >= 0))";
    let began = Instant::now();
    assert!(ask(pairs, &small).is_ok());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let refused = ask(pairs, &large).expect_err("it would be too much work");
    assert_eq!(refused.kind(), ErrorKind::Constraint);
    assert!(refused.message().contains("at most 2048"), "{}", refused.message());
    assert!(ask("args.list.all(a, a >= 0)", &large).is_ok(), "one loop is less work");
    let huge = json!({"text": "x".repeat(2_000_000)});
    assert!(ask("args.text != 'y'", &huge).is_err());
}

fn piece() -> impl Strategy<Value = String> {
    let known = [
        "args", "ctx", ".lines", ".user", "(", ")", "[", "]", "{", "}", "'a'", "\"b\"", "5", "5u",
        "0x1f", "1e9", " && ", " || ", "!", " == ", " in ", " ? ", " : ", ",", ".all(x, ", "has(",
        "size(", "b'x'", "r'\\d'", "'''", "\\", "`", "é", "😀", "\n", "//", "-", "+", "%", "null",
        "true", "@in", "_", "$", "x", ".?", "[?", "in",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,3}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_breaks_the_parser_and_no_rule_the_evaluation(
        pieces in prop::collection::vec(piece(), 0..14),
    ) {
        let text = pieces.concat();
        let _ = catch_unwind(|| wrong(&text)).expect("whatever the names are");
        let done = catch_unwind(|| match Rule::parse(&text) {
            Ok(rule) => {
                let rules = Constraints::new([(rule, "No.".to_owned())]);
                let args = arguments(&json!({"lines": 5, "x": [1, 2], "user": {"a": "b"}}));
                let _ = rules.check(&args, &ContextValues::new().with("user", "ada"));
            }
            Err(errors) => {
                assert!(!errors.is_empty());
                for error in errors {
                    assert!(text.get(error.range.clone()).is_some(), "{error:?}");
                    assert!(!error.message.is_empty());
                }
            }
        });
        prop_assert!(done.is_ok(), "{text:?}");
    }
}
