//! A server as a service: what its service manager is told, and `toolcrib health` for its probes.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::crib::{Crib, run};
use crate::harness::http::Http;
use crate::harness::server::command;

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn new(crib: &Crib) -> Self {
        let path = crib.data().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        Self { socket, path }
    }

    /// The next message that contains the text; others are skipped.
    #[track_caller]
    fn told(&self, text: &str) -> String {
        let mut message = [0; 4096];
        loop {
            let length = self.socket.recv(&mut message).unwrap_or_else(|_| panic!("no {text}"));
            let message = String::from_utf8_lossy(&message[..length]).into_owned();
            if message.contains(text) {
                return message;
            }
        }
    }
}

/// A server that is started as systemd does it.
fn served(crib: &Crib, manager: &Path, variables: &[(&str, &str)]) -> Http {
    let mut serve = command(env!("CARGO_BIN_EXE_toolcrib"));
    serve.args(["serve", "--listen", "127.0.0.1:0", "--json"]).env_remove("TOOLCRIB_TOKEN");
    serve.env("NOTIFY_SOCKET", manager).envs(variables.iter().copied());
    Http::spawn(crib, serve)
}

#[test]
fn the_service_manager_learns_of_the_start_reloads_and_the_stop() {
    let crib = Crib::new(&[]);
    crib.config("state: {dir: state}\n");
    let manager = Manager::new(&crib);
    let mut server = served(&crib, &manager.path, &[]);
    let ready = manager.told("READY=1");
    assert!(ready.contains("STATUS=serves "), "{ready}");

    server.server.signal("HUP");
    let reloading = manager.told("RELOADING=1");
    let micros = reloading.split("MONOTONIC_USEC=").nth(1).expect("a time");
    assert!(micros.trim().parse::<u64>().is_ok_and(|micros| micros > 0), "{reloading}");
    assert!(manager.told("READY=1").contains("STATUS=reloaded"));

    crib.config("no_such_setting: 1\n");
    server.server.signal("HUP");
    manager.told("RELOADING=1");
    let failed = manager.told("READY=1");
    assert!(failed.contains("the last reload failed"), "{failed}");

    server.server.signal("TERM");
    manager.told("STOPPING=1");
    assert_eq!(server.server.ended(), Some(0));
}

#[test]
fn signs_of_life_come_while_they_are_expected_of_this_process() {
    let crib = Crib::new(&[]);
    let manager = Manager::new(&crib);
    let _server = served(&crib, &manager.path, &[("WATCHDOG_USEC", "200000")]);
    for _ in 0..3 {
        manager.told("WATCHDOG=1");
    }

    let other = Crib::new(&[]);
    let manager = Manager::new(&other);
    let variables = [("WATCHDOG_USEC", "20000"), ("WATCHDOG_PID", "1")];
    let mut server = served(&other, &manager.path, &variables);
    manager.told("READY=1");
    server.server.signal("TERM");
    let mut message = [0; 4096];
    let length = manager.socket.recv(&mut message).expect("a message");
    let next = String::from_utf8_lossy(&message[..length]);
    assert!(next.contains("STOPPING=1"), "{next}");
    server.server.ended();
}

#[test]
fn a_service_manager_that_is_not_there_does_not_stop_the_server() {
    let crib = Crib::new(&[]);
    let server = served(&crib, Path::new("/no/such/socket"), &[]);
    assert_eq!(server.ask("GET /ready", None).status, 200);
    let health = crib.run(&["health", "--listen", &server.address]);
    assert_eq!(health.code, Some(0), "{health:?}");
}

#[test]
fn mcp_over_stdio_says_nothing_to_the_service_manager_of_its_client() {
    let crib = Crib::new(&[]);
    let manager = Manager::new(&crib);
    let mut mcp = crib.command(&["mcp"]);
    run(mcp.env("NOTIFY_SOCKET", &manager.path).write_stdin(""));
    manager.socket.set_nonblocking(true).expect("a setting");
    assert!(manager.socket.recv(&mut [0; 64]).is_err(), "nothing was sent");
}

