//! Running servers: they follow their manifests, notify their clients, and answer their operator.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::crib::{Crib, Run, run, until};
use crate::harness::server::{Server, command};

const GREET: &str = r"
toolcrib: 1
tools:
  - name: greet
    description: Say hello.
    annotations: {read_only: true}
    run: {argv: [echo, hello]}
";

fn crib() -> Crib {
    let crib = Crib::new(&[("greet.yaml", GREET)]);
    crib.config("state: {dir: state}\n");
    crib
}

#[test]
fn a_tool_that_is_saved_is_live_in_a_connected_client() {
    let crib = crib();
    let mut server = Server::mcp(&crib);
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    server.receive();

    crib.write("ping.yaml", &GREET.replace("greet", "ping").replace("hello", "pong"));
    let told = server.receive();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let call = json!({"name": "ping", "arguments": {}});
    server.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}));
    assert_eq!(server.receive()["result"]["content"][0]["text"], "pong\n");

    // A broken file keeps its last valid version; the client is not notified.
    crib.write("ping.yaml", "toolcrib: 1\ntools: [");
    let status = until(&crib, &["status"], |run| run.stdout.contains("stale"));
    assert!(status.stdout.contains("ping.yaml, keeps 1 tool: line 2"), "{status:?}");
    server.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call}));
    assert_eq!(server.receive()["result"]["content"][0]["text"], "pong\n");
    let why = crib.run(&["why", "ping"]);
    assert!(why.stdout.contains("its last good version"), "{why:?}");
}

#[test]
fn the_directory_of_manifests_may_come_after_the_server() {
    let crib = Crib::new(&[]);
    fs::remove_dir(crib.path().join("tools.d")).expect("it is empty");
    let mut server = Server::mcp(&crib);
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    server.receive();
    // The server has created it, so that no tool can.
    crib.write("greet.yaml", GREET);
    assert_eq!(server.receive()["method"], "notifications/tools/list_changed");
}

#[test]
fn a_running_server_reports_status_and_statistics() {
    let crib = crib();
    let mut server = Server::mcp(&crib);
    let call = json!({"name": "greet", "arguments": {}});
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    server.receive();

    let status = crib.run(&["status", "--json"]).json();
    assert_eq!(status["servers"][0]["files"][0]["state"], "live");
    let counts = crib.run(&["stats", "--json"]).json();
    assert_eq!(counts["servers"][0]["tools"][0]["tool"], "greet");
    assert_eq!(counts["servers"][0]["tools"][0]["executions"], 1);
    let shown = crib.run(&["stats"]);
    assert!(shown.stdout.contains("greet") && shown.stdout.contains("P50 ms"), "{shown:?}");
}

#[test]
fn a_reload_reports_new_tools_and_broken_files() {
    let crib = crib();
    crib.config("state: {dir: state}\nmanifests: {watch: false}\n");
    let server = Server::mcp(&crib);
    crib.write("ping.yaml", &GREET.replace("greet", "ping"));
    crib.write("bad.yaml", "toolcrib: 1\ntoolz: []\n");
    let run = crib.run(&["reload"]);
    assert_eq!(run.code, Some(1), "a broken file is a failure");
    assert!(run.stdout.contains("new ping"), "{run:?}");
    assert!(run.stdout.contains("did you mean `tools`?"), "{run:?}");
    assert!(run.stdout.contains("3 files read, 1 broken"), "{run:?}");
    crib.write("ping.yaml", "toolcrib: 1\ntoolz: []\n");
    let stale = crib.run(&["reload"]);
    assert_eq!(stale.code, Some(1));
    assert!(stale.stdout.contains("3 files read, 1 stale, 1 broken"), "{stale:?}");
    crib.write("ping.yaml", &GREET.replace("greet", "ping"));
    let again = crib.run(&["reload"]);
    assert!(again.stdout.contains("did you mean `tools`?"), "asked again, told again: {again:?}");
    // The effect of SIGHUP on a server without a state directory.
    crib.write("pong.yaml", &GREET.replace("greet", "pong"));
    server.signal("HUP");
    until(&crib, &["why", "pong", "--json"], |run| {
        run.json()["servers"][0]["owner"].as_str().is_some_and(|owner| owner.contains("pong"))
    });
}

#[test]
fn a_name_given_up_is_reserved_until_it_is_released() {
    let crib = crib();
    let _server = Server::mcp(&crib);
    fs::remove_file(crib.path().join("tools.d/greet.yaml")).expect("it is there");
    let status = until(&crib, &["status"], |run| run.stdout.contains("reserved greet"));
    assert_eq!(status.code, Some(0));
    let why = crib.run(&["why", "greet"]);
    assert!(why.stdout.contains("keeps the name reserved"), "{why:?}");
    let run = crib.run(&["release", "greet"]);
    assert!(run.stdout.contains("`greet` goes to the next source that declares it"), "{run:?}");
    // The name is unknown now. An unknown name fails, as it does for `reset`.
    for command in ["release", "reset"] {
        let again = crib.run(&[command, "greet"]);
        assert_eq!(again.code, Some(1), "{again:?}");
        assert!(again.stderr.contains("there is no tool"), "{again:?}");
    }
    crib.write("pong.yaml", &GREET.replace("greet", "pong"));
    until(&crib, &["why", "pong", "--json"], |run| {
        run.json()["servers"][0]["owner"].as_str().is_some_and(|owner| owner.contains("pong"))
    });
    let owned = crib.run(&["release", "pong"]);
    assert_eq!(owned.code, Some(0), "{owned:?}");
    assert!(owned.stdout.contains("`pong` was not reserved: it belongs to"), "{owned:?}");
}

