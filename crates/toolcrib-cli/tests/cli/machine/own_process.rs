//! What a trusted tool of the same user can learn of a server's process.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::server::{Server, command};

const SECRET: &str = "hunter2-of-the-variable";
const TOKEN: &str = "0123456789abcdef-token";

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: spy
    description: Look at the server, whose child a trusted program is.
    run:
      argv:
        - bash
        - -c
        - |
          for file in environ maps mem auxv; do
            head -c 1 /proc/$PPID/$file > /dev/null 2>&1 && echo "$file is open"
          done
          ls /proc/$PPID/fd > /dev/null 2>&1 && echo "fd is open"
          [ "$KEY" = hunter2-of-the-variable ] && echo "has the secret"
      env: {KEY: "${secret.key}"}
    sandbox: {profile: trusted}
  - name: leak
    description: Pass the variable on.
    run: {argv: [printenv, THE_KEY], pass_env: [THE_KEY]}
  - name: plain
    description: Pass another on.
    run: {argv: [printenv, NO_SECRET], pass_env: [NO_SECRET]}
  - name: second
    description: A secret whose command gets the first.
    run:
      argv: [bash, -c, '[ "$SECOND" = hunter2-of-the-variable-again ] && echo right']
      env: {SECOND: "${secret.second}"}
"#;

const CONFIG: &str = "workspace: {root: .}\nmanifests: {trusted: [tools.d/tools.yaml]}
secrets:
  key: {env: THE_KEY}
  second: {command: [bash, -c, 'printf %s-again \"$THE_KEY\"'], pass_env: [THE_KEY]}
";

fn crib() -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    crib.config(CONFIG);
    fs::set_permissions(crib.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    fs::write(crib.path().join("inside"), "inside\n").expect("it is ours");
    crib
}

fn server(crib: &Crib, mut command: Command) -> Server {
    command.env("THE_KEY", SECRET).env("NO_SECRET", "known to all").env("TOOLCRIB_TOKEN", TOKEN);
    command.env("TOOLCRIB__SERVER__TOKEN", TOKEN).arg("mcp");
    Server::spawn(crib, command).greeted()
}

fn says(server: &mut Server, tool: &str, arguments: &Value) -> String {
    let answer = server.call(tool, arguments);
    let text = answer["result"]["content"][0]["text"].as_str();
    text.map_or_else(|| answer.to_string(), str::to_owned)
}

#[test]
fn a_servers_environment_holds_no_secret_once_it_runs() {
    let crib = crib();
    let mut server = server(&crib, command(env!("CARGO_BIN_EXE_toolcrib")));
    // Only root can still read it.
    if let Ok(environment) = fs::read(format!("/proc/{}/environ", server.id())) {
        let environment = String::from_utf8_lossy(&environment);
        for hidden in [SECRET, TOKEN, "THE_KEY", "TOOLCRIB_TOKEN", "TOOLCRIB__SERVER__TOKEN"] {
            assert!(!environment.contains(hidden), "{hidden} in {environment:?}");
        }
        assert!(environment.contains("NO_SECRET=known to all"), "{environment:?}");
    }
    let none = json!({});
    assert!(says(&mut server, "spy", &none).contains("has the secret"));
    assert_eq!(says(&mut server, "second", &none), "right\n");
    assert_eq!(says(&mut server, "plain", &none), "known to all\n");
    // It still cannot be passed on as a variable.
    let refused = crib.command(&["call", "leak"]).env("THE_KEY", SECRET).output().expect("it runs");
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("holds the secret `key`"), "{refused}");
}

/// The binary, run by a user who is not root: root may read everything. `programs` is a folder that all can enter.
fn of_a_plain_user(programs: &Path) -> Command {
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return command(env!("CARGO_BIN_EXE_toolcrib"));
    }
    fs::set_permissions(programs, fs::Permissions::from_mode(0o755)).expect("ours");
    let built = Path::new(env!("CARGO_BIN_EXE_toolcrib"));
    for name in ["toolcrib", "toolcrib-jail"] {
        let (from, to) = (built.with_file_name(name), programs.join(name));
        fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)).expect("a copy");
    }
    let mut plain = command("setpriv");
    plain.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    plain.arg(programs.join("toolcrib"));
    plain
}

#[test]
fn a_trusted_program_of_the_servers_user_cannot_look_into_the_server() {
    let crib = crib();
    let programs = tempfile::tempdir_in("/tmp").expect("a folder that all can enter");
    let program = of_a_plain_user(programs.path());
    let mut server = server(&crib, program);
    let none = json!({});
    assert_eq!(says(&mut server, "spy", &none), "has the secret\n");
    // The server can still access its own files in `/proc`: confined programs start, and the real
    // paths of files are found.
    assert_eq!(says(&mut server, "plain", &none), "known to all\n");
    assert!(says(&mut server, "file_read", &json!({"path": "inside"})).contains("inside"));
    let computed = says(&mut server, "execute_python", &json!({"code": "print(6 * 7)"}));
    assert_eq!(computed, "42\n");
}

#[test]
fn a_trusted_program_cannot_look_into_the_process_of_a_call_or_a_run() {
    let crib = crib();
    let script = json!([{"call": "spy", "arguments": {}}, {"text": "Done."}]);
    fs::write(crib.path().join("script.json"), script.to_string()).expect("it is ours");
    for line in
        [&["call", "spy"][..], &["run", "--model", "scripted:script.json", "--events", "Look."]]
    {
        let programs = tempfile::tempdir_in("/tmp").expect("a folder that all can enter");
        let mut program = of_a_plain_user(programs.path());
        program.current_dir(crib.path()).args(line).env("THE_KEY", SECRET);
        let output = program.env("TOOLCRIB__STATE__DIR", "none").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("has the secret") && !said.contains("is open"), "{said} {told}");
    }
}

#[test]
fn a_helper_that_is_replaced_while_a_server_runs_is_not_started() {
    let crib = crib();
    // As after `cargo run` in the folder that is also the workspace.
    let release = crib.path().join("target/release");
    fs::create_dir_all(&release).expect("a folder of ours");
    let built = Path::new(env!("CARGO_BIN_EXE_toolcrib"));
    for name in ["toolcrib", "toolcrib-jail"] {
        fs::copy(built.with_file_name(name), release.join(name)).expect("a copy");
    }
    let mut server = server(&crib, command(release.join("toolcrib").to_str().expect("a name")));
    let marker = crib.path().join("ran");
    let evil = format!("#!/bin/sh\ntouch {}\n", marker.display());
    fs::write(release.join("toolcrib-jail"), evil).expect("ours");
    // The first confined program of this server.
    assert_eq!(says(&mut server, "plain", &json!({})), "known to all\n");
    assert!(!marker.exists(), "what a tool wrote was started without a jail");
}