#[test]
fn health_is_the_exit_code_of_a_probe() {
    let crib = Crib::new(&[]);
    let server = Http::start(&crib, "");
    let address = server.address.clone();
    for more in [&[][..], &["--alive"]] {
        let health = crib.run(&[&["health", "--listen", &address][..], more].concat());
        assert_eq!((health.code, health.stdout), (Some(0), format!("{address}: ok\n")));
    }
    // The address is the config's if none is named.
    let setting = format!("server.listen={address}");
    let json = crib.run(&["health", "--json", "--set", &setting]).json();
    assert_eq!((&json["ok"], &json["http_status"]), (&true.into(), &200.into()), "{json}");

    // A degraded server serves.
    crib.write("broken.yaml", "toolcrib: 1\ntols: []\n");
    assert_eq!(server.ask("POST /v1/reload", None).status, 200);
    let health = crib.run(&["health", "--listen", &address]);
    assert_eq!(health.code, Some(0), "{health:?}");
    assert!(health.stdout.contains("degraded (files_broken 1"), "{health:?}");

    drop(server);
    let gone = crib.run(&["health", "--listen", &address]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("asking the server on"), "{gone:?}");
}

#[test]
fn what_never_answers_is_not_healthy() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    let crib = Crib::new(&[]);
    let health = crib.run(&["health", "--listen", &address]);
    assert_eq!(health.code, Some(1), "{health:?}");
    assert!(health.stderr.contains("does not answer within 3 s"), "{health:?}");
}

#[test]
fn a_foreign_program_on_the_port_is_not_healthy() {
    for body in [r#"{"object": "list", "data": []}"#, r#"{"status": "ok"}"#] {
        let foreign = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = foreign.local_addr().expect("an address").to_string();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = foreign.accept().expect("a connection");
            let request = BufReader::new(&stream).lines().map(|line| line.expect("a request"));
            assert!(request.take_while(|line| !line.is_empty()).count() > 1);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).expect("an answer");
        });
        let crib = Crib::new(&[]);
        let health = crib.run(&["health", "--listen", &address]);
        assert_eq!(health.code, Some(1), "{health:?}");
        assert!(health.stderr.contains("what answers there is no toolcrib"), "{health:?}");
        answering.join().expect("it has answered");
    }
}

#[test]
fn doctor_repeats_no_value_of_a_secret_in_a_unit() {
    let crib = Crib::new(&[]);
    let secret = "abcdef0123456789";
    let unit = format!(
        "[Service]\nUser=t\nEnvironment=\"TOOLCRIB_TOKEN={secret}\" TOOLCRIB__SERVER__TOKEN={secret}\n\
         SetCredential=key:{secret}\nEnvironment=LD_PRELOAD=/tmp/{secret}\n\
         ExecStart=/usr/bin/toolcrib serve --no-auth --token {secret} --set server.token={secret} --listen=0.0.0.0:1\n"
    );
    for more in [&[][..], &["--json"]] {
        let arguments = [&["doctor", "--unit", "-"][..], more].concat();
        let found = run(crib.command(&arguments).write_stdin(unit.clone()));
        assert_eq!(found.code, Some(1), "{found:?}");
        assert!(found.stdout.contains("TOOLCRIB_TOKEN"), "{found:?}");
        assert!(!format!("{found:?}").contains(secret), "{found:?}");
    }
}

#[test]
fn doctor_names_the_lines_of_a_unit_that_take_a_promise_away() {
    let crib = Crib::new(&[]);
    let unit = crib.path().join("own.conf");
    fs::write(&unit, "[Service]\nRestrictNamespaces=yes\nProcSubset=pid\n").expect("a file");
    let found = crib.run(&["doctor", "--unit", "own.conf"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    for line in ["own.conf:2: `RestrictNamespaces=yes`", "own.conf:3: `ProcSubset=pid`"] {
        assert!(found.stdout.contains(line), "{found:?}");
    }
    assert!(!found.stdout.contains("Promises"), "{found:?}");

    let cat =
        "# /etc/systemd/system/t.service\n[Service]\nUser=t\nExecStart=/usr/bin/toolcrib serve\n";
    let good = run(crib.command(&["doctor", "--json", "--unit", "-"]).write_stdin(cat));
    assert_eq!(good.code, Some(0), "{good:?}");
    assert_eq!(good.json()["findings"][0]["verdict"], "good");

    let other = run(crib.command(&["doctor", "--unit", "-"]).write_stdin("[Unit]\nA=b\n"));
    assert_eq!(other.code, Some(2), "{other:?}");
}
