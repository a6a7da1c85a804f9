//! The examples for operations: each passes the strictest check, and works with its program.
//!
//! PostgreSQL and Prometheus are run if they are installed. systemd, Kubernetes, Ansible, Docker and Slack are
//! stand-ins: scripts that print how they were called, and a server on loopback.

use std::fs;
use std::io::{Write as _, stderr};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::calls::requests::{Server as Service, answer};
use crate::harness::crib::{Crib, Run, run};
use crate::harness::server::{Server, command};

/// A program that prints its name and arguments.
const STAND_IN: &str = "#!/bin/bash\necho \"${0##*/} $*\"\n";

/// A docker whose container prints two lines, half a second apart, and goes on.
const DOCKER: &str =
    "#!/bin/bash\necho \"first line ($*)\"\nsleep 0.5\necho 'Bearer abc.def'\nsleep 60\n";

/// A crib with the examples, and stand-ins for the programs that few machines have running.
fn operations() -> Crib {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/operations/tools.d");
    let crib = Crib::new(&[]);
    for file in fs::read_dir(folder).expect("the examples") {
        let file = file.expect("a file");
        fs::copy(file.path(), crib.path().join("tools.d").join(file.file_name())).expect("a copy");
    }
    for (name, text) in [
        ("systemctl", STAND_IN),
        ("kubectl", STAND_IN),
        ("ansible-playbook", STAND_IN),
        ("docker", DOCKER),
    ] {
        let path = crib.data().join(name);
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    fs::create_dir(crib.home().join(".kube")).expect("a folder");
    // The workspace of these tests is the folder of the config.
    edit(&crib, "tickets.yaml", &[("cwd: ../tools.d", "cwd: tools.d")]);
    for name in ["inventory.ini", "rolling-update.yml"] {
        fs::write(crib.path().join(name), "# ours\n").expect("a file");
    }
    let secret = |name: &str, value: &str| {
        fs::write(crib.data().join(name), value).expect("a secret");
        format!("  {name}: {{file: {}}}\n", crib.data().join(name).display())
    };
    crib.config(&format!(
        "state: {{dir: state}}\nmanifests:\n  trusted: [tools.d/services.yaml, tools.d/cluster.yaml, \
         tools.d/containers.yaml]\nsecrets:\n{}{}",
        secret("shop_reader", "reader-password"),
        secret("slack_url", "https://hooks.slack.com/services/T0/B0/x")
    ));
    crib
}

/// Changes an example as its users do: names and addresses.
fn edit(crib: &Crib, file: &str, changes: &[(&str, &str)]) {
    let path = crib.path().join("tools.d").join(file);
    let mut text = fs::read_to_string(&path).expect("an example");
    for (from, to) in changes {
        assert!(text.contains(from), "{file} has no {from}");
        text = text.replace(from, to);
    }
    fs::write(&path, text).expect("an example");
}

fn path_with_stand_ins(crib: &Crib) -> String {
    format!("{}:{}", crib.data().display(), std::env::var("PATH").unwrap_or_default())
}

fn with_stand_ins(crib: &Crib, arguments: &[&str]) -> Run {
    run(crib.command(arguments).env("PATH", path_with_stand_ins(crib)))
}

#[test]
fn the_examples_of_operations_pass_the_strictest_check_and_their_tests() {
    let crib = operations();
    for check in [&["check", "--strict", "--quiet"][..], &["check", "--strict", "--connect"]] {
        let check = with_stand_ins(&crib, check);
        assert_eq!(check.code, Some(0), "{check:?}");
    }
    let test = with_stand_ins(&crib, &["test", "--mock", "--json"]);
    assert_eq!(test.code, Some(0), "{test:?}");
    assert_eq!(test.json()["failed"], 0, "{test:?}");
}

#[test]
fn the_page_of_examples_names_every_tool_and_no_other() {
    let crib = operations();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = fs::read_to_string(page).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|row| row.split('|').nth(1));
    let mut named: Vec<_> = first.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    named.sort_unstable();
    let listed = with_stand_ins(&crib, &["list", "--all", "--connect", "--json"]).json();
    let tools = listed["tools"].as_array().expect("a list").iter();
    let ours = tools
        .filter(|tool| ["manifest", "upstream"].contains(&tool["layer"].as_str().unwrap_or("")));
    let mut ours: Vec<_> = ours.filter_map(|tool| tool["name"].as_str()).collect();
    ours.sort_unstable();
    assert_eq!(named, ours);
}

