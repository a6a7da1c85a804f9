//! `toolcrib reset`: a tool that is paused after repeated timeouts runs again, in every server.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;
use crate::harness::http::Http;

/// Sleeps for as long as the file `slow` exists.
const NAP: &str = r"
toolcrib: 1
tools:
  - name: nap
    description: Sleep while a file exists.
    limits: {timeout: 300ms}
    run: {argv: [bash, -c, 'if [ -e slow ]; then sleep 60; fi; echo rested']}
";

/// With a cooldown longer than any test.
const CONFIG: &str =
    "state: {dir: state}\nbreaker: {consecutive_timeouts: 2, cooldown: 10m}\nserver:\n  tokens:\n";

fn nap(address: &str, token: &str) -> Reply {
    let mut connection = Connection::open(address, token).expect("it listens");
    connection.ask("POST /v1/tools/nap/call", &[], &json!({})).expect("an answer")
}

/// Lets the calls of this client time out until the tool is paused.
fn pause(address: &str, token: &str) {
    for _ in 0..2 {
        let late = nap(address, token);
        assert_eq!((late.status, &late.body["kind"]), (504, &json!("timeout")), "{late:?}");
    }
    let refused = nap(address, token);
    assert_eq!((refused.status, &refused.body["kind"]), (503, &json!("paused")), "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
}

#[test]
fn reset_ends_the_pause_of_a_tool_for_every_client_of_every_server() {
    let crib = Crib::new(&[("nap.yaml", NAP)]);
    let mut config = CONFIG.to_owned();
    let [ada, bob] = ["ada", "bob"].map(|name| {
        let made = crib.run(&["token", name, "--json"]).json();
        let _ = writeln!(config, "    {name}: {{hash: {}, rights: [call]}}", made["hash"]);
        made["token"].as_str().expect("a token").to_owned()
    });
    crib.config(&config);

    let nobody = crib.run(&["reset", "nap"]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(nobody.stderr.contains("no server runs"), "{nobody:?}");

    let slow = crib.path().join("slow");
    fs::write(&slow, "").expect("written");
    let servers = [Http::start(&crib, ""), Http::start(&crib, "")];
    for token in [&ada, &bob] {
        pause(&servers[0].address, token);
    }
    pause(&servers[1].address, &ada);
    fs::remove_file(&slow).expect("it is there");
    for (server, token) in [(0, &ada), (0, &bob), (1, &ada)] {
        assert_eq!(nap(&servers[server].address, token).status, 503, "the pause lasts");
    }
    assert_eq!(nap(&servers[1].address, &bob).status, 200, "bob was never late there");

    for command in [&["status"][..], &["why", "nap"]] {
        let told = crib.run(command);
        let said = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("paused after repeated timeouts, "), "{told:?}");
        assert!(said.contains(" s left; `toolcrib reset nap` ends the pause"), "{told:?}");
    }

    // A client that may only call cannot end it.
    let mut connection = Connection::open(&servers[0].address, &ada).expect("it listens");
    let refused = connection.ask("POST /v1/tools/nap/reset", &[], &Value::Null);
    assert_eq!(refused.expect("an answer").status, 403);

    let reset = crib.run(&["reset", "nap"]);
    assert_eq!(reset.code, Some(0), "{reset:?}");
    for said in ["was paused for 2 identities", "was paused for one identity"] {
        assert!(reset.stdout.contains(said), "{reset:?}");
    }
    for server in &servers {
        for token in [&ada, &bob] {
            let rested = nap(&server.address, token);
            assert_eq!((rested.status, &rested.body["output"]), (200, &json!("rested\n")));
        }
    }

    let again = crib.run(&["reset", "nap", "--json"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let answers = again.json()["servers"].as_array().expect("servers").clone();
    let paused: Vec<_> = answers.iter().map(|one| one["paused"].as_u64()).collect();
    assert_eq!(paused, [Some(0), Some(0)], "{again:?}");
}

#[test]
fn reset_of_a_tool_that_does_not_exist_is_refused_and_names_it() {
    let crib = Crib::new(&[("nap.yaml", NAP)]);
    crib.config("state: {dir: state}\n");
    let _server = Http::start(&crib, "");
    let run = crib.run(&["reset", "nop"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("there is no tool named `nop`"), "{run:?}");
}
