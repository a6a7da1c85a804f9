//! However much there is to say about a file, all of it is read and checked.

use std::fmt::Write as _;

use toolcrib_manifest::{Diagnostic, Loaded, Severity, fix_str, lint_str, load_str};

/// A manifest of so many tools, each with four arguments that nothing uses.
fn tools(count: usize) -> String {
    let mut text = "toolcrib: 1\ntools:\n".to_owned();
    for number in 0..count {
        let _ = writeln!(
            text,
            "  - name: t{number}\n    description: Show how long the machine has been running.\n    \
             input: {{properties: {{a: {{}}, b: {{}}, c: {{}}, d: {{}}}}}}\n    run: {{argv: [uptime]}}"
        );
    }
    text
}

fn of(loaded: &Loaded, severity: Severity) -> Vec<&Diagnostic> {
    loaded.diagnostics.iter().filter(|found| found.severity == severity).collect()
}

#[test]
fn a_file_with_thousands_of_warnings_keeps_all_its_tools() {
    let text = tools(1_500);
    let loaded = load_str("many.yaml", &text);
    assert_eq!(loaded.declarations.len(), 1_500);
    let warnings = of(&loaded, Severity::Warning);
    assert_eq!(warnings.len(), 1_001);
    let rest = warnings.iter().find(|found| found.code == "unlisted").unwrap();
    assert_eq!(rest.message, "this file has 5000 more warnings, which are not listed");
    assert_eq!(rest.position(&text).0, 2 + 250 * 4 + 3);
}

#[test]
fn an_error_behind_a_thousand_warnings_is_listed_and_fails_the_file() {
    let text = tools(600) + "  - name: last\n    descripton: Show it.\n    run: {argv: [uptime]}\n";
    let loaded = load_str("many.yaml", &text);
    assert!(loaded.declarations.is_empty());
    let codes: Vec<_> = of(&loaded, Severity::Error).iter().map(|found| found.code).collect();
    assert_eq!(codes, ["missing-key", "unknown-key"]);
}

#[test]
fn thousands_of_errors_are_counted() {
    let text = tools(400).replace("a: {}", "a: {type: int}, x: {type: str}, y: {type: bool}");
    let loaded = load_str("many.yaml", &text);
    let errors = of(&loaded, Severity::Error);
    assert_eq!(errors.len(), 1_001);
    let rest = errors.iter().find(|found| found.code == "unlisted").unwrap();
    assert_eq!(rest.message, "this file has 200 more errors, which are not listed");
}

#[test]
fn edits_behind_a_thousand_problems_are_made() {
    let text = tools(400).replace("a: {}", "a: {type: int}, x: {type: str}, y: {type: bool}");
    let fixed = fix_str("many.yaml", &text);
    assert!(load_str("many.yaml", &fixed.text).declarations.len() == 400, "{}", fixed.text);
}

#[test]
fn upstreams_behind_a_thousand_findings_are_read() {
    let mut text = tools(300) + "upstream:\n";
    for number in 0..20 {
        let _ = writeln!(text, "  - {{name: u{number}, command: [server]}}");
    }
    assert_eq!(load_str("many.yaml", &text).upstreams.len(), 20);
    let broken = text.replace("u19, command", "u19, comand");
    let loaded = load_str("many.yaml", &broken);
    assert!(of(&loaded, Severity::Error).iter().any(|found| found.message.contains("comand")));
}

#[test]
fn every_tool_is_looked_through_however_many_hints_there_are() {
    let text = tools(700);
    let asked = std::cell::Cell::new(0);
    let loaded = lint_str("many.yaml", &text, &|_| {
        asked.set(asked.get() + 1);
        Vec::new()
    });
    assert_eq!((asked.get(), loaded.declarations.len()), (700, 700));
}

#[test]
fn remarks_of_providers_wait_until_the_file_has_no_errors() {
    let text = tools(1) + "  - name: last\n    run: {argv: [uptime]}\n";
    let loaded = lint_str("many.yaml", &text, &|_| panic!("a tool that cannot be loaded"));
    assert!(loaded.has_errors());
}

#[test]
fn a_default_of_null_means_none_wherever_null_is_no_value() {
    let text = "toolcrib: 1\ntools:\n  - name: t\n    description: Show it.\n    input:\n      properties:\n        \
                a: {type: string, default: null}\n        b: {enum: [p, q], default: null}\n        \
                c: {type: [string, \"null\"], default: null}\n        d: {default: null}\n        \
                e: {type: object, properties: {f: {type: integer, default: null}}}\n        \
                g: {anyOf: [{type: string}, {type: \"null\"}], default: null}\n    \
                run: {argv: [t, \"${args.a}\", \"${args.b}\", \"${args.c}\", \"${args.d}\", \"${args.e}\", \"${args.g}\"]}\n";
    let loaded = load_str("nulls.yaml", text);
    let codes: Vec<_> = loaded.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["null-default"; 3]);
    let [tool] = loaded.declarations.as_slice() else { panic!("one tool") };
    let has_default = |pointer: &str| {
        let schema = tool.definition.input_schema().pointer(pointer);
        schema.is_some_and(|schema| schema.get("default").is_some())
    };
    let kept: Vec<_> = ["a", "b", "c", "d", "e/properties/f", "g"]
        .into_iter()
        .filter(|name| has_default(&format!("/properties/{name}")))
        .collect();
    assert_eq!(kept, ["c", "d", "g"]);
}

#[test]
fn single_letters_are_texts_with_a_warning() {
    let text = "toolcrib: 1\ntools:\n  - name: t\n    description: Show it.\n    input:\n      properties:\n        \
                n: {type: integer}\n        axis: {enum: [x, y]}\n      required: [n]\n    \
                run: {argv: [t, \"${args.n}\", \"${args.axis}\"]}\n";
    let loaded = load_str("letters.yaml", text);
    assert_eq!(loaded.declarations.len(), 1);
    let found: Vec<_> =
        loaded.diagnostics.iter().map(|found| (found.severity, found.code)).collect();
    assert_eq!(found, [(Severity::Warning, "ambiguous-scalar"); 2]);
    assert!(load_str("letters.yaml", &text.replace("[x, y]", "[x, yes]")).has_errors());
}
