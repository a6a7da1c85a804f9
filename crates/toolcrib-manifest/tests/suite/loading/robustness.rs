//! Whatever the bytes are, loading ends with declarations or with diagnostics inside the text.

use proptest::prelude::*;
use toolcrib_manifest::load_str;

fn check(file: &str, text: &str) {
    let loaded = load_str(file, text);
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    for found in &loaded.diagnostics {
        assert!(body.get(found.span.clone()).is_some(), "{found:?} is outside of {text:?}");
        for (span, _) in &found.secondary {
            assert!(body.get(span.clone()).is_some(), "{found:?} is outside of {text:?}");
        }
        assert!(!found.message.is_empty());
        found.render(file, text, true);
        found.to_value(file, text);
    }
    assert!(loaded.declarations.is_empty() || !loaded.has_errors());
}

/// Pieces that manifests are made of, and some that break them.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "toolcrib: 1",
        "tools:",
        "- name: a",
        "name: b",
        "description: ",
        "run: ",
        "argv: [",
        "]",
        "{",
        "}",
        "input: ",
        "properties: ",
        "type: str",
        "type: string",
        "default: no",
        "${args.x}",
        "${",
        "$${",
        "&a ",
        "*a",
        "<<: ",
        "? ",
        ": ",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "\n      ",
        "\r\n",
        "\t",
        "'",
        "\"",
        "|\n",
        ">-\n",
        "#",
        "---",
        "...",
        "!!str ",
        "%YAML",
        "ä",
        "🦀",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "\0",
        "~",
        "012",
        "1e999",
        ",",
        "[",
        "=",
        "[[tools]]\n",
        "name = \"x\"\n",
        "$ref: '#/a'",
        "pattern: '('",
        "tests: ",
        "x-a: ",
    ];
    prop_oneof![
        8 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => ".{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,80}|(.|\\n){0,80}") {
        check("t.yaml", &text);
        check("t.toml", &text);
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        check("t.yaml", &String::from_utf8_lossy(&bytes));
        check("t.toml", &String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn text_that_looks_like_a_manifest_is_answered(
        pieces in proptest::collection::vec(piece(), 0..40),
    ) {
        let text = pieces.concat();
        check("t.yaml", &text);
        check("t.toml", &text);
    }

    #[test]
    fn a_manifest_with_a_hole_is_answered(start in 0usize..700, length in 0usize..40, fill in piece()) {
        let text = "toolcrib: 1\nnamespace: fs\nx-b: &b {timeout: 5s}\ntools:\n  - name: tail\n    \
            description: |\n      Read the end of a file.\n    annotations: {read_only: true}\n    \
            input:\n      properties:\n        path: {type: string, pattern: '^/'}\n        \
            lines: {type: integer, default: 10}\n      required: [path]\n    context:\n      \
            user: {from: ctx.user, type: string}\n    run:\n      argv: [tail, \"-n\", \
            \"${args.lines}\", {if: lines, then: [\"-q\"]}, --, \"${args.path}\"]\n      \
            env: {A: \"${secret.a}\"}\n    limits: *b\n    tests:\n      - {name: a, args: {path: /x}, \
            expect: {argv_contains: [tail]}}\n";
        let cut = |at: usize| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let (from, to) = (cut(start), cut(start + length));
        check("t.yaml", &format!("{}{fill}{}", &text[..from], &text[to..]));
    }
}
