//! Restarts of other MCP servers: by `reload` when their script was changed, and by `reset`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::crib::{Crib, until};
use crate::harness::http::Http;
use crate::harness::upstream::add_server;

/// A call that returns the version of the script and a number that is another one for each process.
const CALL: &str = "first = globals().setdefault(\"first\", os.urandom(8).hex())\ntext = f\"1 {first}\"\nresult = {\"content\": [{\"type\": \"text\", \"text\": text}]}";

/// The version and the process that a call gets.
fn version(http: &Http) -> Option<(String, String)> {
    let answer = http.try_ask("POST /v1/tools/notes_get/call", Some(&json!({"arguments": {}})))?;
    let answer = answer.json();
    let text = answer["output"].as_str()?;
    let said = text.lines().find(|line| line.starts_with(['1', '2']) && line.contains(' '))?;
    let (version, process) = said.split_once(' ')?;
    Some((version.to_owned(), process.to_owned()))
}

/// Waits for a version that fits.
fn wait_for(http: &Http, fits: impl Fn(&(String, String)) -> bool) -> (String, String) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = version(http).filter(&fits) {
            return found;
        }
        assert!(Instant::now() < deadline, "no such version: {:?}", version(http));
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_changed_script_restarts_its_server_on_reload_and_reset_restarts_it_at_once() {
    let crib = Crib::new(&[]);
    add_server(&crib, "notes", "get", CALL);
    crib.config("state: {dir: state}\nregistry: {lock: off}\n");
    let http = Http::start(&crib, "");
    let (_, first) = wait_for(&http, |_| true);

    let unchanged = crib.run(&["reload"]);
    assert!(!unchanged.stdout.contains("restarted"), "{unchanged:?}");
    assert_eq!(version(&http).map(|(_, process)| process), Some(first.clone()));

    let script = crib.data().join("notes.py");
    let text = fs::read_to_string(&script).expect("a script").replace("f\"1 ", "f\"2 ");
    fs::write(&script, text).expect("a script");
    let reloaded = crib.run(&["reload"]);
    assert!(
        reloaded.stdout.contains("upstream notes: being restarted, its program was changed"),
        "{reloaded:?}"
    );
    let (_, second) = wait_for(&http, |(version, _)| version == "2");
    assert_ne!(first, second);

    let reset = until(&crib, &["reset", "notes"], |run| run.code == Some(0));
    assert!(reset.stdout.contains("the MCP server `notes` is being restarted"), "{reset:?}");
    let (_, third) = wait_for(&http, |(_, process)| *process != second);
    assert_ne!(second, third);
    let unknown = crib.run(&["reset", "nots"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.contains("no MCP server of this name"), "{unknown:?}");
}
