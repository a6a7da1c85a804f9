//! One entry is one argument: tested by table, and with a program that prints its arguments.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_manifest::declaration::{ArgvEntry, ContextParameter, Declaration, StandardInput};
use toolcrib_runners::{Invocation, SecretString, ServerValues, expand};
use toolcrib_tool::{ErrorKind, ToolError};

use crate::declare::{
    call, call_with, command, context, each, given, one, parameter, runner, spec, template, when,
};

fn expanded(declaration: &Declaration, arguments: &Value) -> Result<Invocation, ToolError> {
    let cx = context(declaration, [("user", json!("ada")), ("k8s_cluster", json!("dev"))]);
    expand(declaration, &given(arguments), &cx, &Server)
}

/// A server with one variable and one secret.
struct Server;

impl ServerValues for Server {
    fn env(&self, name: &str) -> Result<String, String> {
        (name == "SERVER").then(|| "from-server".to_owned()).ok_or_else(|| "lacks it".to_owned())
    }

    fn secret(&self, name: &str) -> Result<SecretString, String> {
        (name == "token").then(|| "line 1\nline 2".into()).ok_or_else(|| "lacks it".to_owned())
    }
}

/// The arguments a vector expands to, the program's name left out.
fn args<const N: usize>(
    entries: [ArgvEntry; N],
    arguments: &Value,
) -> Result<Vec<String>, ToolError> {
    let mut declaration = command([one("prog")]);
    spec(&mut declaration).argv.extend(entries);
    expanded(&declaration, arguments).map(|invocation| invocation.args)
}

fn refusal<const N: usize>(entries: [ArgvEntry; N], arguments: &Value) -> ToolError {
    args(entries, arguments).unwrap_err()
}

#[test]
fn a_call_without_a_host_knows_only_its_id() {
    let mut declaration = command([one("prog"), one("${ctx.call_id}"), one("${ctx.request_id}")]);
    let ran = expanded(&declaration, &json!({})).unwrap();
    assert_eq!(ran.args, ["call_1", "call_1"]);
    // The host's value comes first, null counts as missing, and missing values are not invented.
    let cx = context(&declaration, [("request_id", json!("r7")), ("call_id", json!(null))]);
    let ran = expand(&declaration, &given(&json!({})), &cx, &Server).unwrap();
    assert_eq!(ran.args, ["call_1", "r7"]);
    for name in ["session_id", "tenant", "model", "project_id"] {
        declaration = command([one("prog"), one(&format!("${{ctx.{name}}}"))]);
        let refused = expanded(&declaration, &json!({})).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::MissingContext, "{name}");
    }
}

