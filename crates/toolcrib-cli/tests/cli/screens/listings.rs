//! Listings fit the screen and hide nothing.

use crate::harness::crib::Crib;

const TRICKY: &str = r#"toolcrib: 1
tools:
  - name: tricky
    title: "A\u202Etitle"
    description: "Does it \u202Ebackwards, with a very long first sentence that goes on and on and on so that no screen of the usual width can hold it beside a name and a place in a file, and then some more."
    annotations: {read_only: true}
    input: {properties: {word: {type: string, description: "A \u2066word."}}}
    run: {argv: [echo]}
upstream:
  - name: far
    command: [echo]
    sandbox: {profile: trusted}
"#;

#[test]
fn a_listing_fits_the_width_unless_wide_is_set() {
    let crib = Crib::new(&[("tricky.yaml", TRICKY)]);
    for look in [&["list"][..], &["list", "--all"], &["search", "long", "sentence"]] {
        let listed = crib.run(look).stdout;
        let table = listed.lines().take_while(|line| !line.starts_with("unavailable"));
        let widest = table.map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 120), "{widest:?}: {listed}");
        assert!(listed.contains('\u{2026}'), "{listed}");
    }
    let wide = crib.run(&["list", "--wide"]).stdout;
    assert!(wide.contains("and then some more."), "{wide}");
    let wide = crib.run(&["search", "long", "sentence", "--wide"]).stdout;
    assert!(wide.contains("and then some more."), "{wide}");
}

#[test]
fn what_a_manifest_says_cannot_turn_a_screen_around() {
    let crib = Crib::new(&[("tricky.yaml", TRICKY)]);
    for look in [
        &["list"][..],
        &["list", "--wide"],
        &["show", "tricky"],
        &["search", "backwards"],
        &["why", "tricky"],
    ] {
        let shown = crib.run(look).stdout;
        let obeyed = |c: char| {
            c != '\n'
                && (c.is_control()
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        };
        assert!(!shown.contains(obeyed), "{look:?}: {shown:?}");
    }
    let shown = crib.run(&["show", "tricky"]).stdout;
    assert!(shown.contains(r"A\u{202e}title") && shown.contains(r"A \u{2066}word."), "{shown}");
}

#[test]
fn untrusted_tools_get_a_hint_about_trust_not_about_the_lock() {
    let crib = Crib::new(&[("tricky.yaml", TRICKY)]);
    let all = crib.run(&["list", "--all"]);
    assert!(
        all.stdout.contains("unavailable upstream far: it needs the operator's trust"),
        "{all:?}"
    );
    assert!(all.stdout.contains("`toolcrib trust tools.d/tricky.yaml:far`"), "{all:?}");
    assert!(!all.stderr.contains("lock --diff"), "{all:?}");
}

#[test]
fn the_page_of_a_tool_names_types_and_values_behind_references_and_indents_descriptions() {
    let crib = Crib::new(&[]);
    let shown = crib.run(&["show", "text_process"]).stdout;
    assert!(shown.contains("  operation (string, required)  What to do:"), "{shown}");
    assert!(shown.contains("      one of \"count\", \"lines\", \"words\""), "{shown}");
    let arguments = shown.split("Arguments\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    for line in arguments.expect("there are arguments").lines() {
        assert!(line.starts_with("  "), "{line:?} of {shown}");
    }
    let shown = crib.run(&["show", "execute_python"]).stdout;
    assert!(shown.contains("\"strict\"") && !shown.contains("(any,"), "{shown}");
}
