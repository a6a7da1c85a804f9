//! `toolcrib init`: a folder that passes every check, whose first tool a client can call at once.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::crib::{Crib, Run};
use crate::harness::server::{Server, command};

/// A folder below the crib's that does not exist yet.
const FOLDER: &str = "my crib";

fn init(crib: &Crib, more: &[&str]) -> Run {
    crib.run(&[&["init", FOLDER][..], more].concat())
}

/// Runs a command in the new folder.
fn inside(crib: &Crib, arguments: &[&str]) -> Run {
    let mut command = crib.command(arguments);
    command.current_dir(crib.path().join(FOLDER)).env_remove("TOOLCRIB__WORKSPACE__ROOT");
    crate::harness::crib::run(&mut command)
}

#[test]
fn every_combination_passes_the_strictest_checks() {
    for template in ["command", "script", "worker", "http", "client", "upstream"] {
        let crib = Crib::new(&[]);
        let run = init(&crib, &["--tool", "my_tool", "--template", template, "--client", "codex"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let check = inside(&crib, &["check", "--strict"]);
        assert_eq!(check.code, Some(0), "{template}: {check:?}");
        let test = inside(&crib, &["test", "--json"]);
        assert_eq!(test.code, Some(0), "{template}: {test:?}");
    }
}

#[test]
fn the_entry_for_a_client_starts_a_server_with_the_first_tool() {
    let crib = Crib::new(&[]);
    let run = init(&crib, &["--yes", "--client", "vscode"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let folder = crib.path().join(FOLDER);
    fs::write(folder.join("workspace/notes.txt"), "one\ntwo\n").expect("a file");

    let entry = fs::read(folder.join("client.json")).expect("it was written");
    let entry: Value = serde_json::from_slice(&entry).expect("JSON");
    let entry = &entry["servers"]["toolcrib"];
    let mut program = command(entry["command"].as_str().expect("a program"));
    let arguments = entry["args"].as_array().expect("a list");
    program.args(arguments.iter().map(|argument| argument.as_str().expect("text")));
    // Overrides what the harness sets.
    program.arg("--set").arg(format!("workspace.root={}", folder.join("workspace").display()));
    let mut server = Server::spawn(&crib, program).greeted();
    let answer = server.call("line_count", &json!({"path": "notes.txt"}));
    assert_eq!(answer["result"]["content"][0]["text"], "2 notes.txt\n", "{answer}");
}

#[test]
fn the_token_for_http_is_shown_once_and_its_hash_is_in_the_config() {
    let crib = Crib::new(&[]);
    let said = init(&crib, &["--json", "--client", "http"]).json();
    let token = said["token"].as_str().expect("a token").to_owned();
    for file in said["files"].as_array().expect("a list") {
        let file = crib.path().join(file.as_str().expect("a path"));
        assert!(!fs::read_to_string(file).expect("it was written").contains(&token));
    }
    let mut serve = command(env!("CARGO_BIN_EXE_toolcrib"));
    let config = crib.path().join(FOLDER).join("config.yml");
    serve.args(["serve", "--listen", "127.0.0.1:0", "--json", "--config"]).arg(config);
    let mut server = crate::harness::http::Http::spawn(&crib, serve);
    assert_eq!(server.ask("GET /v1/tools", None).status, 401);
    server.token = token;
    let tools = server.ask("GET /v1/tools", None);
    assert!(tools.status == 200 && tools.body.contains("line_count"), "{}", tools.body);
}

#[test]
fn nothing_that_exists_is_changed() {
    for file in ["config.toml", "tools.d/line_count.yaml", "client.json"] {
        let crib = Crib::new(&[]);
        let folder = crib.path().join(FOLDER);
        fs::create_dir_all(folder.join("tools.d")).expect("a folder");
        fs::write(folder.join(file), "mine").expect("a file");
        let run = init(&crib, &["--yes"]);
        assert_eq!(run.code, Some(2), "{file}: {run:?}");
        assert!(run.stderr.contains(file) && run.stderr.contains("nothing was changed"), "{run:?}");
        assert!(!folder.join("config.yml").exists(), "{file}");
        assert_eq!(fs::read_to_string(folder.join(file)).expect("it is there"), "mine");
    }
}

#[test]
fn a_folder_with_one_of_the_names_gets_no_file_at_all() {
    type Place = fn(&Path) -> std::io::Result<()>;
    let link: Place = |path| std::os::unix::fs::symlink("../nowhere", path);
    let file: Place = |path| fs::write(path, "mine");
    let places = [
        ("tools.d/line_count.yaml", link),
        ("config.yml", link),
        ("client.json", link),
        ("workspace", file),
        ("tools.d", file),
    ];
    for (name, make) in places {
        let crib = Crib::new(&[]);
        let folder = crib.path().join(FOLDER);
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        make(&path).expect("a place");
        let before = listed(&folder);
        let run = init(&crib, &["--yes"]);
        assert_eq!(run.code, Some(2), "{name}: {run:?}");
        assert!(run.stderr.contains(name) && run.stderr.contains("nothing was changed"), "{run:?}");
        assert!(!run.stderr.contains("--file"), "init has no such option: {run:?}");
        assert_eq!(listed(&folder), before, "{name}");
    }
}

/// Names in a folder and its folders.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(listed(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn names_that_are_taken_or_no_names_are_refused() {
    let crib = Crib::new(&[]);
    for name in ["calculator", "no name"] {
        let run = init(&crib, &["--yes", "--tool", name]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(name), "{run:?}");
    }
    assert!(!crib.path().join(FOLDER).exists());
}

#[cfg(target_os = "linux")]
#[test]
fn three_questions_are_asked_at_a_terminal() {
    let crib = Crib::new(&[]);
    let answers = [
        ("called? [line_count]", "calculator\n"),
        ("not accepted", "count_words\n"),
        ("What does it do?", "script\n"),
        ("Which client", "9\n"),
        ("neither a number", "5\n"),
    ];
    let run = crib.dialogue("init asked", &answers);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("[mcp_servers.toolcrib]"), "{run:?}");
    for file in ["config.yml", "tools.d/count_words.yaml", "tools.d/count_words.sh", "client.toml"]
    {
        assert!(crib.path().join("asked").join(file).exists(), "{file}: {run:?}");
    }
}

#[test]
fn the_references_are_printed_offline() {
    let crib = Crib::new(&[]);
    for topic in ["manifest", "diagnostics", "lock-file", "reloading"] {
        let run = crib.run(&["help", topic]);
        assert!(run.code == Some(0) && run.stdout.len() > 1000, "{topic}: {run:?}");
    }
    let unknown = crib.run(&["help", "manifests"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}
