//! Manifests from the operator's view: listed, checked, broken, shadowed.

use crate::harness::crib::Crib;

const GOOD: &str = r#"
toolcrib: 1
tools:
  - name: say_hello
    description: Say hello to somebody. Read-only.
    annotations: {read_only: true, open_world: false}
    input: {properties: {name: {type: string, description: Whom to greet.}}, required: [name]}
    run: {argv: [printf, "--", "Hello, %s", "${args.name}"]}
"#;

const BROKEN: &str = "toolcrib: 1
tools:
  - name: broken
    descripton: It has a misspelt key.
    run: {argv: [true]}
";

#[test]
fn a_dropped_file_is_a_tool_at_the_next_start() {
    let crib = Crib::new(&[]);
    assert!(!crib.run(&["list"]).stdout.contains("say_hello"));
    crib.write("hello.yaml", GOOD);
    assert!(crib.run(&["list"]).stdout.contains("say_hello"));
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Hello, Ada\n");
}

#[test]
fn a_broken_file_is_named_with_its_place_and_the_others_serve() {
    let crib = Crib::new(&[("good.yaml", GOOD), ("broken.yaml", BROKEN)]);
    let list = crib.run(&["list"]);
    assert_eq!(list.code, Some(0));
    assert!(list.stdout.contains("say_hello"));
    assert!(list.stderr.contains("tools.d/broken.yaml:"), "{list:?}");

    let check = crib.run(&["check"]);
    assert_eq!(check.code, Some(1));
    assert!(check.stderr.contains("tools.d/broken.yaml:4:5"), "{check:?}");
    assert!(check.stderr.contains("did you mean `description`?"));
    let json = crib.run(&["check", "--json"]).json();
    assert_eq!(json["ok"], false);
    let unknown = json["diagnostics"].as_array().expect("a list");
    let unknown = unknown.iter().find(|found| found["code"] == "unknown-key").expect("found");
    assert_eq!((&unknown["line"], &unknown["column"]), (&4.into(), &5.into()));
}

#[test]
fn the_first_file_keeps_a_name_and_the_second_stays_visible() {
    let other = GOOD.replace("Hello, %s", "Goodbye, %s");
    let crib = Crib::new(&[("a.yaml", GOOD), ("b.yaml", &other)]);
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Hello, Ada\n");
    let all = crib.run(&["list", "--all"]);
    assert!(all.stdout.contains("shadowed say_hello of manifest tools.d/b.yaml"), "{all:?}");
    assert_eq!(crib.run(&["check"]).code, Some(0), "a warning");
    let strict = crib.run(&["check", "--strict"]);
    assert_eq!(strict.code, Some(1));
    assert!(strict.stderr.contains("a.yaml") && strict.stderr.contains("b.yaml"), "{strict:?}");
}

#[test]
fn duplicate_names_in_error_mode_stop_the_start_and_name_both() {
    let crib = Crib::new(&[("a.yaml", GOOD), ("b.yaml", GOOD)]);
    crib.config("registry: {on_duplicate: error}\n");
    let run = crib.run(&["list"]);
    assert_eq!(run.code, Some(2));
    insta::assert_snapshot!(run.stderr, @"
    error: 1 tool name is declared twice
      `say_hello` of manifest tools.d/b.yaml:4:11: the name belongs to manifest tools.d/a.yaml:4:11
    Rename one of each, or set registry.on_duplicate to `warn` to let the first keep the name
    ");
}

#[test]
fn a_manifest_cannot_take_over_a_linked_tool() {
    let crib = Crib::new(&[("calc.yaml", &GOOD.replace("say_hello", "calculator"))]);
    assert_eq!(crib.run(&["call", "calculator", "expression=1+1"]).stdout, "2\n");
}

#[test]
fn a_tool_whose_program_is_missing_is_unavailable_with_the_reason() {
    let text = GOOD.replace("[printf, ", "[no-such-program-here, ");
    let crib = Crib::new(&[("hello.yaml", &text)]);
    assert!(!crib.run(&["list"]).stdout.contains("say_hello"));
    let all = crib.run(&["list", "--all"]);
    assert!(all.stdout.contains("unavailable say_hello"), "{all:?}");
    assert!(all.stdout.contains("`no-such-program-here`"), "{all:?}");
    let call = crib.run(&["call", "say_hello", "name=Ada", "--json"]);
    assert_eq!(call.json()["error"]["kind"], "unavailable");
}

#[test]
fn show_tells_what_a_tool_takes_and_where_it_is_from() {
    let crib = Crib::new(&[("hello.yaml", GOOD)]);
    insta::assert_snapshot!(crib.run(&["show", "say_hello"]).stdout, @r#"
    say_hello
    Say hello to somebody. Read-only.

    Arguments
      name (string, required)  Whom to greet.

    A call
      runs     "printf" "--" "Hello, %s" "${args.name}"
      profile  workspace
      approval not needed
      timeout  30s

    changes nothing; stays on this host; from manifest tools.d/hello.yaml:4:11
    declaration digest blake3:0601fe4881aa740ddb6f2bea27a46a8e96a03d36dd52066a06d1aafbc161a88d
    "#);
    let json = crib.run(&["show", "say_hello", "--json"]).json();
    assert_eq!(json["input_schema"]["additionalProperties"], false);
}

#[test]
fn all_errors_of_a_config_are_reported() {
    let crib = Crib::new(&[]);
    std::fs::write(
        crib.path().join("config.yml"),
        "executor:\n  tool_timout: 5s\nserver:\n  no_auth: maybe\n",
    )
    .expect("a config");
    let run = crib.run(&["list"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("config.yml:2:3"), "{run:?}");
    assert!(run.stderr.contains("did you mean `tool_timeout`?"), "{run:?}");
    assert!(run.stderr.contains("config.yml:4:12"), "{run:?}");
}

#[test]
fn json_output_is_the_same_from_run_to_run() {
    let crib = Crib::new(&[("b.yaml", GOOD)]);
    let first = crib.run(&["list", "--all", "--json"]).stdout;
    for _ in 0..3 {
        assert_eq!(crib.run(&["list", "--all", "--json"]).stdout, first);
    }
}
