//! The lock and the files that argument vectors name.

use std::fs;

use serde_json::{Value, json};

use crate::harness::crib::{Crib, Run};
use crate::harness::server::Server;

/// A manifest with one tool, `say_hello`, that runs this argument vector.
fn manifest(argv: &Value) -> String {
    let tool = json!({
        "name": "say_hello",
        "description": "Say hello. Read-only.",
        "annotations": {"read_only": true, "open_world": false},
        "run": {"argv": argv},
    });
    json!({"toolcrib": 1, "tools": [tool]}).to_string()
}

/// Writes an executable file in the workspace, which is the folder of the crib.
fn write(crib: &Crib, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    let file = crib.path().join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(&file, text).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// A crib whose enforced lock has accepted the tool.
fn locked(argv: &Value, files: &[(&str, &str)]) -> Crib {
    let crib = Crib::new(&[("hello.yaml", &manifest(argv))]);
    for (name, text) in files {
        write(&crib, name, text);
    }
    crib.config("registry: {lock: enforce}\nstate: {dir: state}\n");
    accept(&crib);
    crib
}

#[track_caller]
fn accept(crib: &Crib) {
    let run = crib.run(&["lock"]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

fn hello(crib: &Crib) -> Run {
    crib.run(&["call", "say_hello"])
}

#[track_caller]
fn says(crib: &Crib, text: &str) {
    let run = hello(crib);
    assert!(run.code == Some(0) && run.stdout.contains(text), "{run:?}");
}

#[track_caller]
fn is_blocked(crib: &Crib) {
    let run = hello(crib);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("it has changed since toolcrib.lock accepted it"), "{run:?}");
}

const SHELL: &str = "#!/bin/sh\necho Hello\n";
const PYTHON: &str = "print('Hello')\n";

#[test]
fn a_changed_file_that_argv_names_is_blocked_by_an_enforced_lock() {
    for (argv, written, text) in [
        (json!(["sh", "x.sh"]), "x.sh", SHELL),
        (json!(["./y.sh"]), "./y.sh", SHELL),
        (json!(["python3", "-I", "tools/a.py"]), "tools/a.py", PYTHON),
        (json!(["sh", "-c", "./z.sh; :"]), "./z.sh", SHELL),
        (json!(["awk", "-f", "f.awk"]), "f.awk", "BEGIN { print \"Hello\"; exit }\n"),
        (json!(["sed", "-n", "--file=f.sed", "f.sed"]), "f.sed", "s/.*/Hello/p\n"),
        (json!(["cat", "tools.d/note.txt"]), "tools.d/note.txt", "Hello\n"),
    ] {
        let crib = locked(&argv, &[(written, text)]);
        says(&crib, "Hello");
        assert_eq!(crib.run(&["lock", "--check"]).code, Some(0), "{argv}");
        write(&crib, written, &text.replace("Hello", "Evil"));
        is_blocked(&crib);
        assert_eq!(crib.run(&["lock", "--check"]).code, Some(1), "{argv}");
        let diff = crib.run(&["lock", "--diff"]).stdout;
        let pointer = format!("/run/files/{}\n    - \"blake3:", written.replace('/', "~1"));
        assert!(diff.contains(&pointer), "{argv}: {diff}");
        accept(&crib);
        says(&crib, "Evil");
    }
}

/// Calls the tool in a running server.
fn call(server: &mut Server, id: u64) -> String {
    let params = json!({"name": "say_hello", "arguments": {}});
    server.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    loop {
        let message = server.receive();
        if message["id"] == id {
            return message["result"]["content"][0]["text"].to_string();
        }
    }
}

#[test]
fn a_changed_file_that_argv_names_is_blocked_at_a_reload_and_in_between() {
    for (argv, name) in [(json!(["sh", "x.sh"]), "x.sh"), (json!(["./y.sh"]), "y.sh")] {
        let crib = locked(&argv, &[(name, SHELL)]);
        let mut server = Server::mcp(&crib);
        let first = call(&mut server, 10);
        assert!(first.contains("Hello"), "{first}");

        write(&crib, name, &SHELL.replace("Hello", "Evil"));
        let changed = call(&mut server, 11);
        assert!(changed.contains("has changed since the tools were loaded"), "{changed}");
        assert_eq!(crib.run(&["reload"]).code, Some(0));
        let reloaded = call(&mut server, 12);
        assert!(reloaded.contains("it has changed since toolcrib.lock accepted it"), "{reloaded}");

        accept(&crib);
        assert_eq!(crib.run(&["reload"]).code, Some(0));
        let accepted = call(&mut server, 13);
        assert!(accepted.contains("Evil"), "{accepted}");
        fs::remove_file(crib.path().join(name)).expect("removed");
        let gone = call(&mut server, 14);
        assert!(gone.contains(name) && !gone.contains("Evil"), "{gone}");
    }
}

#[test]
fn a_file_that_takes_the_place_of_a_word_with_an_ending_is_blocked() {
    let crib = locked(&json!(["echo", "Hello.txt"]), &[]);
    says(&crib, "Hello");
    let lock = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("it was written");
    assert!(!lock.contains("/run/files"), "a word that names no file is not pinned as one: {lock}");
    let mut server = Server::mcp(&crib);
    assert!(call(&mut server, 10).contains("Hello"));
    write(&crib, "Hello.txt", "a file");
    let changed = call(&mut server, 11);
    assert!(changed.contains("which did not exist when the tools were loaded"), "{changed}");
    is_blocked(&crib);
}

#[test]
fn a_file_named_like_a_plain_word_of_a_program_that_runs_no_files_changes_nothing() {
    let crib = locked(&json!(["echo", "Hello"]), &[]);
    let mut server = Server::mcp(&crib);
    write(&crib, "Hello", "a file");
    assert!(call(&mut server, 10).contains("Hello"));
    says(&crib, "Hello");
    assert_eq!(crib.run(&["lock", "--check"]).code, Some(0));
}

#[test]
fn a_file_with_a_bare_name_counts_for_a_program_that_may_run_it() {
    for argv in [
        json!(["sum", "table"]),
        json!(["/usr/bin/sum", "table"]),
        json!(["sh", "-c", "sum table"]),
        json!(["sh", "-c", "echo . ./table | sh"]),
        json!(["sh", "table"]),
        json!(["timeout", "9", "sh", "table"]),
    ] {
        let crib = locked(&argv, &[("table", "echo Hello\n")]);
        assert_eq!(hello(&crib).code, Some(0), "{argv}");
        write(&crib, "table", "echo Evil\n");
        is_blocked(&crib);
    }
}

#[test]
fn a_file_that_argv_names_for_writing_is_written_by_each_call() {
    for argv in [
        json!(["sh", "-c", "echo Hello >> notes.txt; cat notes.txt; wc -l < notes.txt"]),
        json!(["timeout", "9", "tar", "-cvf", "o.tar", "Hello.txt"]),
        json!(["sort", "-o", "out.txt", "Hello.txt"]),
    ] {
        let crib = locked(&argv, &[("Hello.txt", "Hello")]);
        for _ in 0..3 {
            let run = hello(&crib);
            assert!(run.code == Some(0) && !run.stdout.contains("Read-only"), "{argv}: {run:?}");
        }
    }
}

#[test]
fn a_file_that_the_tool_is_granted_for_writing_is_its_data_and_is_not_pinned() {
    let text = manifest(&json!(["sh", "tools.d/x.sh", "data/notes"]))
        .replace("\"run\":", "\"sandbox\": {\"write\": [\"data\"]}, \"run\":");
    let crib = Crib::new(&[("hello.yaml", &text), ("x.sh", "cat \"$1\"\n")]);
    write(&crib, "data/notes", "Hello\n");
    crib.config("registry: {lock: enforce}\nstate: {dir: state}\n");
    accept(&crib);
    says(&crib, "Hello");
    write(&crib, "data/notes", "more\n");
    says(&crib, "more");
    crib.write("x.sh", "echo Evil\n");
    is_blocked(&crib);
}

#[test]
fn a_folder_that_argv_names_is_pinned_by_its_name_only() {
    let crib = locked(&json!(["ls", "things"]), &[("things/Hello", "")]);
    says(&crib, "Hello");
    write(&crib, "things/more", "");
    says(&crib, "more");
}

#[test]
fn a_tool_with_a_file_too_large_to_pin_is_blocked() {
    let crib = Crib::new(&[("hello.yaml", &manifest(&json!(["wc", "-c", "large.bin"])))]);
    let large = fs::File::create(crib.path().join("large.bin")).expect("a file");
    large.set_len(64 * 1024 * 1024 + 1).expect("a hole");
    crib.config("state: {dir: state}\n");
    says(&crib, "67108865 large.bin");
    crib.config("registry: {lock: enforce}\nstate: {dir: state}\n");
    accept(&crib);
    let lock = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("it was written");
    assert!(lock.contains("\"/run/files/large.bin\" = \"unreadable\""), "{lock}");
    let run = hello(&crib);
    assert!(run.code == Some(1) && run.stderr.contains("larger than 64 MiB"), "{run:?}");
    large.set_len(1024).expect("cut");
    accept(&crib);
    says(&crib, "1024 large.bin");
}

#[test]
fn a_pinned_shell_script_runs_from_a_copy_and_knows_where_it_is() {
    let text = "#!/bin/sh\necho \"Hello from $0, which is $TOOLCRIB_SCRIPT\"\n";
    let crib = locked(&json!(["sh", "-e", "tools/x.sh", "more"]), &[("tools/x.sh", text)]);
    says(&crib, "Hello from /proc/self/fd/");
    says(&crib, "/tools/x.sh");
}

#[test]
fn a_pinned_program_runs_in_its_own_folder_with_its_neighbours() {
    let beside = "import other; print(other.WORD)\n";
    for argv in [json!(["python3", "tools/a.py"]), json!(["tools/a.py"])] {
        let crib = locked(
            &argv,
            &[
                ("tools/a.py", &format!("#!/usr/bin/env python3\n{beside}")),
                ("tools/other.py", "WORD = 'Hello'\n"),
            ],
        );
        says(&crib, "Hello");
    }
}

#[test]
fn trust_covers_the_bytes_of_files_that_argv_names() {
    let text = manifest(&json!(["sh", "x.sh"]))
        .replace("\"run\":", "\"cwd\": \".\", \"sandbox\": {\"profile\": \"trusted\"}, \"run\":");
    let crib = Crib::new(&[("hello.yaml", &text)]);
    write(&crib, "x.sh", SHELL);
    crib.config("state: {dir: state}\n");
    let trust = crib.run(&["trust", "tools.d/hello.yaml:say_hello", "--yes"]);
    assert_eq!(trust.code, Some(0), "{trust:?}");
    says(&crib, "Hello");
    let mut server = Server::mcp(&crib);
    assert!(call(&mut server, 10).contains("Hello"));

    write(&crib, "x.sh", &SHELL.replace("Hello", "Evil"));
    let changed = call(&mut server, 11);
    assert!(changed.contains("has changed since the tools were loaded"), "{changed}");
    assert!(
        changed.contains("`toolcrib trust tools.d/hello.yaml:say_hello`")
            && !changed.contains("toolcrib reload"),
        "the next step is to trust it again: {changed}"
    );
    let why = crib.run(&["why", "say_hello"]);
    assert!(why.stdout.contains("it has changed since it was trusted"), "{why:?}");
    assert!(why.stdout.contains("as it was loaded; what the files say now"), "{why:?}");
    let check = crib.run(&["check"]);
    assert!(check.stderr.contains("it has changed since it was trusted"), "{check:?}");
    assert_eq!(hello(&crib).code, Some(1));
    assert_eq!(crib.run(&["reload"]).code, Some(0));
    let reloaded = call(&mut server, 12);
    assert!(!reloaded.contains("Evil"), "{reloaded}");

    write(&crib, "x.sh", SHELL);
    says(&crib, "Hello");
}

#[test]
fn a_changed_file_of_a_server_keeps_it_from_starting() {
    let server =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib-mcp/tests/mcp/upstream/server.py");
    let crib = Crib::new(&[]);
    let text = fs::read_to_string(server).expect("the scripted server");
    write(&crib, "server.py", &text);
    let script = crib.data().join("script.json");
    let get =
        json!({"name": "get", "description": "Read one note.", "inputSchema": {"type": "object"}});
    fs::write(&script, json!({"tools": [get]}).to_string()).expect("a script");
    let declared = json!({
        "name": "notes",
        "command": ["python3", "-I", "-S", "server.py", script],
        "sandbox": {"write": [crib.data()]},
    });
    crib.write("s.yaml", &json!({"toolcrib": 1, "upstream": [declared]}).to_string());
    crib.config("registry: {lock: enforce}\nstate: {dir: state}\n");
    accept(&crib);
    let called = || crib.run(&["call", "notes_get"]);
    let first = called();
    assert_eq!(first.code, Some(0), "{first:?}");
    let lock = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("it was written");
    assert!(lock.contains("\"/files/server.py\" = \"blake3:"), "{lock}");

    let log = crib.data().join("script.json.log");
    fs::remove_file(&log).expect("it was asked");
    write(&crib, "server.py", &format!("{text}\n# changed\n"));
    let changed = called();
    assert_eq!(changed.code, Some(1), "{changed:?}");
    assert!(!log.exists(), "it was not started");
    write(&crib, "server.py", &text);
    assert_eq!(called().code, Some(0));
}

#[test]
fn a_file_glued_to_an_option_is_pinned_as_one_that_stands_alone() {
    for (argv, written, text) in [
        (json!(["awk", "-ff.awk"]), "f.awk", "BEGIN { print \"Hello\"; exit }\n"),
        (json!(["sed", "-nff.sed", "f.sed"]), "f.sed", "s/.*/Hello/p\n"),
    ] {
        let crib = locked(&argv, &[(written, text)]);
        says(&crib, "Hello");
        write(&crib, written, &text.replace("Hello", "Evil"));
        is_blocked(&crib);
    }
}

#[test]
fn a_file_that_appears_where_an_option_names_one_is_blocked() {
    let crib = locked(&json!(["sh", "-c", "echo Hello", "-fx.mk"]), &[]);
    let mut server = Server::mcp(&crib);
    assert!(call(&mut server, 10).contains("Hello"));
    write(&crib, "x.mk", "all:; echo Evil\n");
    let changed = call(&mut server, 11);
    assert!(changed.contains("which did not exist when the tools were loaded"), "{changed}");
}

#[test]
fn trust_covers_and_shows_files_outside_the_folder_of_the_manifest() {
    let other = tempfile::tempdir().expect("a folder");
    let outside = other.path().join("outside.sh");
    let name = outside.to_str().expect("a name");
    for argv in [json!([name]), json!(["sh", name]), json!(["awk", format!("-f{name}")])] {
        let is_awk = argv[0] == "awk";
        let text = |word: &str| {
            if is_awk {
                format!("BEGIN {{ print \"{word}\" }}\n")
            } else {
                SHELL.replace("Hello", word)
            }
        };
        let change = |word: &str| {
            use std::os::unix::fs::PermissionsExt as _;

            fs::write(&outside, text(word)).expect("written");
            fs::set_permissions(&outside, fs::Permissions::from_mode(0o755)).expect("executable");
        };
        change("Hello");
        let mut tool: Value = serde_json::from_str(&manifest(&argv)).expect("JSON");
        tool["tools"][0]["sandbox"] = json!({"profile": "trusted"});
        let crib = Crib::new(&[("hello.yaml", &tool.to_string())]);
        crib.config("state: {dir: state}\n");
        let trusted = crib.run(&["trust", "tools.d/hello.yaml", "--yes"]);
        assert_eq!(trusted.code, Some(0), "{trusted:?}");
        assert!(trusted.stderr.contains(name) && trusted.stderr.contains("Hello"), "{trusted:?}");
        says(&crib, "Hello");
        change("Evil");
        let run = hello(&crib);
        assert!(run.code == Some(1) && run.stderr.contains("trust"), "{argv}: {run:?}");
        change("Hello");
        says(&crib, "Hello");
    }
}

#[test]
fn a_makefile_is_pinned_and_one_that_would_win_over_it_is_blocked() {
    let crib = locked(&json!(["make", "-s"]), &[("Makefile", "all:\n\t@echo as locked\n")]);
    says(&crib, "as locked");
    write(&crib, "GNUmakefile", "all:\n\t@echo taken over\n");
    is_blocked(&crib);
    accept(&crib);
    says(&crib, "taken over");
    write(&crib, "GNUmakefile", "all:\n\t@echo changed\n");
    is_blocked(&crib);
}

#[test]
fn a_file_that_a_shell_text_runs_in_another_folder_is_pinned() {
    let argv = json!(["sh", "-c", "cd lib && . ./helper.sh"]);
    let crib = locked(&argv, &[("lib/helper.sh", "echo as locked\n")]);
    says(&crib, "as locked");
    write(&crib, "lib/helper.sh", "echo taken over\n");
    is_blocked(&crib);
}
