//! A diagnostic for programs, and one that is folded to the width of a screen.

use toolcrib_manifest::load_str;

#[test]
fn the_machine_readable_form_has_both_ends_of_the_place() {
    let text = "toolcrib: 1\ntöols: []\ntools: []\n";
    let loaded = load_str("t.yaml", text);
    assert_eq!(
        loaded.diagnostics[0].to_value("t.yaml", text),
        serde_json::json!({
            "file": "t.yaml",
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 6,
            "severity": "error",
            "code": "unknown-key",
            "message": "a manifest has no key `töols`",
            "help": "did you mean `tools`?",
        })
    );
}

#[test]
fn a_problem_is_folded_to_the_width_of_the_screen() {
    let text = "toolcrib: 1\ntools:\n  - name: pods\n    description: List the pods of a namespace. Read-only.\n    \
                run: {argv: [kubectl, get, pods]}\n";
    let found = toolcrib_manifest::lint_str("pods.yaml", text, &|_| Vec::new()).diagnostics;
    let home = found.iter().find(|found| found.code == "needs-home").expect("it is found");
    let whole = home.render("pods.yaml", text, false);
    let folded = home.render_within("pods.yaml", text, false, 60);
    assert!(whole.lines().any(|line| line.chars().count() > 100), "{whole}");
    assert!(folded.lines().all(|line| line.chars().count() <= 60), "{folded}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&folded), words(&whole), "nothing is lost");
}
