//! What does not hold on this machine, and why.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::crib::{Crib, run};

const TOOLS: &str = "toolcrib: 1
tools:
  - name: gone
    description: Needs what is not there.
    run: {argv: [no-such-program-here]}
  - name: here
    description: Says hi.
    run: {argv: [printf, hi]}
";

fn allow(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// What is said of settings and tools; of the machine it differs from one to the next.
fn from_settings_on(screen: &str) -> &str {
    screen.find("Settings\n").map_or(screen, |at| &screen[at..])
}

#[test]
fn every_promise_that_does_not_hold_is_named_with_what_to_do() {
    let crib =
        Crib::new(&[("a.yaml", TOOLS), ("b.yaml", TOOLS), ("c.yaml", "toolcrib: 1\ntols: []\n")]);
    crib.config(
        "state: {dir: state}
audit: {file: no/such/folder/audit.jsonl}
policy: {mode: yolo}
workspace: {root: nowhere}
secrets: {token: {env: NO_SUCH_VARIABLE}}
server: {listen: '127.0.0.1:0', token: 0123456789abcdef}
",
    );
    fs::create_dir(crib.path().join("state")).expect("a folder");
    allow(crib.path().join("state"), 0o755);
    allow(crib.path().join("config.yml"), 0o644);
    allow(crib.path().join("tools.d"), 0o777);
    allow(crib.path().join("tools.d/b.yaml"), 0o646);
    for name in ["a.yaml", "c.yaml"] {
        allow(crib.path().join("tools.d").join(name), 0o644);
    }
    let found = crib.run(&["doctor"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    let (settings, _) = from_settings_on(&found.stdout).rsplit_once("\n\n").expect("a summary");
    let settings: Vec<_> =
        settings.lines().filter(|line| !line.contains("good     tools")).collect();
    screen!("doctor", settings.join("\n"));

    let json = crib.run(&["doctor", "--json"]).json();
    assert_eq!(json["ok"], false);
    let findings = json["findings"].as_array().expect("a list");
    let state = findings.iter().find(|finding| finding["about"] == "state").expect("it is there");
    assert_eq!((&state["verdict"], &state["section"]), (&"failure".into(), &"settings".into()));
    for profile in ["pure", "workspace", "workspace+net"] {
        let found = findings.iter().find(|finding| finding["about"] == profile);
        let verdict = &found.expect("it is there")["verdict"];
        assert!(verdict == "good" || verdict == "warning", "{profile}: {verdict}");
    }
    assert!(!crib.path().join("no").exists(), "nothing is made");
}

#[test]
fn where_all_is_in_order_nothing_fails_and_nothing_is_left_behind() {
    let crib = Crib::new(&[]);
    crib.config(
        "state: {dir: state}\naudit: {file: audit.jsonl}\nserver: {listen: '127.0.0.1:0'}\n",
    );
    allow(crib.path().join("config.yml"), 0o600);
    allow(crib.path().join("tools.d"), 0o755);
    let found = crib.run(&["doctor"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    let settings = from_settings_on(&found.stdout);
    assert!(!settings.contains("failure ") && !settings.contains("warning "), "{settings}");
    let mut left: Vec<_> = fs::read_dir(crib.path())
        .expect("readable")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["config.yml", "tools.d"]);
}

#[test]
fn settings_that_cannot_be_used_are_a_failure_too() {
    let crib = Crib::new(&[]);
    let mut command = crib.command(&["doctor", "--json"]);
    let found = run(command.env("TOOLCRIB__CACHE__ENABLED", "perhaps"));
    assert_eq!(found.code, Some(1));
    assert!(found.stderr.contains("TOOLCRIB__CACHE__ENABLED"), "{found:?}");
    let findings = found.json()["findings"].as_array().expect("a list").clone();
    assert!(findings.iter().any(|one| one["about"] == "config" && one["verdict"] == "failure"));
}
