//! Files of resources and prompts, which the server itself reads: which ones it never serves, and
//! which ones need the operator's trust.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::harness::crib::{Crib, run};

const CONFIG: &str = "
workspace: {root: workspace}
state: {dir: state}
server: {token: operators-token-0001}
secrets: {deploy: {file: deploy.secret}}
";

/// A crib with a resource for each of these files, at `at://0`, `at://1` and so on.
fn crib(files: &[&str]) -> Crib {
    let resource = |(at, file): (usize, &&str)| {
        format!("  - {{uri: 'at://{at}', name: r{at}, file: '{file}', mime_type: text/plain}}\n")
    };
    let resources: String = files.iter().enumerate().map(resource).collect();
    let crib = Crib::new(&[("res.yaml", &format!("toolcrib: 1\nresources:\n{resources}"))]);
    crib.config(CONFIG);
    fs::create_dir(crib.path().join("workspace")).expect("a workspace");
    fs::write(crib.path().join("deploy.secret"), "sup3rs3cretvalue").expect("a secret");
    fs::write(crib.path().join("tools.d/own.txt"), "own sup3rs3cretvalue").expect("a file");
    fs::write(crib.path().join("workspace/notes.txt"), "notes").expect("a file");
    fs::write(crib.path().join("outside.txt"), "outside").expect("a file");
    crib
}

/// The client's result for each address: the text, or the error code.
fn read(crib: &Crib, count: usize) -> Vec<String> {
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let mut input =
        json!({"jsonrpc": "2.0", "id": 1000, "method": "initialize", "params": hello}).to_string();
    input.push_str("\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    for at in 0..count {
        let params = json!({"uri": format!("at://{at}")});
        let request =
            json!({"jsonrpc": "2.0", "id": at, "method": "resources/read", "params": params});
        input.push_str(&request.to_string());
        input.push('\n');
    }
    let run = run(crib.command(&["mcp"]).write_stdin(input));
    let answers: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
    let answer = |at: usize| {
        let answer = answers.iter().find(|answer| answer["id"] == json!(at));
        let answer = answer.unwrap_or_else(|| panic!("no answer to {at}: {run:?}"));
        let text = answer["result"]["contents"][0]["text"].as_str();
        text.map_or_else(|| answer["error"]["code"].to_string(), str::to_owned)
    };
    (0..count).map(answer).collect()
}

#[test]
fn a_resource_outside_of_its_manifests_folder_and_the_workspace_needs_the_operators_trust() {
    let files = ["../outside.txt", "/etc/hostname", "own.txt", "../workspace/notes.txt"];
    let crib = crib(&files);
    assert_eq!(read(&crib, 4), ["-32002", "-32002", "own [masked]", "notes"]);
    let remedy = "needs the operator's trust to read `../outside.txt`: run `toolcrib trust \
                  tools.d/res.yaml:at://0`";
    for command in [&["list", "--all"][..], &["why", "at://0"]] {
        let run = crib.run(command);
        assert!(run.stdout.contains(remedy), "{command:?}: {run:?}");
    }
    let check = crib.run(&["check"]);
    assert!(check.stderr.contains("needs-trust") && check.stderr.contains(remedy), "{check:?}");
    assert_eq!(check.stderr.matches("needs-trust").count(), 2, "{check:?}");

    let trust = crib.run(&["trust", "tools.d/res.yaml:at://0", "--yes"]);
    assert_eq!(trust.code, Some(0), "{trust:?}");
    assert!(trust.stderr.contains("to read `../outside.txt`"), "{trust:?}");
    assert_eq!(read(&crib, 2), ["outside", "-32002"]);
    let revoked = crib.run(&["trust", "--revoke", "tools.d/res.yaml:at://0"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_eq!(read(&crib, 1), ["-32002"]);
    crib.config(&format!("{CONFIG}manifests: {{trusted: ['tools.d/res.yaml:at://0']}}\n"));
    assert_eq!(read(&crib, 2), ["outside", "-32002"]);
}

#[test]
fn trust_never_exposes_files_of_the_server() {
    let files = ["../config.yml", "../deploy.secret", "../state/notes.json", "/proc/self/environ"];
    let crib = crib(&files);
    crib.config(&format!("{CONFIG}manifests: {{trusted: [tools.d/res.yaml]}}\n"));
    fs::create_dir(crib.path().join("state")).expect("a folder");
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(crib.path().join("state"), private).expect("a private folder");
    // This file identifies it as a state folder.
    fs::create_dir(crib.path().join("state/control")).expect("a folder");
    fs::write(crib.path().join("state/notes.json"), "{}").expect("a file");
    assert_eq!(read(&crib, 4), ["-32603"; 4]);
}

#[test]
fn a_link_that_replaces_a_resources_file_does_not_lead_out() {
    let crib = crib(&["../workspace/notes.txt", "../workspace/later.txt"]);
    let note = crib.path().join("workspace/later.txt");
    symlink(crib.path().join("outside.txt"), note).expect("a link");
    // At the start, the target of the link is known.
    assert_eq!(read(&crib, 2), ["notes", "-32002"]);
}

#[test]
fn the_file_of_a_prompt_needs_the_operators_trust_likewise() {
    let crib = crib(&["own.txt"]);
    let prompt = "toolcrib: 1\nprompts:\n  - name: leak\n    description: Show a file.\n    messages: \
                  [{role: user, file: ../outside.txt, mime_type: text/plain}]\n";
    crib.write("prompt.yaml", prompt);
    let list = crib.run(&["list", "--all"]);
    let remedy = "run `toolcrib trust tools.d/prompt.yaml:leak`";
    assert!(list.stdout.contains(remedy), "{list:?}");
    assert_eq!(crib.run(&["trust", "tools.d/prompt.yaml", "--yes"]).code, Some(0));
    let list = crib.run(&["list", "--all"]);
    assert!(!list.stdout.contains("operator's trust"), "{list:?}");
}
