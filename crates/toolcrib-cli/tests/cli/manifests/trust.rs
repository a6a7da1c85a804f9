//! The operator's trust: what a manifest cannot grant itself, and who can grant it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::crib::{Crib, until};
use crate::harness::server::Server;

const TRUSTED: &str = r"
toolcrib: 1
tools:
  - name: restart
    description: Restart the service that answers on port 80. Not for other services.
    run: {argv: [echo, restarted]}
    sandbox: {profile: trusted}
";

fn crib() -> Crib {
    let crib = Crib::new(&[("services.yaml", TRUSTED)]);
    crib.config("state: {dir: state}\n");
    crib
}

#[track_caller]
fn is_called(crib: &Crib, name: &str) -> bool {
    let run = crib.run(&["call", name]);
    if run.code != Some(0) {
        assert!(run.stderr.contains("unavailable"), "{run:?}");
    }
    run.code == Some(0)
}

#[test]
fn a_manifest_cannot_trust_itself_and_every_listing_says_what_to_do() {
    let crib = crib();
    assert!(!is_called(&crib, "restart"));
    let remedy = "needs the operator's trust for profile `trusted`: run `toolcrib trust \
                  tools.d/services.yaml:restart`, or add `tools.d/services.yaml:restart` to \
                  `manifests.trusted` in the config";
    for command in [["list", "--all"], ["why", "restart"], ["show", "restart"]] {
        let run = crib.run(&command);
        assert!(run.stdout.contains(remedy), "{command:?}: {run:?}");
    }
    let doctor = crib.run(&["doctor"]);
    assert!(doctor.stdout.replace("\n           ", " ").contains(remedy), "{doctor:?}");
    let check = crib.run(&["check"]);
    assert!(check.stderr.contains("needs-trust") && check.stderr.contains(remedy), "{check:?}");
    assert_eq!(check.code, Some(0));
    assert_eq!(crib.run(&["check", "--strict"]).code, Some(1));
}