#[test]
fn the_scripts_and_the_worker_of_the_examples_run() {
    let crib = operations();
    let arguments =
        "measurements=[{\"name\": \"cpu\", \"value\": 1}, {\"name\": \"cpu\", \"value\": 3}]";
    let called = crib.run(&["call", "summarize", arguments, "--json"]);
    assert_eq!(called.json()["data"], json!({"cpu": 2.0}), "{called:?}");
    let called = crib.run(&["call", "network_of", "address=10.20.3.4", "--json"]);
    assert_eq!(called.json()["data"], json!({"network": "office"}), "{called:?}");
    // The script gets the argument that was left out, too.
    let called = crib.run(&["call", "disk_full", "used_percent=90", "growth_per_day=2", "--json"]);
    assert_eq!(called.json()["data"], json!({"full_in_days": 5.0, "act_now": true}), "{called:?}");
}

#[test]
fn the_programs_of_the_examples_get_their_arguments() {
    let crib = operations();
    for (arguments, told) in [
        (
            &["call", "k8s_pods", "namespace=web"][..],
            "kubectl get pods --namespace=web --output=wide",
        ),
        (
            &["call", "rolling_update", "service=web", "vars={\"batch\": 2}", "--yes"],
            "ansible-playbook --inventory=inventory.ini --limit=web --check --extra-vars {\"batch\":2} \
             rolling-update.yml",
        ),
        (
            &["call", "restart_service", "unit=web.service", "--yes"],
            "systemctl restart -- web.service",
        ),
    ] {
        let called = with_stand_ins(&crib, arguments);
        assert!(
            called.code == Some(0) && called.stdout.contains(told),
            "{arguments:?}: {called:?}"
        );
    }
    let denied = with_stand_ins(&crib, &["call", "restart_service", "unit=web.service"]);
    assert_ne!(denied.code, Some(0), "nobody has approved it: {denied:?}");
    assert!(!denied.stdout.contains("systemctl restart"), "{denied:?}");
}

#[test]
fn the_lines_of_a_container_arrive_while_its_log_is_followed() {
    let crib = operations();
    let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
    program.arg("mcp").env("PATH", path_with_stand_ins(&crib)).env_remove("TOOLCRIB_TOKEN");
    let mut server = Server::spawn(&crib, program).greeted();
    let started = Instant::now();
    server.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "container_log", "arguments": {"container": "web", "seconds": 2},
        "_meta": {"progressToken": 7},
    }}));
    let first = server.receive();
    assert_eq!(
        first["params"]["message"], "first line (logs --follow --tail=100 -- web)",
        "{first}"
    );
    let mut message = server.receive();
    while message["id"] != 3 {
        message = server.receive();
    }
    assert!(started.elapsed() >= Duration::from_secs(2), "the first line came before the end");
    let text = message["result"]["content"].to_string();
    assert!(text.contains("first line") && text.contains("[redacted]"), "{message}");
    assert_ne!(message["result"]["isError"], true, "the end of the time is no failure: {message}");
}

