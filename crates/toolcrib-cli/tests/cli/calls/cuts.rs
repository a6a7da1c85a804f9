//! No secret is visible at the cut of a long output, wherever a model moves the cut.

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::server::Server;

/// This secret is masked everywhere. No part of it occurs in other output of the tools.
const SECRET: &str = "Zq8rW2pLx5vN9cT3yB7kD6mH";
/// As long as the secret; its ends occur nowhere else in the output.
const HARMLESS: &str = "<0123456789-0123456789->";
/// Hidden only by a pattern.
const PASSWORD: &str = "Qf4sJ8wE1uG7hK2zR5nM";

fn crib() -> Crib {
    let crib = Crib::new(&[(
        "logs.yaml",
        &format!(
            r#"
toolcrib: 1
tools:
  - name: page
    description: Show a page with a token on it. Read-only.
    annotations: {{read_only: true}}
    input:
      properties: {{before: {{type: integer}}, text: {{type: string}}, after: {{type: integer}}}}
      required: [before, text, after]
    run:
      argv: [bash, -c, 'head -c "$BEFORE" /dev/zero | tr "\0" a; if [ "$TEXT" ]; then printf %s "$TEXT"; else printf %s "$TOKEN"; fi; head -c "$AFTER" /dev/zero | tr "\0" b']
      env: {{BEFORE: '${{args.before}}', TEXT: '${{args.text}}', AFTER: '${{args.after}}', TOKEN: '${{secret.token}}'}}
  - name: last_words
    description: Show the end of a log. Read-only.
    annotations: {{read_only: true}}
    input: {{properties: {{after: {{type: integer}}}}, required: [after]}}
    run:
      argv: [bash, -c, 'head -c 200000 /dev/zero | tr "\0" a; printf " password={PASSWORD} "; head -c "$AFTER" /dev/zero | tr "\0" b']
      env: {{AFTER: '${{args.after}}'}}
    output: {{keep: tail, redact: ['password=\S+']}}
"#
        ),
    )]);
    std::fs::write(crib.data().join("token"), SECRET).expect("a secret");
    crib.config(&format!(
        "secrets: {{token: {{file: {}}}}}\n",
        crib.data().join("token").display()
    ));
    crib
}

/// Everything that a model can read of an output, including the stored rest.
fn shown(server: &mut Server, tool: &str, arguments: &Value) -> String {
    let text = |answer: Value| {
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let mut shown = text(server.call(tool, arguments));
    let handle = shown.split("\"handle\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let Some(handle) = handle.map(str::to_owned) else { return shown };
    // Each position is on one of two overlapping pages.
    for offset in (0..).step_by(10_000) {
        let page = json!({"handle": handle, "offset": offset, "limit": 20_000});
        let page = server.call("read_output", &page);
        let more = page["result"]["structuredContent"]["next_offset"].is_u64();
        shown += "\n";
        shown += &text(page);
        if !more {
            return shown;
        }
    }
    shown
}

/// The first part of this length of a displayed text.
fn piece_of<'a>(text: &'a str, shown: &str) -> Option<&'a str> {
    const LENGTH: usize = 6;
    let pieces = (0..=text.len() - LENGTH).map(|at| &text[at..at + LENGTH]);
    pieces.into_iter().find(|piece| shown.contains(piece))
}

#[test]
fn a_secret_that_a_model_moves_over_the_cuts_of_an_output_is_shown_in_no_part() {
    const FAR: usize = 300_000;
    let crib = crib();
    let mut server = Server::mcp(&crib);
    for inside in (2..SECRET.len() - 1).step_by(3) {
        let (head, tail) = (48 * 1024 - inside, 16 * 1024 - inside);
        for (before, after) in [(head, FAR), (FAR, tail)] {
            let mut page = |text: &str| {
                let arguments = json!({"before": before, "text": text, "after": after});
                shown(&mut server, "page", &arguments)
            };
            // The cut goes through another text at the same position.
            let other = page(HARMLESS);
            let ends = [&HARMLESS[..1], &HARMLESS[HARMLESS.len() - 1..]];
            assert_ne!(other.contains(ends[0]), other.contains(ends[1]), "{before} {after}");
            let secret = page("");
            assert_eq!(
                piece_of(SECRET, &secret),
                None,
                "with {before} before and {after} after it"
            );
        }
    }
}

#[test]
fn a_pattern_hides_a_password_whose_name_was_cut_off() {
    let crib = crib();
    let mut server = Server::mcp(&crib);
    let whole = shown(&mut server, "last_words", &json!({"after": 10}));
    assert_eq!(piece_of(PASSWORD, &whole), None, "{whole}");
    let plain = shown(&mut server, "last_words", &json!({"after": 300_000}));
    let tail = plain.bytes().rev().take_while(|byte| *byte == b'b').count();
    let limits = [tail, 16 * 1024, 64 * 1024];
    for limit in limits.into_iter().filter(|limit| *limit > PASSWORD.len()) {
        for inside in (1..PASSWORD.len() + 8).step_by(3) {
            let after = limit - inside;
            let words = shown(&mut server, "last_words", &json!({"after": after}));
            assert_eq!(piece_of(PASSWORD, &words), None, "with {after} behind it");
        }
    }
}