#[test]
fn tools_of_one_manifest_are_listed_once_and_several_manifests_are_trusted_at_once() {
    let two = TRUSTED.to_owned()
        + "  - name: reload\n    description: Reload the service that answers on port 80. Not for others.\n    \
           run: {argv: [echo, reloaded]}\n    sandbox: {profile: trusted}\n";
    let other = TRUSTED.replace("restart", "halt");
    let crib = Crib::new(&[("services.yaml", &two), ("other.yaml", &other)]);
    crib.config("state: {dir: state}\n");
    let check = crib.run(&["check"]).stderr;
    assert_eq!(check.matches("warning[needs-trust]").count(), 2, "{check}");
    assert!(check.contains("2 tools of this file are unavailable: restart, reload"), "{check}");
    assert!(check.contains("run `toolcrib trust tools.d/services.yaml`"), "{check}");
    let list = crib.run(&["trust"]);
    assert!(list.stdout.contains("tools.d/services.yaml: restart, reload\n"), "{list:?}");
    assert!(list.stderr.contains("toolcrib trust tools.d/other.yaml:halt"), "{list:?}");
    let unknown = crib.run(&["trust", "tools.d/services.yaml", "tools.d/nosuch.yaml", "--yes"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(!is_called(&crib, "restart"), "nothing is trusted if one name is wrong");
    let units = ["tools.d/services.yaml", "tools.d/other.yaml"];
    let run = crib.run(&["trust", units[0], units[1], "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(["restart", "reload", "halt"].iter().all(|name| is_called(&crib, name)));
    let revoked = crib.run(&["trust", "--revoke", units[0], units[1]]);
    assert!(revoked.stdout.contains("revoked 3 tools"), "{revoked:?}");
}

#[test]
fn check_only_hints_at_files_that_the_config_does_not_load() {
    let crib = crib();
    fs::create_dir(crib.path().join("catalogue")).expect("a folder");
    fs::rename(
        crib.path().join("tools.d/services.yaml"),
        crib.path().join("catalogue/services.yaml"),
    )
    .expect("moved");
    let check = crib.run(&["check", "--strict", "catalogue"]);
    assert!(check.stderr.contains("hint[needs-trust]"), "{check:?}");
    assert_eq!(check.code, Some(0));
}

#[test]
fn the_config_trusts_a_manifest_or_one_tool_of_it() {
    let crib = crib();
    let more = "  - name: stop\n    description: Stop the service.\n    run: {argv: [echo, stopped]}\n    \
                sandbox: {profile: trusted}\n";
    crib.write("services.yaml", &format!("{TRUSTED}{more}"));
    for (named, both) in [
        ("tools.d/services.yaml", true),
        ("tools.d/services.yaml:restart", false),
        ("./tools.d/../tools.d/services.yaml:restart", false),
    ] {
        crib.config(&format!("manifests: {{trusted: ['{named}']}}\n"));
        assert!(is_called(&crib, "restart"), "{named}");
        assert_eq!(is_called(&crib, "stop"), both, "{named}");
    }
    for other in ["services.yaml", "tools.d", "tools.d/services.yaml:rest", "tools.d/services"] {
        crib.config(&format!("manifests: {{trusted: ['{other}']}}\n"));
        assert!(!is_called(&crib, "restart"), "{other}");
    }
}

#[test]
fn a_unit_is_named_from_the_folder_of_the_config() {
    let crib = crib();
    fs::create_dir(crib.path().join("etc")).expect("a folder");
    fs::rename(crib.path().join("tools.d"), crib.path().join("etc/tools.d")).expect("moved");
    fs::remove_file(crib.path().join("config.yml")).expect("removed");
    let config = |text: &str| fs::write(crib.path().join("etc/c.yml"), text).expect("a config");
    config("state: {dir: state}\n");
    let why = crib.run(&["--config", "etc/c.yml", "why", "restart"]);
    assert!(why.stdout.contains("`toolcrib trust tools.d/services.yaml:restart`"), "{why:?}");
    config("manifests: {trusted: [tools.d/services.yaml]}\n");
    assert_eq!(crib.run(&["--config", "etc/c.yml", "call", "restart"]).code, Some(0));
}

#[test]
fn a_trusted_tool_is_trusted_as_it_was_and_until_it_is_revoked() {
    let crib = crib();
    let refused = crib.run(&["trust", "tools.d/services.yaml:restart"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("repeat with `--yes`"), "{refused:?}");
    for shown in ["profile `trusted`", r#""echo" "restarted""#, "blake3:"] {
        assert!(refused.stderr.contains(shown), "{refused:?}");
    }
    assert!(!is_called(&crib, "restart"));

    let run = crib.run(&["trust", "tools.d/services.yaml:restart", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(is_called(&crib, "restart"));
    let list = crib.run(&["trust", "--list"]);
    assert!(list.stdout.starts_with("tools.d/services.yaml:restart blake3:"), "{list:?}");

    // A changed definition is no longer trusted; after the change is undone, it is again.
    crib.write("services.yaml", &TRUSTED.replace("restarted", "taken over"));
    assert!(!is_called(&crib, "restart"));
    let why = crib.run(&["why", "restart"]);
    assert!(why.stdout.contains("it has changed since it was trusted"), "{why:?}");
    crib.write("services.yaml", TRUSTED);
    assert!(is_called(&crib, "restart"));

    let revoked = crib.run(&["trust", "--revoke", "tools.d/services.yaml"]);
    assert_eq!(revoked.stdout, "revoked 1 tool\n");
    assert!(!is_called(&crib, "restart"));
    assert_eq!(crib.run(&["trust", "--revoke", "tools.d/services.yaml"]).code, Some(1));
}

#[test]
fn trusted_tools_become_live_in_a_running_server() {
    let crib = crib();
    let mut server = Server::mcp(&crib);
    let status = |what: &str| {
        let what = what.to_owned();
        until(&crib, &["why", "restart"], move |run| {
            run.stdout.lines().any(|line| line.contains("server") && line.contains(&what))
                || run.stdout.contains(&what)
        })
    };
    status("unavailable");
    assert_eq!(crib.run(&["trust", "tools.d/services.yaml", "--yes"]).code, Some(0));
    let call = json!({"name": "restart", "arguments": {}});
    let deadline = Instant::now() + Duration::from_secs(20);
    let answered = |server: &mut Server, id: u64| {
        server.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}));
        let answer = loop {
            let message = server.receive();
            if message["id"] == id {
                break message;
            }
        };
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    let mut id = 10;
    while answered(&mut server, id) != "restarted\n" {
        assert!(Instant::now() < deadline, "the server has not noticed");
        std::thread::sleep(Duration::from_millis(50));
        id += 1;
    }
    assert_eq!(crib.run(&["trust", "--revoke", "tools.d/services.yaml"]).code, Some(0));
    while answered(&mut server, id) == "restarted\n" {
        assert!(Instant::now() < deadline, "the server has not noticed");
        std::thread::sleep(Duration::from_millis(50));
        id += 1;
    }
}

#[test]
fn an_enforced_lock_is_the_operators_trust() {
    let crib = crib();
    crib.config("registry: {lock: enforce}\nstate: {dir: state}\n");
    assert_eq!(crib.run(&["lock"]).code, Some(0));
    assert!(is_called(&crib, "restart"));
    crib.config("registry: {lock: warn}\nstate: {dir: state}\n");
    assert!(!is_called(&crib, "restart"));
}

#[test]
fn trust_covers_the_bytes_of_scripts() {
    let crib = crib();
    let script = crib.path().join("tools.d/restart.sh");
    fs::write(&script, "#!/bin/sh\necho first\n").expect("a script");
    let manifest = TRUSTED.replace("{argv: [echo, restarted]}", "{script: ./restart.sh}");
    crib.write("services.yaml", &manifest);
    assert_eq!(crib.run(&["trust", "tools.d/services.yaml", "--yes"]).code, Some(0));
    assert_eq!(crib.run(&["call", "restart"]).stdout, "first\n");

    let mut server = Server::mcp(&crib);
    // The file changes after the server has loaded the manifest.
    fs::write(&script, "#!/bin/sh\necho second\n").expect("a script");
    let call = json!({"name": "restart", "arguments": {}});
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    let answer = server.receive();
    assert!(!answer.to_string().contains("second\\n"), "{answer}");
    assert!(!is_called(&crib, "restart"));
    let status = crib.run(&["status"]);
    let said = "restart: its files have changed since the server loaded them";
    assert!(status.stdout.contains(said), "{status:?}");
    assert!(status.stdout.contains("`toolcrib trust tools.d/services.yaml:restart`"), "{status:?}");
    let status = crib.run(&["status", "--json"]).json();
    assert_eq!(status["servers"][0]["changed_tools"][0]["name"], "restart", "{status}");
}

#[test]
fn a_trusted_server_is_not_started_without_the_operators_trust() {
    let crib = Crib::new(&[]);
    let mark = crib.path().join("started");
    crib.write(
        "servers.yaml",
        &format!(
            "toolcrib: 1\nupstream:\n  - {{name: far, command: [touch, '{}'], sandbox: {{profile: \
             trusted}}}}\n",
            mark.display()
        ),
    );
    crib.config("state: {dir: state}\n");
    crib.run(&["call", "far_x"]);
    let mut server = Server::mcp(&crib);
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    server.receive();
    let said = "it needs the operator's trust for profile `trusted`: run `toolcrib trust \
                tools.d/servers.yaml:far`";
    let status = until(&crib, &["status"], |run| run.stdout.contains("far"));
    assert!(status.stdout.contains(said), "{status:?}");
    assert!(!mark.exists());
    crib.config("manifests: {trusted: ['tools.d/servers.yaml:far']}\n");
    crib.run(&["call", "far_x"]);
    assert!(mark.exists());
}

#[test]
fn grants_that_reach_the_home_folder_need_the_operators_trust() {
    let crib = crib();
    let home = crib.home().to_owned();
    fs::create_dir_all(home.join(".ssh")).expect("a folder");
    fs::write(home.join(".ssh/id"), "key\n").expect("a file");
    std::os::unix::fs::symlink(&home, crib.path().join("link")).expect("a link");
    let ancestor = home.parent().expect("it has one").display().to_string();
    let listed = |sandbox: &str, more: &str| {
        let text = format!(
            "toolcrib: 1\ntools:\n  - name: reader\n    description: Read it.\n    run: {{argv: [cat, \
             /dev/null]}}\n    sandbox: {sandbox}\n{more}"
        );
        crib.write("services.yaml", &text);
        let why = crib.run(&["why", "reader", "--json"]).json();
        why["reason"].as_str().unwrap_or_default().to_owned()
    };
    for grant in ["/", "~", "~/.ssh", "~/notes", &ancestor, "link", "link/x", "../../../../../.."] {
        for verb in ["read", "write"] {
            let reason = listed(&format!("{{{verb}: ['{grant}']}}"), "");
            let word = format!("trust to {verb} `{grant}`");
            assert!(reason.contains(&word), "{verb} {grant}: {reason}");
        }
    }
    for grant in ["/usr", "/etc/ssl/certs", "data", "/proc/cpuinfo"] {
        assert_eq!(listed(&format!("{{read: ['{grant}']}}"), ""), "", "{grant}");
    }
    let at_home = format!("    cwd: '{}'\n", home.display());
    assert!(listed("{profile: workspace}", &at_home).contains("to work in"));
    let srv = crib.path().join("srv");
    fs::create_dir_all(srv.join("keys")).expect("a folder");
    assert_eq!(listed("{read: [srv]}", ""), "");
    crib.config("paths: {sensitive_extra: [srv/keys]}\n");
    assert!(listed("{read: [srv]}", "").contains("to read `srv`"));
    assert!(listed("{read: [srv/keys/a]}", "").contains("to read `srv/keys/a`"));
}

#[test]
fn whoever_trusts_a_tool_is_shown_variables_grants_the_script_and_what_changed() {
    let crib = crib();
    let script = crib.path().join("tools.d/restart.sh");
    fs::write(&script, "#!/bin/sh\necho first\n").expect("a script");
    let manifest = TRUSTED
        .replace(
            "{argv: [echo, restarted]}",
            "{script: ./restart.sh, env: {MODE: soft}, pass_env: [DISPLAY]}",
        )
        .replace("{profile: trusted}", "{profile: workspace, read: ['~/notes']}");
    crib.write("services.yaml", &manifest);
    let trust = ["trust", "tools.d/services.yaml", "--yes"];
    let first = crib.run(&trust);
    assert_eq!(first.code, Some(0), "{first:?}");
    for part in [
        "env      MODE",
        "pass_env DISPLAY",
        "read     ~/notes",
        "restart.sh (21 bytes)",
        "| echo first",
    ] {
        assert!(first.stderr.contains(part), "{part}: {first:?}");
    }
    assert!(!first.stderr.contains("changed"), "{first:?}");
    fs::write(&script, "#!/bin/sh\necho second\n").expect("a script");
    let second = crib.run(&trust);
    assert_eq!(second.code, Some(0), "{second:?}");
    for part in ["since it was trusted as", "-    | echo first", "+    | echo second"] {
        assert!(second.stderr.contains(part), "{part}: {second:?}");
    }
    let list = crib.run(&["trust", "--list", "--json"]);
    assert!(!list.stdout.contains("echo second"), "{list:?}");
}

#[test]
fn read_grants_that_expose_the_system_need_the_operators_trust() {
    let crib = crib();
    for grant in ["/etc", "/proc", "/run", "/var/run", "/root", "/run/docker.sock"] {
        let text = TRUSTED.replace("{profile: trusted}", &format!("{{read: ['{grant}']}}"));
        crib.write("services.yaml", &text);
        let why = crib.run(&["why", "restart"]);
        assert!(why.stdout.contains(&format!("trust to read `{grant}`")), "{grant}: {why:?}");
    }
}

#[test]
fn whoever_trusts_again_is_shown_every_value_that_has_changed() {
    let crib = crib();
    let manifest = |mode: &str, service: &str| {
        let run = format!("{{argv: [echo, restarted], env: {{MODE: {mode}}}}}");
        TRUSTED.replace("{argv: [echo, restarted]}", &run).replace("port 80", service)
    };
    let trust = ["trust", "tools.d/services.yaml", "--yes"];
    crib.write("services.yaml", &manifest("soft", "port 80"));
    let first = crib.run(&trust);
    assert!(first.code == Some(0) && first.stderr.contains(r#"MODE="soft""#), "{first:?}");
    for (mode, service, gone, new) in
        [("hard", "port 80", "\"soft\"", "\"hard\""), ("hard", "port 443", "port 80", "port 443")]
    {
        crib.write("services.yaml", &manifest(mode, service));
        let again = crib.run(&trust);
        let lines = |sign: char, part: &str| {
            again.stderr.lines().any(|line| line.starts_with(sign) && line.contains(part))
        };
        assert!(lines('-', gone) && lines('+', new), "{gone}: {again:?}");
    }
}

#[test]
fn a_change_beyond_what_is_shown_of_a_long_script_is_shown() {
    let crib = crib();
    let script = crib.path().join("tools.d/restart.sh");
    let text = |last: &str| format!("#!/bin/sh\n{}echo {last}\n", "# a line\n".repeat(4000));
    fs::write(&script, text("first")).expect("a script");
    crib.write(
        "services.yaml",
        &TRUSTED.replace("{argv: [echo, restarted]}", "{script: ./restart.sh}"),
    );
    let trust = ["trust", "tools.d/services.yaml", "--yes"];
    let first = crib.run(&trust);
    assert!(
        first.code == Some(0) && !first.stderr.contains("echo first"),
        "{}",
        first.stderr.len()
    );
    fs::write(&script, text("second")).expect("a script");
    let second = crib.run(&trust);
    for part in ["-    | echo first", "+    | echo second"] {
        assert!(second.stderr.contains(part), "{part}");
    }
}

#[test]
fn without_an_argument_it_lists_what_waits_for_the_operators_trust() {
    let crib = crib();
    let run = crib.run(&["trust"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout, "tools.d/services.yaml:restart\n    profile `trusted`\n");
    assert!(run.stderr.contains("`toolcrib trust tools.d/services.yaml:restart`"), "{run:?}");
    let json = crib.run(&["trust", "--json"]).json();
    assert_eq!(json["untrusted"][0]["name"], "restart");
    assert_eq!(crib.run(&["trust", "tools.d/services.yaml:restart", "--yes"]).code, Some(0));
    let run = crib.run(&["trust"]);
    assert!(run.stdout.is_empty() && run.stderr.contains("nothing here needs"), "{run:?}");
    for alone in ["--yes", "--revoke"] {
        assert_eq!(crib.run(&["trust", alone]).code, Some(2), "{alone} needs a name");
    }
}

#[test]
fn conditional_argv_entries_are_shown_in_brackets() {
    let crib = Crib::new(&[(
        "pods.yaml",
        r#"
toolcrib: 1
tools:
  - name: pods
    description: List the pods of a namespace, or of all. Read-only.
    annotations: {read_only: true}
    input: {properties: {namespace: {enum: [web, db]}, kinds: {type: array, items: {enum: [a, b]}}}}
    run: {argv: [kubectl, get, pods, {if: namespace, then: [-n, "${args.namespace}"]}, {each: kinds}]}
    sandbox: {profile: trusted}
"#,
    )]);
    let run = crib.run(&["trust", "tools.d/pods.yaml:pods"]);
    let screen = run.stdout + &run.stderr;
    let runs = r#"runs     "kubectl" "get" "pods" [if namespace: "-n" "${args.namespace}"] [each of kinds]"#;
    assert!(screen.contains(runs), "{screen}");
    assert!(!screen.contains(r#"\"if\""#), "no argument has this text: {screen}");
}
