//! `toolcrib export --notes`: what a format changes, and which tools often fail.

use serde_json::json;

use crate::harness::crib::Crib;
use crate::harness::http::Http;

const TOOLS: &str = r"
toolcrib: 1
tools:
  - name: flaky
    description: Fail.
    run: {argv: [bash, -c, 'exit 3']}
  - name: steady
    description: Succeed.
    input: {properties: {number: {type: integer, default: 3}}}
    run: {argv: [echo, well]}
";

const FAILS: &str = "fails often: 20 of 20 runs";

fn crib() -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    crib.config("state: {dir: state}\n");
    crib
}

#[test]
fn the_prompt_says_which_tools_often_fail_as_long_as_a_server_knows_it() {
    let crib = crib();
    let server = Http::start(&crib, "");
    for _ in 0..20 {
        let failed = server.ask("POST /v1/tools/flaky/call", Some(&json!({})));
        assert_eq!(failed.status, 424, "{}", failed.body);
        let done = server.ask("POST /v1/tools/steady/call", Some(&json!({})));
        assert_eq!(done.status, 200, "{}", done.body);
    }
    let export = ["export", "--format", "prompt", "flaky", "steady"];
    let plain = crib.run(&export);
    assert_eq!((plain.code, plain.stdout.contains("fails often")), (Some(0), false), "{plain:?}");

    let arguments: Vec<_> = export.into_iter().chain(["--notes"]).collect();
    let noted = crib.run(&arguments);
    assert_eq!(noted.code, Some(0), "{noted:?}");
    let at = noted.stdout.find(FAILS).expect("the note");
    let tools = ["flaky", "steady"].map(|tool| noted.stdout.find(tool).expect("both are there"));
    assert!(tools[0] < at && at < tools[1], "the note is that of `flaky`: {noted:?}");
    assert_eq!(noted.stdout.matches("fails often").count(), 1, "{noted:?}");

    // Failures are counted by servers, but not stored.
    drop(server);
    let later = crib.run(&arguments);
    assert_eq!((later.code, &later.stdout), (Some(0), &plain.stdout), "{later:?}");
    assert!(later.stderr.contains("no server runs with this config"), "{later:?}");
}

#[test]
fn format_notes_go_to_standard_error_only() {
    let crib = crib();
    let export = ["export", "--format", "gemini", "steady"];
    let plain = crib.run(&export);
    let noted = crib.run(&export.into_iter().chain(["--notes"]).collect::<Vec<_>>());
    assert_eq!((plain.code, noted.code), (Some(0), Some(0)), "{noted:?}");
    assert_eq!(plain.stdout, noted.stdout);
    assert!(!plain.stderr.contains("note steady"), "{plain:?}");
    assert!(
        noted
            .stderr
            .contains("note steady at /properties/number: `default` is moved to the description"),
        "{noted:?}"
    );
}