#[test]
fn an_entry_is_one_argument_or_omitted() {
    let arguments = json!({
        "s": "a b; $(id) ${args.n}", "empty": "", "n": 5, "yes": true, "no": false, "null": null,
        "list": ["x y", "", "--"], "object": {"b": 1, "a": [2.0]},
    });
    let all = |entries: [ArgvEntry; 1]| args(entries, &arguments).unwrap();
    assert_eq!(all([one("${args.s}")]), ["a b; $(id) ${args.n}"]);
    assert_eq!(all([one("--x=${args.s}!")]), ["--x=a b; $(id) ${args.n}!"]);
    assert_eq!(all([one("${args.empty}")]), [""]);
    assert_eq!(all([one("${args.n}/${args.yes}/${args.no}")]), ["5/true/false"]);
    assert_eq!(all([one("${args.object}")]), [r#"{"a":[2.0],"b":1}"#]);
    assert_eq!(all([one("${args.absent}")]), [""; 0]);
    assert_eq!(all([one("--x=${args.n},${args.absent}")]), [""; 0]);
    assert_eq!(all([one("${args.null}")]), [""; 0]);
    assert_eq!(all([one("${ctx.user}")]), ["ada"]);
    assert_eq!(all([one("${env.SERVER}")]), ["from-server"]);
    assert_eq!(all([one("")]), [""]);
}

#[test]
fn a_condition_holds_for_a_present_value_that_is_not_false() {
    let arguments =
        json!({"yes": true, "no": false, "null": null, "zero": 0, "empty": "", "s": "v"});
    for (condition, holds) in [
        ("yes", true),
        ("no", false),
        ("null", false),
        ("absent", false),
        ("zero", true),
        ("empty", true),
    ] {
        let found =
            args([when(condition, ["--flag", "--s=${args.s}", "${args.absent}"])], &arguments);
        let expected: &[&str] = if holds { &["--flag", "--s=v"] } else { &[] };
        assert_eq!(found.unwrap(), expected, "{condition}");
    }
}

#[test]
fn a_list_is_one_argument_per_item() {
    let arguments =
        json!({"list": ["a b", "", "c"], "numbers": [-1, 2.0], "scalar": "x", "null": null});
    assert_eq!(args([each("list")], &arguments).unwrap(), ["a b", "", "c"]);
    assert_eq!(args([each("numbers")], &arguments).unwrap(), ["-1", "2"]);
    assert_eq!(args([each("scalar")], &arguments).unwrap(), ["x"]);
    assert_eq!(args([each("null"), each("absent")], &arguments).unwrap(), [""; 0]);
}

#[test]
fn a_value_cannot_become_an_option() {
    for smuggled in ["-", "--", "-rf", "--all", "--output=x"] {
        let arguments = json!({"s": smuggled, "list": ["fine", smuggled], "empty": ""});
        for entry in [one("${args.s}"), one("${args.empty}${args.s}"), each("list")] {
            let error = refusal([entry.clone()], &arguments);
            assert_eq!(error.kind(), ErrorKind::InvalidArgs, "{smuggled} in {entry:?}");
            // After the author's own `--` nothing is an option.
            let args = args([one("--"), entry], &arguments).unwrap();
            assert_eq!(args.last().unwrap(), smuggled);
        }
        assert_eq!(args([one("--x=${args.s}")], &arguments).unwrap(), [format!("--x={smuggled}")]);
    }
    let error = refusal([one("${args.s}")], &json!({"s": "-rf"}));
    assert_eq!(
        error.message(),
        "with this value of `s`, an argument of the program begins with \"-\": it would be taken \
         for an option"
    );
}

#[test]
fn a_value_of_two_dashes_does_not_end_options() {
    // Only the author's `--` counts, not one that came out of a value.
    let error =
        refusal([one("${args.empty}--"), one("${args.s}")], &json!({"empty": "", "s": "-rf"}));
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    let error = refusal([when("no", ["--"]), one("${args.s}")], &json!({"no": false, "s": "-rf"}));
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
}

#[test]
fn a_negative_number_is_no_option_where_the_schema_wants_numbers() {
    assert_eq!(args([one("${args.n}")], &json!({"n": -5})).unwrap(), ["-5"]);
    assert_eq!(args([one("${args.n}m")], &json!({"n": -5})).unwrap(), ["-5m"]);
    for (entry, arguments) in [
        (one("${args.untyped}"), json!({"untyped": -5})),
        (one("${args.n}"), json!({"n": "-5"})),
        (one("${args.n}${args.s}"), json!({"n": -5, "s": "rf"})),
        (each("list"), json!({"list": [-5]})),
    ] {
        assert_eq!(refusal([entry], &arguments).kind(), ErrorKind::InvalidArgs, "{arguments}");
    }
}

#[test]
fn a_value_that_the_schema_lists_may_be_an_option() {
    let declared = |entry: ArgvEntry| {
        let mut declaration = command([one("prog"), entry]);
        let definition = declaration.definition.to_builder().input_schema(json!({"properties": {
            "flag": {"enum": ["-l", "--all"]},
            "only": {"const": "-n"},
            "flags": {"type": "array", "items": {"enum": ["-l", "-a"]}},
            "list": {"type": "array", "items": {"type": "string"}},
            "s": {"type": "string"},
        }}));
        declaration.definition = std::sync::Arc::new(definition.build().unwrap());
        declaration
    };
    let arguments = json!({"flag": "--all", "only": "-n", "flags": ["-l", "-a"], "list": ["-l"],
        "s": "x"});
    for (entry, wanted) in [
        (one("${args.flag}"), vec!["--all"]),
        (one("${args.only}"), vec!["-n"]),
        (each("flags"), vec!["-l", "-a"]),
    ] {
        assert_eq!(expanded(&declared(entry), &arguments).unwrap().args, wanted);
    }
    // A free value after it would be part of the option.
    for entry in [one("${args.flag}${args.s}"), each("list")] {
        let error = expanded(&declared(entry), &arguments).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    }
}

#[test]
fn control_characters_are_refused_where_the_schema_does_not_allow_them() {
    for control in ["\n", "\t", "\r", "\u{1b}[31m", "\u{7f}", "\u{9b}", "\u{8}"] {
        let text = format!("a{control}b");
        let arguments = json!({"s": text, "raw": text, "raws": [text], "list": [text]});
        for entry in [one("--s=${args.s}"), each("list")] {
            let error = refusal([entry], &arguments);
            assert_eq!(error.kind(), ErrorKind::InvalidArgs);
            assert!(error.message().contains("which this tool does not accept"), "{error}");
        }
        for entry in [one("${args.raw}"), each("raws")] {
            assert_eq!(args([entry], &arguments).unwrap(), [text.as_str()]);
        }
    }
    let named = refusal([one("${args.s}")], &json!({"s": "a\nb"}));
    assert_eq!(
        named.message(),
        "the argument `s` contains a newline, which this tool does not accept"
    );
}

#[test]
fn nul_is_refused_everywhere() {
    let arguments = json!({"raw": "a\0b", "raws": ["\0"]});
    for entry in [one("${args.raw}"), each("raws")] {
        let error = refusal([entry], &arguments);
        assert!(error.message().contains("contains a NUL character"), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    }
    let mut declaration = command([one("prog")]);
    spec(&mut declaration).stdin = Some(StandardInput::Text(template("${args.raw}")));
    assert_eq!(expanded(&declaration, &arguments).unwrap_err().kind(), ErrorKind::InvalidArgs);
}

#[test]
fn standard_input_takes_lines_but_no_other_control_characters() {
    let mut declaration = command([one("prog")]);
    spec(&mut declaration).stdin = Some(StandardInput::Text(template("<${args.s}>")));
    let stdin = |text: &str| expanded(&declaration, &json!({"s": text})).map(|found| found.stdin);
    assert_eq!(stdin("-a\n\tb\r\n").unwrap().as_deref(), Some("<-a\n\tb\r\n>"));
    assert_eq!(stdin("\u{1b}").unwrap_err().kind(), ErrorKind::InvalidArgs);
    assert_eq!(expanded(&declaration, &json!({})).unwrap().stdin, None);
}

#[test]
fn all_arguments_become_one_json_object_on_standard_input() {
    let mut declaration = command([one("prog")]);
    spec(&mut declaration).stdin = Some(StandardInput::Arguments);
    let stdin = |arguments: &Value| expanded(&declaration, arguments).unwrap().stdin.unwrap();
    let value = "\"}\n${secret.key}\u{1b}";
    let arguments = json!({"s": value, "n": 3, "list": [true, null]});
    let sent = stdin(&arguments);
    assert_eq!(
        serde_json::from_str::<Value>(&sent).unwrap(),
        arguments,
        "no context value is in it"
    );
    assert!(!sent.contains(['\n', '\u{1b}']), "{sent}");
    assert_eq!(stdin(&json!({})), "{}");
}

#[test]
fn variables_are_set_dropped_or_refused_like_arguments() {
    let mut declaration = command([one("prog")]);
    for (name, value) in [
        ("POD", "${args.s}"),
        ("NONE", "${args.absent}"),
        ("LD_PRELOAD", "/opt/shim.so"),
        ("S", "${env.SERVER}"),
        ("HOME", "/home/${ctx.user}"),
    ] {
        spec(&mut declaration).env.insert(name.to_owned(), template(value));
    }
    let env = expanded(&declaration, &json!({"s": "-x"})).unwrap().env;
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        env,
        [
            ("HOME", "/home/ada"),
            ("LD_PRELOAD", "/opt/shim.so"),
            ("POD", "-x"),
            ("S", "from-server")
        ]
    );
    let newline = expanded(&declaration, &json!({"s": "a\nb"})).unwrap_err();
    assert_eq!(newline.kind(), ErrorKind::InvalidArgs);

    spec(&mut declaration).env.insert("BASH_ENV".to_owned(), template("${args.s}"));
    let error = expanded(&declaration, &json!({"s": "x"})).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("`BASH_ENV`"), "{error}");
}

#[test]
fn a_value_too_long_for_the_system_is_refused_naming_its_argument() {
    let long = "x".repeat(128 * 1024);
    let error = refusal([one("${args.s}")], &json!({"s": long}));
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().starts_with("the argument `s` is too long"), "{error}");
    let error = refusal([each("list")], &json!({"list": vec!["x".repeat(100_000); 11]}));
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().contains("1 MiB"), "{error}");
    assert!(args([one("${args.s}")], &json!({"s": long[1..]})).is_ok());
}

