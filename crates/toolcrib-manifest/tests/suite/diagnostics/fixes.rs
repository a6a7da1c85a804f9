//! Edits: only where one is right, only there, and once.

use std::collections::HashMap;

use proptest::prelude::*;
use toolcrib_manifest::{Diagnostic, fix_str, load_str};

/// A manifest with these lines in its only tool.
fn tool(lines: &str) -> String {
    format!(
        "# The team's log tools.\ntoolcrib: 1\ntools:\n  - name: tail\n    description: Read a file.\n    {}\n",
        lines.replace('\n', "\n    ")
    )
}

const RUN: &str =
    "\ninput: {properties: {path: {type: string}}}\nrun: {argv: [tail, \"${args.path}\"]}";

#[track_caller]
fn becomes(lines: &str, mended: &str) {
    let (text, expected) = (tool(lines), tool(mended));
    let fixed = fix_str("tail.yaml", &text);
    assert_eq!(fixed.text, expected);
    assert_eq!(fix_str("tail.yaml", &fixed.text).applied, [], "once is enough");
}

#[track_caller]
fn stays(lines: &str) {
    becomes(lines, lines);
}

#[test]
fn what_has_one_right_edit_is_edited_and_nothing_else() {
    becomes(
        &format!("version: 1.10 # a comment{RUN}"),
        &format!("version: \"1.10\" # a comment{RUN}"),
    );
    becomes(&format!("title: {{}}\ntags: prod{RUN}"), &format!("title: {{}}\ntags: [prod]{RUN}"));
    becomes(
        &format!("annotations: {{read_only: yes, destructive:   off}}{RUN}"),
        &format!("annotations: {{read_only: true, destructive:   false}}{RUN}"),
    );
    becomes(
        "input:\n  properties: {path: {type: str}, n: {type: int}}\nrun: {argv: [tail, -n, 5, \"${args.path}${args.n}\"]}",
        "input:\n  properties: {path: {type: string}, n: {type: integer}}\nrun: {argv: [tail, -n, \"5\", \"${args.path}${args.n}\"]}",
    );
    becomes(
        "input: {properties: {a: {type: string, enum: [yes, no], default: no}}}\nrun: {argv: [x, \"${args.a}\"]}",
        "input: {properties: {a: {type: string, enum: [\"yes\", \"no\"], default: \"no\"}}}\nrun: {argv: [x, \"${args.a}\"]}",
    );
    becomes(
        "input_schema: {properties: {names: {type: array}}}\nrun: {argv: [x, {each: names}]}",
        "input: {properties: {names: {type: array}}}\nrun: {argv: [x, {each: names}]}",
    );
    becomes(
        "input: {properties: {n: {type: array, maxitems: 3}}}\nrun: {argv: [x, {each: '${args.n}'}]}\nlimits: {max_concurrent: 2}",
        "input: {properties: {n: {type: array, maxItems: 3}}}\nrun: {argv: [x, {each: n}]}\nlimits: {concurrent: 2}",
    );
    becomes(
        &format!("anotations: {{read_only: true}}{RUN}"),
        &format!("annotations: {{read_only: true}}{RUN}"),
    );
}

#[test]
fn what_could_be_meant_in_two_ways_is_left_alone() {
    // A text or a boolean; seconds or milliseconds; octal or decimal; one tag or two.
    stays("input: {properties: {a: {enum: [yes, no]}}}\nrun: {argv: [x, \"${args.a}\"]}");
    stays(&format!("limits: {{timeout: 30}}{RUN}"));
    stays(&format!("limits: {{concurrent: 012}}{RUN}"));
    stays(&format!("tags: prod, logs{RUN}"));
    // Near, and of another type; near, and there already; not so near.
    stays(&format!("anotations: true{RUN}"));
    stays(&format!("annotations: {{}}\nanotations: {{read_only: true}}{RUN}"));
    stays(&format!("anottion: {{read_only: true}}{RUN}"));
    // It would fit, and then something else would be wrong.
    stays(
        "inputSchema: {properties: {path: {type: array}}}\nrun: {argv: [tail, \"${args.path}\"]}",
    );
}

