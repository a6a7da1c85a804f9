//! Files that cannot be read, versions, and literals that look like something else.

use super::{shows, tail, tool, yaml};

#[test]
fn yaml_that_cannot_be_read() {
    yaml("syntax_tab", "toolcrib: 1\ntools:\n\t- name: x\n", &["syntax"]);
    yaml("syntax_quote", "toolcrib: 1\nowner: \"team\ntools: []\n", &["syntax"]);
    yaml("syntax_bracket", "toolcrib: 1\ntools: [{name: x]\n", &["syntax"]);
    yaml("syntax_colon", "toolcrib: 1\nowner: team: ops\n", &["syntax"]);
    yaml("syntax_indent", "toolcrib: 1\n  owner: x\ntools: []\n", &["syntax"]);
    yaml("syntax_backtick", "toolcrib: 1\nowner: `x`\n", &["syntax"]);
    yaml("syntax_second_document", "toolcrib: 1\ntools: []\n---\na: 1\n", &["syntax"]);
    yaml("unknown_anchor", "toolcrib: 1\nowner: *team\ntools: []\n", &["unknown-anchor"]);
    yaml("unknown_tag", "toolcrib: !!int 1\ntools: []\n", &["unknown-tag"]);
    yaml("bad_key", "toolcrib: 1\n[a, b]: 2\ntools: []\n", &["bad-key"]);
    let deep = format!("toolcrib: 1\nx-a: {}{}\n", "[".repeat(40), "]".repeat(40));
    yaml("too_complex", &deep, &["too-complex"]);
}

#[test]
fn toml_that_cannot_be_read() {
    shows("toml_syntax", "t.toml", "toolcrib = 1\nowner = team\ntools = []\n", &["syntax"]);
    shows(
        "toml_duplicate",
        "t.toml",
        "toolcrib = 1\ntoolcrib = 1\ntools = []\n",
        &["duplicate-key"],
    );
    let text = "toolcrib = 1\ntools = []\nx-date = 2024-01-02\n";
    shows("toml_date", "t.toml", text, &["ambiguous-scalar"]);
}

#[test]
fn versions() {
    yaml("newer_format", "toolcrib: 2\ntools:\n  - nonsense: 1\n", &["newer-format"]);
    yaml("requires_newer", "toolcrib: 1\nrequires: '>=99.1'\ntools: []\n", &["requires-newer"]);
    yaml("bad_requirement", "toolcrib: 1\nrequires: latest\ntools: []\n", &["bad-requirement"]);
}

#[test]
fn literals_that_look_like_something_else() {
    let text = "input:
  properties:
    answer: {enum: [yes, no, maybe]}
    code: {type: string, default: 012}
    id: {type: string, default: 1234567890123456789012}
    big: {const: 1e999}
    time: {type: string, default: 12:30:45}
    nothing: {default: ~}
run: {argv: [x, \"${args.answer}${args.code}${args.id}${args.big}${args.time}${args.nothing}\"]}
";
    yaml("ambiguous_scalar", &tool(text), &["ambiguous-scalar"; 7]);
    let text = "tests:\n  - {name: t, args: {path: off}, expect: {}}";
    yaml("ambiguous_scalar_in_a_test", &tail(text), &["ambiguous-scalar"]);
}