#[test]
fn a_note_is_posted_to_the_secret_url() {
    let service = Service::start(|_, _| answer("200 OK", "content-type: text/plain\r\n", "ok"));
    let crib = operations();
    fs::write(
        crib.data().join("slack_url"),
        format!("http://{}/services/T0/B0/x\n", service.address),
    )
    .expect("a secret");
    let private = "url: \"${secret.slack_url}\"\n      allow_private: [127.0.0.1]";
    edit(&crib, "slack.yaml", &[("url: \"${secret.slack_url}\"", private)]);
    let called = crib.run(&["call", "tell_operations", "text=deployed"]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "ok\n"), "{called:?}");
    let seen = &service.seen()[0];
    assert!(seen.starts_with("POST /services/T0/B0/x HTTP/1.1\r\n"), "{seen}");
    assert!(seen.ends_with(r#"{"text":"deployed"}"#), "{seen}");
    let planned = crib.run(&["call", "tell_operations", "text=deployed", "--dry-run"]);
    assert!(planned.stdout.contains("POST ${secret.slack_url}"), "{planned:?}");
}

#[test]
fn tools_of_the_ticket_server_have_our_names_and_only_some_are_there() {
    let crib = operations();
    let called = crib.run(&["call", "desk_ticket", "id=7"]);
    assert!(called.stdout.contains("get_ticket_by_id: ticket 7 is open"), "{called:?}");
    let shown = crib.run(&["list", "--connect", "--json"]).json().to_string();
    assert!(
        shown.contains("desk_list_open") && shown.contains("Show one ticket of the service desk")
    );
    assert!(!shown.contains("list_secrets") && !shown.contains("delete_ticket"), "{shown}");
}

#[test]
fn the_ticket_server_starts_in_the_default_layout() {
    let crib = operations();
    edit(&crib, "tickets.yaml", &[("cwd: tools.d", "cwd: ../tools.d")]);
    let arguments = ["call", "desk_ticket", "id=7"];
    let called = run(crib.command(&arguments).env_remove("TOOLCRIB__WORKSPACE__ROOT"));
    assert!(called.stdout.contains("get_ticket_by_id: ticket 7 is open"), "{called:?}");
}

/// A program that a test has started; it is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first of these programs that is installed.
fn installed(programs: &[&str]) -> Option<PathBuf> {
    let found = programs.iter().map(PathBuf::from).find(|program| program.exists());
    if found.is_none() {
        // Not `eprintln!`, which the test harness swallows when a test passes.
        let _ = writeln!(stderr(), "skipped: {} is not installed", programs[0]);
    }
    found
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Calls a tool until it succeeds: the service has to start first.
fn until_called(crib: &Crib, arguments: &[&str]) -> Run {
    let started = Instant::now();
    loop {
        let called = crib.run(arguments);
        if called.code == Some(0) || started.elapsed() > Duration::from_secs(60) {
            return called;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn prometheus_answers_the_example() {
    let Some(program) = installed(&["/usr/bin/prometheus"]) else { return };
    let crib = operations();
    let port = free_port();
    let config = crib.data().join("prometheus.yml");
    fs::write(&config, "global: {scrape_interval: 1h}\n").expect("a config");
    let server = command(program)
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg(format!("--storage.tsdb.path={}", crib.data().join("tsdb").display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _server = Running(server.expect("it starts"));
    let (ours, private) = (format!("http://127.0.0.1:{port}/"), "allow_private: [127.0.0.1]");
    edit(
        &crib,
        "prometheus.yaml",
        &[
            (
                "      url: https://prometheus.example.com/",
                &format!("      {private}\n      url: {ours}"),
            ),
            ("https://prometheus.example.com/", &ours),
        ],
    );
    let called = until_called(&crib, &["call", "prometheus_query", "query=vector(7)", "--json"]);
    assert_eq!(called.json()["data"][0]["value"][1], "7", "{called:?}");
    let refused = crib.run(&["call", "prometheus_query", "query=up{"]);
    assert!(format!("{refused:?}").contains("parse error"), "{refused:?}");
}

/// A PostgreSQL server with one table of orders. It does not run as root.
fn postgres(crib: &Crib, bin: &Path, port: u16) -> Running {
    let data = crib.data().join("pg");
    let password = crib.data().join("shop_reader");
    let as_nobody = |program: &str| {
        let mut program_of = command("setpriv");
        program_of.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        program_of
            .arg(bin.join(program))
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        program_of
    };
    // Its folder has to be its own, and so has the way to it.
    fs::create_dir(&data).expect("a folder");
    for path in [&data, &password] {
        std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).expect("this runs as root");
    }
    fs::set_permissions(crib.data(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let made = as_nobody("initdb")
        .args(["--username=reader", "--auth=scram-sha-256", "--no-sync"])
        .arg(format!("--pwfile={}", password.display()))
        .arg(format!("--pgdata={}", data.display()))
        .status();
    assert!(made.expect("it runs").success());
    let server = as_nobody("postgres")
        .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-p"])
        .arg(port.to_string())
        .arg("-k")
        .arg(&data)
        .arg("-D")
        .arg(&data)
        .spawn();
    let server = Running(server.expect("it starts"));
    let ask = |database: &str, statement: &str| {
        let mut psql = command("psql");
        psql.args([
            "--no-psqlrc",
            "--host=127.0.0.1",
            "--username=reader",
            "--set=ON_ERROR_STOP=1",
        ]);
        psql.arg(format!("--port={port}")).arg(format!("--dbname={database}"));
        psql.arg(format!("--command={statement}")).env("PGPASSWORD", "reader-password");
        psql.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|ended| ended.success())
    };
    let started = Instant::now();
    while !ask("postgres", "create database shop") {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(ask(
        "shop",
        "create table orders as select date '2026-01-02' as placed_on, 'sent' as state, 7.5 as total, \
         'O''Hara; \\! id'::text as customer",
    ));
    server
}

#[test]
fn postgresql_answers_the_example_and_a_value_stays_a_value() {
    let Some(bin) = installed(&["/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/17/bin"]) else {
        return;
    };
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root || !Path::new("/usr/bin/setpriv").exists() {
        eprintln!(
            "PostgreSQL is started by root for another user: the example is not run against it"
        );
        return;
    }
    let crib = operations();
    let port = free_port();
    let _server = postgres(&crib, &bin, port);
    let host = format!("--host=127.0.0.1\n        - --port={port}");
    edit(&crib, "database.yaml", &[("--host=db.example.com", &host)]);
    let called = crib.run(&["call", "customer_orders", "customer=O'Hara; \\! id"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stdout.contains("2026-01-02,sent,7.5"), "{called:?}");
    assert!(!called.stdout.contains("uid="), "{called:?}");
}
