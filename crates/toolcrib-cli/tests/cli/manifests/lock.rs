//! The lock from the operator's view: written, checked, enforced.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use crate::harness::crib::Crib;
use crate::harness::server::Server;

const HELLO: &str = r#"
toolcrib: 1
tools:
  - name: say_hello
    description: Say hello to somebody. Read-only.
    annotations: {read_only: true, open_world: false}
    input: {properties: {name: {type: string}}, required: [name]}
    run: {argv: [printf, "--", "Hello, %s", "${args.name}"]}
"#;

const BYE: &str = "
toolcrib: 1
tools:
  - name: say_bye
    description: Say goodbye. Read-only.
    annotations: {read_only: true, open_world: false}
    run: {argv: [echo, Bye]}
";

fn locked(mode: &str) -> Crib {
    let crib = Crib::new(&[("bye.yaml", BYE), ("hello.yaml", HELLO)]);
    crib.config(&format!("registry: {{lock: {mode}}}\n"));
    assert_eq!(crib.run(&["lock"]).code, Some(0));
    crib
}

/// The tool that an attacker would want.
fn evil() -> String {
    HELLO.replace("Say hello to", "Say hello to and report on").replace("Hello, %s", "Evil, %s")
}

#[test]
fn a_written_lock_is_up_to_date() {
    let crib = Crib::new(&[("bye.yaml", BYE), ("hello.yaml", HELLO)]);
    let check = crib.run(&["lock", "--check"]);
    assert_eq!(check.code, Some(1), "nothing was accepted yet");
    assert!(!crib.path().join("toolcrib.lock").exists());

    let first = crib.run(&["lock"]);
    assert_snapshot!(first.stdout, @"
    added      bash of native:toolcrib-builtins
    added      calculator of native:toolcrib-builtins
    added      crawl_batch of native:toolcrib-web
    added      data_analysis of native:toolcrib-databases
    added      edit_file of native:toolcrib-builtins
    added      execute_python of native:toolcrib-builtins
    added      fetch_page of native:toolcrib-web
    added      file_delete of native:toolcrib-builtins
    added      file_exists of native:toolcrib-builtins
    added      file_list of native:toolcrib-builtins
    added      file_mkdir of native:toolcrib-builtins
    added      file_read of native:toolcrib-builtins
    added      file_search of native:toolcrib-builtins
    added      file_write of native:toolcrib-builtins
    added      json_process of native:toolcrib-builtins
    added      read_output of native:toolcrib-core
    added      say_bye of manifest:tools.d/bye.yaml
    added      say_hello of manifest:tools.d/hello.yaml
    added      text_process of native:toolcrib-builtins
    toolcrib.lock written: 19 tools, 19 changes
    ");
    let text = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("it was written");
    assert!(text.contains("owner = \"manifest:tools.d/hello.yaml\""), "{text}");
    assert!(text.contains("\"/run/argv\" = [\"printf\", \"--\", \"Hello, %s\", \"${args.name}\"]"));

    assert_snapshot!(crib.run(&["lock"]).stdout, @"toolcrib.lock is up to date: 19 tools");
    assert_eq!(crib.run(&["lock", "--check"]).code, Some(0));
    assert_eq!(fs::read_to_string(crib.path().join("toolcrib.lock")).expect("it is there"), text);

    // Formatting, comments and tests are not pinned; and the lock is the same from every working directory.
    crib.write(
        "bye.yaml",
        &BYE.replace("{argv: [echo, Bye]}", "\n      # a comment\n      argv: ['echo', \"Bye\"]"),
    );
    crib.config("{}");
    let mut elsewhere = crib.command(&["lock", "--check", "--config", "../config.yml"]);
    elsewhere.current_dir(crib.path().join("tools.d"));
    let elsewhere = crate::harness::crib::run(&mut elsewhere);
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
}

#[test]
fn an_enforced_lock_blocks_what_has_changed_until_it_is_accepted() {
    let crib = locked("enforce");
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Hello, Ada\n");

    crib.write("hello.yaml", &evil());
    let call = crib.run(&["call", "say_hello", "name=Ada", "--json"]).json();
    assert_eq!(call["error"]["kind"], "unavailable");
    assert_eq!(crib.run(&["call", "say_bye"]).stdout, "Bye\n");
    let list = crib.run(&["list"]);
    assert!(!list.stdout.contains("say_hello"), "{list:?}");
    assert_snapshot!(list.stderr, @"1 blocked: see `toolcrib list --all`");
    let all = crib.run(&["list", "--all"]).stdout;
    assert_snapshot!(all.lines().last().unwrap_or_default(), @"blocked say_hello: it has changed since toolcrib.lock accepted it; the operator sees what differs with `toolcrib lock --diff` and accepts it with `toolcrib lock` (manifest tools.d/hello.yaml:4:11)");
    let shown = crib.run(&["show", "say_hello"]).stdout;
    let (shown, digest) = shown.split_once("declaration digest ").expect("a digest");
    assert!(digest.starts_with("blake3:"), "{digest}");
    assert_snapshot!(shown, @r#"
    say_hello
    Say hello to and report on somebody. Read-only.

    blocked: it has changed since toolcrib.lock accepted it; the operator sees what differs with `toolcrib lock --diff` and accepts it with `toolcrib lock`

    Arguments
      name (string, required)

    A call
      runs     "printf" "--" "Evil, %s" "${args.name}"
      profile  workspace
      approval not needed
      timeout  30s

    changes nothing; stays on this host; from manifest tools.d/hello.yaml:4:11
    "#);

    let why = crib.run(&["why", "say_hello"]).stdout;
    assert!(why.contains("blocked       it has changed since toolcrib.lock accepted it"), "{why}");
    assert_eq!(crib.run(&["why", "say_hello", "--json"]).json()["state"], "blocked");
    let diff = crib.run(&["lock", "--diff"]);
    assert_eq!(diff.code, Some(1), "as of diff: there are changes");
    assert_snapshot!(diff.stdout, @r#"
    changed    say_hello of manifest:tools.d/hello.yaml: description, run
      /description
        - "Say hello to somebody. Read-only."
        + "Say hello to and report on somebody. Read-only."
      /run/argv
        - ["printf", "--", "Hello, %s", "${args.name}"]
        + ["printf", "--", "Evil, %s", "${args.name}"]
    "#);
    assert_snapshot!(diff.stderr, @"1 change: accept with `toolcrib lock`");
    let check = crib.run(&["lock", "--check"]);
    assert_eq!(check.code, Some(1));
    assert_snapshot!(check.stdout, @"changed    say_hello of manifest:tools.d/hello.yaml: description, run");
    assert_snapshot!(check.stderr, @"error: toolcrib.lock is not up to date: 1 change; see `toolcrib lock --diff`, accept with `toolcrib lock`");

    assert_eq!(crib.run(&["lock"]).code, Some(0));
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Evil, Ada\n");
}

#[test]
fn nobody_takes_a_locked_name_over_by_sorting_first() {
    let crib = locked("enforce");
    crib.write("a.yaml", &evil());
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Hello, Ada\n");
    let all = crib.run(&["list", "--all"]);
    assert!(all.stdout.contains("shadowed say_hello of manifest tools.d/a.yaml"), "{all:?}");
    let diff = crib.run(&["lock", "--diff"]).stdout;
    assert!(diff.starts_with("wanted     say_hello by manifest:tools.d/a.yaml"), "{diff}");
    assert!(diff.contains("the lock still gives it to manifest:tools.d/hello.yaml"), "{diff}");
}

#[test]
fn check_follows_the_owner_that_an_enforced_lock_names() {
    let crib = locked("enforce");
    crib.write("a.yaml", &evil());
    let check = crib.run(&["check"]);
    let said = check.stdout + &check.stderr;
    let blocked = "the lock gives the name `say_hello` to manifest tools.d/hello.yaml";
    assert!(said.contains("tools.d/a.yaml:") && said.contains(blocked), "{said}");
    assert!(!said.contains("is taken already"), "{said}");
}

#[test]
fn a_locked_name_goes_to_another_owner_only_when_it_is_named() {
    let crib = locked("enforce");
    crib.write("a.yaml", &evil());
    let before = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("a lock");
    let refused = crib.run(&["lock"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("`toolcrib lock --take-over say_hello`"), "{refused:?}");
    let after = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("a lock");
    assert_eq!(before, after);
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Hello, Ada\n");
    let handed = crib.run(&["lock", "--take-over", "say_hello"]);
    assert_eq!(handed.code, Some(0), "{handed:?}");
    assert!(handed.stdout.starts_with("taken over say_hello by manifest:tools.d/a.yaml"));
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Evil, Ada\n");
}

#[test]
fn a_tool_moved_to_another_file_is_accepted_and_said() {
    let crib = locked("enforce");
    fs::rename(crib.path().join("tools.d/hello.yaml"), crib.path().join("tools.d/greet.yaml"))
        .expect("renamed");
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Hello, Ada\n");
    let all = crib.run(&["list", "--all"]).stdout;
    assert!(
        all.contains(
            "it has moved since toolcrib.lock accepted it, from manifest:tools.d/hello.yaml"
        ),
        "{all}"
    );
    assert_snapshot!(crib.run(&["lock"]).stdout, @"
    moved      say_hello from manifest:tools.d/hello.yaml to manifest:tools.d/greet.yaml
    toolcrib.lock written: 19 tools, 1 change
    ");
}

#[test]
fn where_the_lock_only_warns_everything_runs_and_is_listed() {
    let crib = locked("warn");
    crib.write("hello.yaml", &evil());
    crib.write("new.yaml", &BYE.replace("say_bye", "say_more"));
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Evil, Ada\n");
    let list = crib.run(&["list"]);
    assert!(list.stdout.contains("say_hello") && list.stdout.contains("say_more"));
    assert_snapshot!(list.stderr, @"2 with a remark: see `toolcrib list --all`");
    let all = crib.run(&["list", "--all"]).stdout;
    let remarks: Vec<_> = all.lines().filter(|line| line.starts_with("remark")).collect();
    assert_snapshot!(remarks.join("\n"), @"
    remark say_hello: it has changed since toolcrib.lock accepted it (manifest tools.d/hello.yaml:4:11)
    remark say_more: toolcrib.lock has not accepted it (manifest tools.d/new.yaml:4:11)
    ");
    let why = crib.run(&["why", "say_hello"]).stdout;
    assert!(why.contains("remark        it has changed since toolcrib.lock accepted it"), "{why}");
    let json = crib.run(&["list", "--json"]).json();
    let tools = json["tools"].as_array().expect("tools");
    let hello = tools.iter().find(|tool| tool["name"] == "say_hello").expect("it is listed");
    assert!(hello["remark"].as_str().is_some_and(|remark| remark.contains("changed")));

    crib.config("registry: {lock: off}\n");
    assert!(crib.run(&["list"]).stderr.is_empty());
}

#[test]
fn enforced_without_a_lock_no_manifest_tool_runs_and_linked_ones_do() {
    let crib = Crib::new(&[("hello.yaml", HELLO)]);
    crib.config("registry: {lock: enforce}\n");
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).code, Some(1));
    assert_eq!(crib.run(&["call", "calculator", "expression=1+1"]).stdout, "2\n");
}

#[test]
fn a_damaged_lock_starts_nothing_where_it_is_enforced_and_is_only_said_elsewhere() {
    let crib = locked("enforce");
    fs::write(crib.path().join("toolcrib.lock"), "version = 1\n<<<<<<< HEAD\n").expect("written");
    let run = crib.run(&["list"]);
    assert_eq!(run.code, Some(2));
    assert_snapshot!(run.stderr, @"
    error: the lock toolcrib.lock cannot be used: TOML parse error at line 2, column 9
      |
    2 | <<<<<<< HEAD
      |         ^
    key with no value, expected `=`
    Restore the last good one, or remove it and accept the tools anew with `toolcrib lock`
    ");
    assert_eq!(crib.run(&["lock"]).code, Some(2), "it is not overwritten either");
    crib.config("{}");
    assert_eq!(crib.run(&["call", "say_hello", "name=Ada"]).stdout, "Hello, Ada\n");
}

#[test]
fn a_broken_manifest_is_not_locked_away() {
    let crib = locked("warn");
    let before = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("it is there");
    crib.write("hello.yaml", &HELLO.replace("description", "descripton"));
    let run = crib.run(&["lock"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("did you mean `description`?"), "{run:?}");
    assert!(run.stderr.contains("fix it first"), "{run:?}");
    assert_eq!(fs::read_to_string(crib.path().join("toolcrib.lock")).expect("it is there"), before);
}

#[test]
fn programs_read_the_changes_as_json() {
    let crib = locked("warn");
    crib.write("hello.yaml", &evil());
    let check = crib.run(&["lock", "--check", "--json"]);
    assert_eq!(check.code, Some(1));
    let json = check.json();
    assert_eq!((&json["ok"], &json["written"]), (&false.into(), &false.into()));
    let change = &json["changes"][0];
    assert_eq!((&change["name"], &change["change"]), (&"say_hello".into(), &"changed".into()));
    assert_eq!(change["fields"][0]["pointer"], "/description");
    assert_eq!(change["fields"][0]["before"], "Say hello to somebody. Read-only.");
    assert_eq!(crib.run(&["lock", "--json"]).json()["written"], true);
}

const SCRIPT: &str = "
toolcrib: 1
tools:
  - name: say_hello
    description: Say hello. Read-only.
    annotations: {read_only: true, open_world: false}
    run: {script: ./hello.sh}
";

#[test]
fn a_changed_script_is_blocked_at_the_start_at_a_reload_and_in_between() {
    let crib = Crib::new(&[("hello.yaml", SCRIPT), ("hello.sh", "#!/bin/sh\necho Hello\n")]);
    crib.config("registry: {lock: enforce}\nstate: {dir: state}\n");
    assert_eq!(crib.run(&["lock"]).code, Some(0));
    let mut server = Server::mcp(&crib);
    let mut id = 10;
    let mut call = |server: &mut Server| {
        id += 1;
        let params = json!({"name": "say_hello", "arguments": {}});
        server.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        loop {
            let message = server.receive();
            if message["id"] == id {
                return message["result"]["content"][0]["text"].to_string();
            }
        }
    };
    assert!(call(&mut server).contains("Hello"));

    crib.write("hello.sh", "#!/bin/sh\necho Evil\n");
    let changed = call(&mut server);
    assert!(changed.contains("has changed since the tools were loaded"), "{changed}");
    assert!(changed.contains("`toolcrib reload`"), "{changed}");
    let accepted = "it has changed since toolcrib.lock accepted it";
    let started = crib.run(&["call", "say_hello"]);
    assert!(started.code == Some(1) && started.stderr.contains(accepted), "{started:?}");

    assert_eq!(crib.run(&["reload"]).code, Some(0));
    let reloaded = call(&mut server);
    assert!(reloaded.contains(accepted), "{reloaded}");
    let diff = crib.run(&["lock", "--diff"]).stdout;
    assert!(
        diff.starts_with("changed    say_hello of manifest:tools.d/hello.yaml: run\n  /run/script")
    );

    assert_eq!(crib.run(&["lock"]).code, Some(0));
    assert_eq!(crib.run(&["reload"]).code, Some(0));
    assert!(call(&mut server).contains("Evil"), "it was accepted");
}
