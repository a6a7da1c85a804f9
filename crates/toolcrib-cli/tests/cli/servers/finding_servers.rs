//! Commands find the servers of their config, whatever the state folder is, and even if the config is invalid.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::crib::{Crib, run, until};
use crate::harness::server::{Server, command};

const TOOL: &str = "toolcrib: 1
tools:
  - name: restart
    description: Restart the service that answers on port 80. Not for other services.
    run: {argv: [echo, restarted]}
    sandbox: {profile: trusted}
";

fn serve() -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).env_remove("TOOLCRIB_TOKEN");
    command
}

/// A crib whose server has a state folder that a command finds only by the config.
fn crib_with_a_server_elsewhere() -> (Crib, Server) {
    let crib = Crib::new(&[("services.yaml", TOOL)]);
    crib.config("policy: {}\n");
    let mut serve = serve();
    serve.args(["--set", &format!("state.dir={}", crib.data().join("other").display())]);
    let server = Server::spawn(&crib, serve);
    until(&crib, &["status"], |run| run.code == Some(0));
    (crib, server)
}

#[test]
fn a_server_with_another_state_folder_is_found_by_its_config() {
    let (crib, server) = crib_with_a_server_elsewhere();
    for look in [&["status"][..], &["stats"], &["reload"], &["approvals"]] {
        let found = crib.run(look);
        assert_eq!(found.code, Some(0), "{look:?}: {found:?}");
    }
    let pid = crib.run(&["status", "--json"]).json()["servers"][0]["pid"].clone();
    assert_eq!(pid, server.id());
    // A server has one entry, however many paths lead to it.
    let own = format!("state.dir={}", crib.data().join("other").display());
    let named = crib.run(&["status", "--json", "--set", &own]).json();
    assert_eq!(named["servers"].as_array().map(Vec::len), Some(1));
    drop(server);
    let gone = crib.run(&["status"]);
    assert_eq!(gone.code, Some(1));
    for said in ["no server runs with this config", "/state/toolcrib/", "--set state.dir=FOLDER"] {
        assert!(gone.stderr.contains(said), "{gone:?}");
    }
}

#[test]
fn a_stopped_server_leaves_no_folder_where_it_was_only_announced() {
    let crib = Crib::new(&[]);
    crib.config("policy: {}\n");
    let mut serve = serve();
    let state = format!("state.dir={}", crib.data().join("other").display());
    serve.args(["--set", &state]);
    let mut server = Server::spawn(&crib, serve);
    until(&crib, &["status", "--set", &state], |run| run.code == Some(0));
    let folders = || fs::read_dir(crib.state_home().join("toolcrib")).map_or(0, Iterator::count);
    assert_eq!(folders(), 1, "its link can be found by the config");
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
    assert_eq!(folders(), 0, "nothing is left");
}

#[test]
fn trust_is_not_recorded_where_the_server_does_not_look() {
    let (crib, _server) = crib_with_a_server_elsewhere();
    let refused = crib.run(&["trust", "tools.d/services.yaml:restart", "--yes"]);
    let remedy = format!("repeat with `--set state.dir={}`", crib.data().join("other").display());
    assert!(refused.code == Some(2) && refused.stderr.contains(&remedy), "{refused:?}");
    let own = format!("state.dir={}", crib.data().join("other").display());
    let done = crib.run(&["trust", "tools.d/services.yaml:restart", "--yes", "--set", &own]);
    assert_eq!(done.code, Some(0), "{done:?}");
    until(&crib, &["status"], |run| run.stdout.contains("0 unavailable"));
}