#[test]
fn an_edit_that_would_change_what_an_alias_says_is_not_made() {
    let lines = "version: &v 1.10\nx-kept: *v";
    stays(&format!("{lines}{RUN}"));
}

#[test]
fn line_ends_and_the_rest_of_the_bytes_stay() {
    let text = tool(&format!("version: 1.10{RUN}")).replace('\n', "\r\n");
    let fixed = fix_str("tail.yaml", &format!("\u{feff}{text}"));
    assert_eq!(fixed.text, text.replace("1.10", "\"1.10\""));
    assert_eq!((fixed.applied[0].line, fixed.applied[0].column), (6, 14));
}

#[test]
fn toml_is_mended_too() {
    let text = "toolcrib = 1\n[[tools]]\nname = \"up\"\ndescripton = \"Say since when.\" # short\nversion = 1.10\nrun.argv = [\"uptime\"]\n";
    let fixed = fix_str("up.toml", text);
    assert_eq!(fixed.text, text.replace("descripton", "description").replace("1.10", "\"1.10\""));
    assert!(load_str("up.toml", &fixed.text).diagnostics.is_empty());
}

fn counted(found: &[Diagnostic]) -> HashMap<(&'static str, &str), usize> {
    let mut counted = HashMap::new();
    for found in found {
        *counted.entry((found.code, found.message.as_str())).or_default() += 1;
    }
    counted
}

/// Lines of a tool, right ones and wrong ones.
fn lines() -> impl Strategy<Value = Vec<&'static str>> {
    let lines = [
        "version: 1.10",
        "tilte: Tail",
        "title: 12",
        "title: Tail",
        "tags: prod",
        "tag: [prod]",
        "anotations: {read_only: yes, idempotent: On}",
        "annotations: {read_only: true, destructve: false}",
        "input_schema: {properties: {path: {type: str, maxlength: 5}}}",
        "input: {properties: {path: {type: string, default: no}, n: {type: int}}}",
        "x-shared: &shared 5",
        "version: *shared",
        "run: {argv: [tail, -n, 5, \"${args.path}\"], pass_env: HOME}",
        "run: {argv: [tail, {each: '${args.path}'}], ok_exit: [0]}",
        "limits: {max_concurrent: 2, timeout: 5s}",
        "examples: [{path: no}]",
        "approval: true",
        "hidden: 'no'",
    ];
    proptest::collection::vec(proptest::sample::select(lines.to_vec()), 0..8)
}

proptest! {
    #[test]
    fn an_edit_removes_its_problem_adds_none_and_is_made_once(lines in lines()) {
        let text = tool(&lines.join("\n"));
        let before = load_str("t.yaml", &text).diagnostics;
        let fixed = fix_str("t.yaml", &text);
        let after = load_str("t.yaml", &fixed.text).diagnostics;
        let (had, left) = (counted(&before), counted(&after));
        for (problem, count) in &left {
            prop_assert!(had.get(problem).is_some_and(|had| had >= count), "{problem:?} came");
        }
        prop_assert!(before.len() >= after.len() + fixed.applied.len());
        prop_assert_eq!(fix_str("t.yaml", &fixed.text).text, fixed.text.clone());
        prop_assert_eq!(fixed.text.lines().count(), text.lines().count());
    }
}

#[test]
fn a_reference_with_one_slip_is_made_one_to_the_only_argument_that_it_can_mean() {
    let text = |reference: &str| {
        format!(
            "toolcrib: 1\ntools:\n  - name: find\n    description: Find an address.\n    input: {{properties: \
             {{address: {{type: string}}}}, required: [address]}}\n    run: {{argv: [find_it, \"--\", \
             \"{reference}\"]}}\n"
        )
    };
    let fixed = toolcrib_manifest::fix_str("find.yaml", &text("${args.adress}"));
    assert_eq!(fixed.text, text("${args.address}"));
    assert_eq!(fixed.applied[0].what, "refer to `address` instead of `adress`");
    // Two slips, or none of the names: nobody can know.
    let other = text("${args.place}");
    assert_eq!(toolcrib_manifest::fix_str("find.yaml", &other).text, other);
}
