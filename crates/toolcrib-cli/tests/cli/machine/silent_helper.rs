//! The built program beside a helper that never answers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::crib::Crib;
use crate::harness::server::{Server, command};

const TOOLS: &str = "toolcrib: 1
tools:
  - name: hello
    description: Say hello.
    run: {argv: [printf, hello]}
  - name: goodbye
    description: Say goodbye.
    run: {argv: [printf, goodbye]}
";

#[test]
fn a_client_is_greeted_although_the_helper_never_answers() {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    let bin = crib.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let (program, helper) = (bin.join("toolcrib"), bin.join("toolcrib-jail"));
    let built = env!("CARGO_BIN_EXE_toolcrib");
    fs::hard_link(built, &program)
        .or_else(|_| fs::copy(built, &program).map(|_| ()))
        .expect("the program");
    fs::write(&helper, "#!/bin/sh\nexec sleep 300\n").expect("the helper");
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("its mode");
    let mut program = command(&program);
    program.arg("mcp").env_remove("TOOLCRIB_TOKEN");
    let start = Instant::now();
    let mut server = Server::spawn(&crib, program).greeted();
    let greeted = start.elapsed();
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let tools = server.receive();
    assert!(tools["result"]["tools"].to_string().contains("goodbye"), "{tools}");
    // On a busy machine, the start itself takes a while.
    assert!(greeted < Duration::from_secs(5), "the client was greeted after {greeted:?}");
}