#[test]
fn the_administrator_makes_no_state_folder_that_the_user_of_the_config_cannot_use() {
    let crib = Crib::new(&[("services.yaml", TOOL)]);
    if std::os::unix::fs::chown(crib.path(), Some(12_345), Some(12_345)).is_err() {
        // Only the administrator can change the owner of files.
        return;
    }
    crib.config("state: {dir: state}\n");
    let trust = ["trust", "tools.d/services.yaml:restart", "--yes"];
    let refused = crib.run(&trust);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("run this command as its user"),
        "{refused:?}"
    );
    let state = crib.path().join("state");
    assert!(!state.exists());
    fs::DirBuilder::new().mode(0o700).create(&state).expect("made");
    std::os::unix::fs::chown(&state, Some(12_345), Some(12_345)).expect("given away");
    assert_eq!(crib.run(&trust).code, Some(0));
    for entry in fs::read_dir(&state).expect("read").flatten() {
        assert_eq!(entry.metadata().expect("there").uid(), 12_345, "{entry:?}");
    }
}

#[test]
fn servers_are_found_and_asked_with_a_broken_config() {
    let crib = Crib::new(&[]);
    for (state, broken) in [
        ("policy: {}\n", "policy: {on_ask: wiat}\n"),
        ("policy: {}\n", "policy: {on_ask: [\n"),
        ("state: {dir: own}\n", "state: {dir: own}\npolicy: {on_ask: wiat}\n"),
        ("state: {dir: own}\n", "state: {dir: own}\npolicy: {on_ask: [\n"),
    ] {
        crib.config(state);
        let server = Server::spawn(&crib, serve());
        until(&crib, &["status"], |run| run.code == Some(0));
        crib.config(broken);
        for look in [&["status"][..], &["approvals"], &["stats"]] {
            let found = crib.run(look);
            assert_eq!(found.code, Some(0), "{broken}: {found:?}");
            let warning = "warning: the settings cannot be used: 1 mistake. Running servers keep";
            assert!(found.stderr.contains(warning) && found.stderr.contains("-->"), "{found:?}");
        }
        // Each mistake is shown once, even if several commands find it.
        let status = crib.run(&["status"]);
        let shown = format!("{}{}", status.stdout, status.stderr);
        assert_eq!(shown.matches("-->").count(), 1, "{status:?}");
        for _ in 0..2 {
            let refused = crib.run(&["reload"]);
            assert!(
                refused.code == Some(1) && refused.stderr.contains("nothing was changed"),
                "{refused:?}"
            );
            assert_eq!(refused.stderr.matches("-->").count(), 1, "{refused:?}");
        }
        let status = crib.run(&["status"]);
        let shown = format!("{}{}", status.stdout, status.stderr);
        assert_eq!(shown.matches("-->").count(), 1, "{status:?}");
        crib.config(state);
        assert_eq!(crib.run(&["reload"]).code, Some(0));
        drop(server);
    }
}