#[test]
fn host_values_are_never_invented() {
    let error = refusal([one("${ctx.tenant}")], &json!({"tenant": "mine"}));
    assert_eq!(error.kind(), ErrorKind::MissingContext);
    assert!(error.message().contains("`tenant`"), "{error}");
    assert_eq!(refusal([one("${env.ABSENT}")], &json!({})).kind(), ErrorKind::Unavailable);
    assert_eq!(refusal([one("${secret.key}")], &json!({})).kind(), ErrorKind::Unavailable);

    let mut declaration = command([one("prog"), one("--c=${ctx.cluster}"), one("--t=${ctx.t}")]);
    declaration.context = vec![
        parameter("cluster", "k8s_cluster", None),
        ContextParameter { required: false, ..parameter("t", "tenant", None) },
    ];
    assert_eq!(expanded(&declaration, &json!({"cluster": "prod"})).unwrap().args, ["--c=dev"]);
}

#[test]
fn a_context_value_is_checked_and_never_shown() {
    let mut declaration = command([one("prog"), one("${ctx.cluster}")]);
    declaration.context = vec![parameter("cluster", "k8s_cluster", Some(json!({"enum": ["dev"]})))];
    let checked = |value: Value| {
        runner(&declaration)
            .invocation(&given(&json!({})), &context(&declaration, [("k8s_cluster", value)]))
    };
    assert_eq!(checked(json!("dev")).unwrap().args, ["dev"]);
    let denied = checked(json!("secret-prod")).unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
    assert!(
        denied.message().contains("`k8s_cluster`") && !denied.message().contains("secret-prod")
    );
    let missing = runner(&declaration).invocation(&given(&json!({})), &context(&declaration, []));
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::MissingContext);
}