#[test]
fn a_shadowed_prompt_is_reported_by_every_command() {
    const GUIDE: &str = "toolcrib: 1\nprompts:\n  - name: review\n    description: Review it.\n    \
                         messages: [{role: user, text: Review it.}]\n";
    let crib = crib();
    crib.write("guide.yaml", GUIDE);
    let _server = Server::mcp(&crib);
    crib.write("a.yaml", &GUIDE.replace("Review it.", "Obey."));
    let status = until(&crib, &["status"], |run| run.stdout.contains("1 shadowed"));
    assert!(
        status.stdout.contains(
            "a restart would change prompt review: manifest tools.d/guide.yaml:3:11 has it, \
             manifest tools.d/a.yaml:3:11 would"
        ),
        "{status:?}"
    );
    let why = crib.run(&["why", "review"]);
    assert!(
        why.stdout.contains(
            "has the prompt from manifest tools.d/guide.yaml:3:11; a restart would give it to \
             manifest tools.d/a.yaml:3:11"
        ),
        "{why:?}"
    );
    let server = &crib.run(&["why", "review", "--json"]).json()["servers"][0];
    assert_eq!(server["besides"][0]["kept_by"], "manifest tools.d/guide.yaml:3:11");
    let check = crib.run(&["check", "--strict", "--quiet"]);
    assert_eq!(check.code, Some(1));
    let said = "warning[shadowed-name]: the name `review` is taken already, so clients are never \
                offered this prompt\n --> tools.d/guide.yaml:3:11";
    assert!(check.stderr.contains(said), "{check:?}");
    let owner = "= note: it belongs to the one declared first: tools.d/a.yaml:3:11";
    assert!(check.stderr.contains(owner), "{check:?}");
    let shadowed = &crib.run(&["check", "--json"]).json()["shadowed"][0];
    assert_eq!((&shadowed["kind"], &shadowed["name"]), (&"prompt".into(), &"review".into()));
}

#[test]
fn a_listing_marks_names_that_a_restart_of_the_server_would_resolve_otherwise() {
    let crib = crib();
    let server = Server::mcp(&crib);
    let before = crib.run(&["list"]);
    assert!(!before.stdout.contains("after a restart"), "{before:?}");
    crib.write("a.yaml", GREET);
    let list = until(&crib, &["list"], |run| run.stderr.contains("after a restart"));
    let row = list.stdout.lines().find(|line| line.starts_with("greet ")).expect("it is listed");
    assert!(row.contains("tools.d/a.yaml") && row.ends_with("(after a restart)"), "{row}");
    let said =
        list.stderr.lines().find(|line| line.contains("after a restart greet")).expect("a note");
    assert!(said.contains("has the one of manifest tools.d/greet.yaml"), "{said}");
    assert!(said.contains("would give the name to manifest tools.d/a.yaml"), "{said}");
    let json = crib.run(&["list", "--json"]).json();
    assert_eq!(json["after_restart"][0]["name"], "greet");
    assert_eq!(json["after_restart"][0]["kind"], "tool");
    drop(server);
    let alone = crib.run(&["list", "--json"]).json();
    assert_eq!(alone["after_restart"], serde_json::json!([]));
}

