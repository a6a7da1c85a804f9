//! Schemas, references to arguments, examples and tests.

use toolcrib_manifest::load_str;

use super::{run, tail, tool, yaml};

#[test]
fn schemas() {
    let input = |schema: &str| {
        tool(&format!(
            "input:\n  properties:\n    path: {schema}\nrun: {{argv: [x, \"${{args.path}}\"]}}"
        ))
    };
    yaml("bad_schema_type", &input("{type: str}"), &["bad-schema"]);
    yaml("bad_schema_required", &input("{type: string, required: true}"), &["bad-schema"]);
    yaml("bad_schema_value", &input("{type: string, maxLength: many}"), &["bad-schema"]);
    yaml("bad_schema_ref", &input("{$ref: '#/$defs/pth'}"), &["bad-schema"]);
    yaml("bad_schema_remote", &input("{$ref: 'https://example.com/s.json'}"), &["bad-schema"]);
    yaml("bad_schema_root", &tool("input: {type: array}\nrun: {argv: [x]}"), &["bad-schema"]);
    yaml("bad_pattern", &input("{type: string, pattern: '^(?!-)[a-z'}"), &["bad-pattern"]);
    yaml("bad_default", &input("{type: integer, maximum: 5, default: 9}"), &["bad-default"]);
    yaml("unknown_keyword", &input("{type: string, maxlength: 5}"), &["unknown-keyword"]);
    yaml(
        "misplaced_argument",
        &tool("input:\n  path: {type: string}\n  lines: {type: integer}\nrun: {argv: [x]}"),
        &["misplaced-argument", "misplaced-argument"],
    );
    yaml("bad_pattern_redact", &tail("output: {redact: ['(']}"), &["bad-pattern"]);
    yaml(
        "bad_pattern_progress",
        &tail("progress: ['(', '[0-9]+%']"),
        &["bad-pattern", "bad-pattern"],
    );
}

#[test]
fn references() {
    yaml(
        "undeclared_argument",
        &run("argv: [tail, \"${args.pth}\", {each: name}]"),
        &["undeclared-argument", "undeclared-argument"],
    );
    yaml(
        "undeclared_context",
        &tail("").replace("${args.path}", "${args.path}${ctx.tennant}${ctx.cluster}"),
        &["undeclared-context", "undeclared-context"],
    );
    yaml(
        "bad_reference",
        &run("argv: [tail, \"${path} ${args.} ${args.path\"]"),
        &["bad-reference", "bad-reference", "bad-reference"],
    );
    yaml(
        "bad_reference_bare",
        &run("argv: [tail, \"${args.path}\", {each: \"${args.names}\"}]"),
        &["bad-reference"],
    );
    yaml("unused_argument", &run("argv: [tail, \"${args.path}\"]"), &["unused-argument"]);
    yaml("empty_as_absent", &tail("empty_as_absent: [paht]"), &["undeclared-argument"]);
    let by_day = |lines: &str| {
        tool(&format!(
            "input: {{properties: {{day: {{type: string, format: date}}}}}}\n\
             run: {{argv: [tail, \"${{args.day}}\"]}}\nexamples: [{{day: tomorrow}}]\n{lines}"
        ))
    };
    yaml("asserted_format", &by_day("assert_formats: true"), &["bad-example"]);
    assert!(load_str("tail.yaml", &by_day("")).diagnostics.is_empty(), "a format annotates");
    yaml("shadowed_argument", &tail("context: {path: {from: ctx.path}}"), &["shadowed-argument"]);
    yaml("context_without_from", &tail("context: {cluster: {enum: [dev]}}"), &["missing-key"]);
    yaml("context_from_args", &tail("context: {cluster: {from: args.path}}"), &["bad-reference"]);
}

#[test]
fn tests_and_examples() {
    yaml(
        "bad_example",
        &tail("examples: [{path: 5}, {pth: x}]"),
        &["bad-example", "bad-example", "bad-example"],
    );
    yaml(
        "test_arguments",
        &tail("tests: [{name: t, args: {path: 5}, expect: {}}]"),
        &["test-arguments"],
    );
    yaml("test_not_an_object", &tail("tests: [{name: t, args: [x], expect: {}}]"), &["wrong-type"]);
    yaml(
        "test_error_kind",
        &tail("tests: [{name: t, expect: {error: invalid_arg}}]"),
        &["wrong-type"],
    );
    let twice = "tests:\n  - {name: t, args: {path: a}, expect: {}}\n  - {name: t, args: {path: b}, expect: {}}";
    yaml("duplicate_test", &tail(twice), &["duplicate-test"]);
}

#[test]
fn a_test_that_expects_a_refusal_may_have_wrong_arguments() {
    let text = tail("tests: [{name: t, args: {path: 5}, expect: {error: invalid_args}}]");
    assert_eq!(load_str("t.yaml", &text).diagnostics, []);
}