#[test]
fn a_second_config_that_a_program_made_does_not_keep_the_operator_from_the_server() {
    let crib = Crib::new(&[]);
    crib.config("state: {dir: own}\n");
    let server = Server::spawn(&crib, serve());
    until(&crib, &["status"], |run| run.code == Some(0));
    std::fs::write(crib.path().join("config.toml"), "x = 1\n").unwrap();
    for look in [&["status"][..], &["approvals"], &["stats"]] {
        let found = crib.run(look);
        assert_eq!(found.code, Some(0), "{found:?}");
        assert!(found.stderr.contains("warning: there are two config files here"), "{found:?}");
    }
    drop(server);
    let alone = crib.run(&["status"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
}

#[test]
fn start_and_status_report_unavailable_tools_and_unmatched_names() {
    let crib = Crib::new(&[]);
    let tools: Vec<String> = (0..7)
        .map(|at| {
            format!(
                "  - name: tool_{at}\n    description: Restart number {at}.\n    run: {{argv: [echo]}}\n    \
                 sandbox: {{profile: trusted}}\n"
            )
        })
        .collect();
    let tools = tools.concat();
    crib.write("services.yaml", &format!("toolcrib: 1\ntools:\n{tools}"));
    crib.config(
        "state: {dir: state}\nmanifests: {trusted: [tools.d/servcies.yaml]}\npolicy: {rules: [{tool: tool_9, \
         action: deny}]}\n",
    );
    let mut start = crib.command(&["mcp"]);
    let said = run(start.env_remove("RUST_LOG").write_stdin("")).stderr;
    assert!(said.contains("7 tools unavailable: `tool_0`: needs the operator's trust"), "{said}");
    assert!(said.contains("2 more: see `toolcrib list --all`"), "{said}");
    let unmatched =
        ["tools.d/servcies.yaml`, but no manifest", "`policy.rules[0]` is about `tool_9`"];
    for own in unmatched {
        assert!(said.contains(own), "{own}: {said}");
        let doctor = crib.run(&["doctor"]).stdout.replace("\n           ", " ");
        assert!(doctor.contains(own), "{own}: {doctor}");
    }
    let check = crib.run(&["check", "--strict"]);
    assert!(check.code == Some(1) && check.stderr.contains("warning[unmatched-name]"), "{check:?}");
    assert_eq!(crib.run(&["check", "--json"]).json()["config"].as_array().map(Vec::len), Some(2));

    let _server = Server::mcp(&crib);
    let status = until(&crib, &["status"], |run| run.code == Some(0)).stdout;
    assert!(
        status.contains("7 unavailable") && status.contains("unavailable tool_4: "),
        "{status}"
    );
    assert!(status.contains("2 more unavailable: see `toolcrib list --all`"), "{status}");
    assert!(!status.contains("tool_5"), "{status}");
    let reload = crib.run(&["reload"]).stdout;
    assert!(unmatched.iter().all(|own| reload.contains(own)), "{reload}");
}

#[test]
fn a_network_listener_warns_about_missing_tls() {
    let crib = Crib::new(&[]);
    let errors = crib.data().join("stderr");
    let mut server = Server::spawn(&crib, {
        let mut shell = command("sh");
        shell.arg("-c").arg(format!(
            "exec {} serve --listen 0.0.0.0:0 --token 0123456789abcdef --json 2> {}",
            env!("CARGO_BIN_EXE_toolcrib"),
            errors.display()
        ));
        shell
    });
    let started = server.receive();
    assert!(
        started["bound"].as_str().is_some_and(|bound| bound.starts_with("0.0.0.0:")),
        "{started}"
    );
    // A separate thread writes the log.
    let parts = ["0.0.0.0:", "has no TLS", "`server.allowed_hosts`"];
    let said = || fs::read_to_string(&errors).expect("it is written");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !parts.iter().all(|part| said().contains(part)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    for part in parts {
        assert!(said().contains(part), "{part}: {}", said());
    }
}

#[test]
fn a_second_server_learns_which_one_holds_the_address() {
    let crib = Crib::new(&[("services.yaml", TOOL)]);
    let mut first = Server::spawn(&crib, serve());
    let url = first.receive()["api"].as_str().expect("a URL").to_owned();
    let address = url.trim_start_matches("http://");
    let second = crib.run(&["serve", "--listen", address]);
    assert_eq!(second.code, Some(2), "{second:?}");
    let expected = format!(
        "error: {address} is in use: the server {} already runs with this config (`toolcrib status` shows \
         it). Stop it first, or give this one another address with `--listen`\n",
        first.id()
    );
    assert_eq!(second.stderr, expected, "and nothing is said of what the second would have served");
}

#[test]
fn a_server_starts_without_the_default_manifest_folder() {
    let crib = Crib::new(&[]);
    fs::remove_dir(crib.path().join("tools.d")).expect("it is empty");
    let _server = Server::spawn(&crib, serve());
    let status = until(&crib, &["status"], |run| run.code == Some(0));
    assert!(!status.stdout.contains("unreadable"), "{status:?}");
    assert!(!crib.run(&["reload"]).stdout.contains("unreadable"));
}