#[test]
fn a_missing_server_is_reported() {
    let crib = crib();
    let run = crib.run(&["reload"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("no server runs"), "{run:?}");
    // Before the first start the default folder does not exist, but is named nevertheless.
    fs::remove_file(crib.path().join("config.yml")).expect("it is there");
    let run = crib.run(&["status"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("no server runs"), "{run:?}");
    // Without a state directory and a runtime directory, servers cannot be found.
    crib.config("state: {dir: none}\n");
    let run = crib.run(&["status"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("XDG_RUNTIME_DIR") && run.stderr.contains("SIGHUP"), "{run:?}");
}

#[test]
fn a_server_without_a_state_directory_is_found_by_its_config_file() {
    let crib = Crib::new(&[("greet.yaml", GREET)]);
    DirBuilder::new().mode(0o700).create(crib.runtime_dir()).expect("it is new");
    crib.config("executor: {max_concurrency: 2}\n");
    let server = Server::mcp(&crib);
    let found = |run: &Run| run.json()["servers"].as_array().map(Vec::len);
    assert_eq!(found(&crib.run(&["status", "--json"])), Some(1));
    // It is the same file with another name and from another directory.
    let config = crib.path().join("tools.d/../config.yml");
    let config = config.to_str().expect("UTF-8");
    let mut command = crib.command(&["--config", config, "why", "greet", "--json"]);
    let run = run(command.current_dir("/"));
    assert!(run.json()["servers"][0]["owner"].is_string(), "{run:?}");
    // Another file has other servers.
    fs::write(crib.path().join("other.yml"), "").expect("it is writable");
    assert_eq!(found(&crib.run(&["--config", "other.yml", "status", "--json"])), Some(0));
    drop(server);
    let none = crib.run(&["status"]);
    assert!(none.stderr.contains("no server runs"), "what was killed is not found: {none:?}");
}

#[test]
fn a_runtime_directory_that_others_may_enter_holds_no_socket() {
    let crib = Crib::new(&[("greet.yaml", GREET)]);
    crib.config("state: {dir: none}\n");
    DirBuilder::new().mode(0o755).create(crib.runtime_dir()).expect("it is new");
    let mut server = Server::mcp(&crib);
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    assert_eq!(server.receive()["id"], 2, "it serves nevertheless");
    let run = crib.run(&["status"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("is open to others (mode 755)"), "{run:?}");
    assert_eq!(fs::read_dir(crib.runtime_dir()).expect("it is there").count(), 0);
}

#[test]
fn health_contains_counts_but_no_names() {
    let crib = crib();
    crib.write("bad.yaml", "toolcrib: 1\ntools: [");
    let mut server = Server::start(&crib, &["serve", "--listen", "127.0.0.1:0", "--json"]);
    let url = server.receive()["url"].as_str().expect("a URL").to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!((&body["status"], &body["files_broken"]), (&json!("degraded"), &json!(1)), "{body}");
    assert_eq!(body["files_live"], 1);
    assert!(!body.to_string().contains("bad.yaml"));
}

/// The server's own messages, until its client has disconnected.
fn said_by_a_server(crib: &Crib) -> String {
    let output = crib.command(&["mcp"]).write_stdin("").output().expect("it runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_default_directory_that_is_missing_is_an_error_only_where_the_config_names_it() {
    let crib = crib();
    fs::remove_dir_all(crib.path().join("tools.d")).expect("it is there");
    let said = said_by_a_server(&crib);
    assert!(!said.contains("unreadable"), "{said}");
    // A missing one inside the workspace would be created, so that no tool can create it.
    crib.config("state: {dir: state}\nmanifests: {dirs: [/no-such-directory-of-manifests]}\n");
    let said = said_by_a_server(&crib);
    assert!(said.contains("error[unreadable]"), "{said}");
}

#[test]
fn manifests_are_live_again_once_their_directory_may_be_read() {
    let crib = crib();
    let tools = crib.path().join("tools.d");
    let mode = |mode| fs::set_permissions(&tools, Permissions::from_mode(mode)).expect("ours");
    // Root may read everything, so the server runs as another user then.
    let is_root = fs::metadata("/proc/self").expect("it is there").uid() == 0;
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).env_remove("TOOLCRIB_TOKEN");
    if is_root {
        for path in [crib.path(), &tools, &tools.join("greet.yaml")] {
            std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).expect("we are root");
        }
        command.uid(65_534).gid(65_534);
    }
    let mut server = Server::spawn(&crib, command);
    let api = server.receive()["api"].as_str().expect("a URL").to_owned();
    let health = || {
        let address = api.trim_start_matches("http://");
        let answer =
            crate::harness::http::ask(address, "", "GET /health", None).expect("an answer");
        answer.json()
    };
    let becomes = |holds: &dyn Fn(&serde_json::Value) -> bool, within: Duration| {
        let deadline = Instant::now() + within;
        while !holds(&health()) {
            assert!(Instant::now() < deadline, "{}", health());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    assert_eq!(health()["files_live"], 1);
    mode(0o000);
    // Whatever makes the server scan again, it finds nothing that it may read.
    server.signal("HUP");
    becomes(&|health| health["files_live"] == 0, Duration::from_secs(20));
    mode(0o755);
    // Every thirty seconds it scans by itself.
    becomes(&|health| health["files_live"] == 1, Duration::from_secs(10));
}

#[test]
fn a_failed_connection_is_logged_once() {
    const FAR: &str = "toolcrib: 1\nupstream:\n  - {name: far, url: \
                       'http://127.0.0.1:1/mcp', allow_private: [127.0.0.0/8]}\n";
    let crib = crib();
    crib.write("far.yaml", FAR);
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["mcp"]).current_dir(crib.path()).env("XDG_RUNTIME_DIR", crib.runtime_dir());
    let piped = std::process::Stdio::piped;
    command.stdin(piped()).stdout(piped()).stderr(piped());
    let mut child = command.spawn().expect("built");
    std::thread::sleep(Duration::from_secs(2));
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("an MCP server is down"), "{said}");
    assert!(!said.contains("rmcp"), "the protocol library says it a second time: {said}");
}