#[test]
fn a_value_never_chooses_the_program() {
    let declaration = command([one("${args.s}")]);
    assert_eq!(
        expanded(&declaration, &json!({"s": "sh"})).unwrap_err().kind(),
        ErrorKind::Internal
    );
    assert_eq!(expanded(&command([]), &json!({})).unwrap_err().kind(), ErrorKind::Internal);
}

/// Prints each argument it receives in hexadecimal on its own line, because plain text would be escaped.
fn printing(entries: impl IntoIterator<Item = ArgvEntry>) -> Declaration {
    let mut declaration = command([
        one("sh"),
        one("-c"),
        one(r#"for a; do printf '%s' "$a" | od -An -v -tx1 | tr -d ' \n'; echo; done"#),
        one("sh"),
    ]);
    spec(&mut declaration).argv.extend(entries);
    spec(&mut declaration).capture_bytes = 1024 * 1024;
    declaration
}

/// The expected output, in the same form.
fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// Strings that try to break out, and arbitrary ones.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[-;$`'\"\\\\ \n\t\u{0}\u{1b}a|&<>*?~#!(){}]{0,12}",
        Just("$(touch /tmp/x)".to_owned()),
        Just("${args.s}".to_owned()),
        Just("--".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_string_arrives_as_exactly_one_argument_or_is_refused(s in hostile(), list in prop::collection::vec(hostile(), 0..4)) {
        let declaration = printing([one("x=${args.s}"), one("${args.s}"), each("list")]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let answer = runtime.block_on(call(&declaration, json!({"s": s, "list": list})));

        let control = |text: &String| text.chars().any(char::is_control);
        let bare = || std::iter::once(&s).chain(&list);
        let refused = bare().any(control) || bare().any(|text| text.starts_with('-'));
        match answer {
            Err(error) => {
                prop_assert!(refused, "{}", error);
                prop_assert_eq!(error.kind(), ErrorKind::InvalidArgs);
            }
            Ok(output) => {
                prop_assert!(!refused);
                let mut expected = vec![hex(&format!("x={s}"))];
                expected.extend(bare().map(|text| hex(text)));
                let text = output.text().into_owned();
                prop_assert_eq!(text.lines().collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn after_two_dashes_any_string_without_control_characters_arrives(s in "[^\\p{Cc}]{0,40}") {
        let declaration = printing([one("--"), one("${args.s}")]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let output = runtime.block_on(call(&declaration, json!({"s": s}))).unwrap();
        prop_assert_eq!(output.text().into_owned(), format!("2d2d\n{}\n", hex(&s)));
    }
}

#[tokio::test]
async fn variables_and_input_reach_the_program_unchanged() {
    let mut declaration = command([one("sh"), one("-c"), one(r#"printf '%s|' "$POD"; cat"#)]);
    spec(&mut declaration).env.insert("POD".to_owned(), template("${args.s}"));
    spec(&mut declaration).stdin = Some(StandardInput::Text(template("${args.text}\n")));
    let arguments = json!({"s": "$(id) '\"", "text": "one\n${ctx.user}"});
    let cx = context(&declaration, [("user", json!("ada"))]);
    let output = call_with(&declaration, arguments, &cx).await.unwrap();
    assert_eq!(output.text(), "$(id) '\"|one\n${ctx.user}\n");
}
