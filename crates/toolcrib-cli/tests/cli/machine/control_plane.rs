//! Tools cannot change what determines the behavior of their server, even if they work in its folder.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::crib::{Crib, Run};
use crate::harness::server::Server;

/// Programs work in the folder of the config, and bash runs without approval.
const IN_THE_FOLDER_ITSELF: &str = "
workspace: {root: .}
state: {dir: state}
audit: {file: audit.jsonl}
server: {token: operators-own-token-0123456789}
policy: {rules: [{tool: bash, action: allow}, {tool: 'file_*', action: allow}]}
";

const SCRIPT: &str = "
toolcrib: 1
tools:
  - name: greet
    description: Greet.
    run: {argv: [sh, scripts/greet.sh]}
";

fn crib() -> Crib {
    let crib = Crib::new(&[("greet.yaml", SCRIPT)]);
    crib.config(IN_THE_FOLDER_ITSELF);
    fs::create_dir(crib.path().join("scripts")).expect("writable");
    fs::write(crib.path().join("scripts/greet.sh"), "echo hello\n").expect("writable");
    crib
}

fn bash(crib: &Crib, command: &str) -> Run {
    let arguments = serde_json::json!({"command": command}).to_string();
    crib.call("bash", arguments, &[])
}

fn file(crib: &Crib, tool: &str, arguments: &serde_json::Value) -> Run {
    crib.call(tool, arguments.to_string(), &[])
}

#[test]
fn bash_in_the_servers_folder_works_and_changes_nothing_that_the_server_runs() {
    let crib = crib();
    let ran = bash(&crib, "echo mine > notes.txt && cat notes.txt");
    assert!(ran.stdout.contains("mine"), "{ran:?}");
    let evil = "
echo 'toolcrib: 1' > tools.d/evil.yaml
mkdir -p new && mv tools.d new/tools.d
mv tools.d gone
echo 'echo evil' > scripts/greet.sh
rm -f scripts/greet.sh
mv scripts other; mkdir scripts; echo 'echo evil' > scripts/greet.sh
echo evil >> toolcrib.lock; rm -f toolcrib.lock; mv toolcrib.lock x
echo evil >> config.yml; rm -f config.yml; mv config.yml x
echo evil >> audit.jsonl; rm -rf state; touch state/evil
true";
    let ran = bash(&crib, evil);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let manifests = fs::read_dir(crib.path().join("tools.d")).expect("it stays").count();
    assert_eq!(manifests, 1, "{ran:?}");
    let read = |name: &str| fs::read_to_string(crib.path().join(name)).expect("it stays");
    assert_eq!(read("scripts/greet.sh"), "echo hello\n");
    assert_eq!(read("config.yml"), IN_THE_FOLDER_ITSELF);
    assert!(!read("audit.jsonl").contains("evil\n"));
    assert!(read("toolcrib.lock").starts_with("# Nothing is pinned yet"));
    assert!(!crib.path().join("state/evil").exists());
    let greeted = crib.run(&["call", "greet"]);
    assert!(greeted.stdout.contains("hello"), "{greeted:?}");
}

#[test]
fn neither_bash_nor_file_tools_read_the_config_the_state_or_the_audit_log() {
    let crib = crib();
    bash(&crib, "true");
    for name in ["config.yml", "audit.jsonl", "state/runs"] {
        let ran = bash(&crib, &format!("cat {name}; ls {name}; head -c 100 {name}"));
        assert!(!ran.stdout.contains("operators-own"), "{ran:?}");
        assert!(ran.stdout.matches("Permission denied").count() > 1, "{ran:?}");
        let read = file(&crib, "file_read", &serde_json::json!({"path": name}));
        assert!(read.stdout.contains("never touched"), "{name}: {read:?}");
    }
    let search = file(&crib, "file_search", &serde_json::json!({"pattern": "operators-own"}));
    assert!(!search.stdout.contains("config.yml"), "{search:?}");
}

#[test]
fn the_operators_token_is_masked_wherever_a_tool_finds_it() {
    let crib = crib();
    let found = bash(&crib, "echo operators-own-token-0123456789 | tee copy.txt");
    assert!(!found.stdout.contains("operators-own"), "{found:?}");
    let read = file(&crib, "file_read", &serde_json::json!({"path": "copy.txt"}));
    assert!(!read.stdout.contains("operators-own"), "{read:?}");
    let audit = fs::read_to_string(crib.path().join("audit.jsonl")).expect("an audit log");
    assert!(!audit.contains("operators-own"), "{audit}");
}

#[test]
fn file_tools_change_no_manifest_script_lock_or_config() {
    let crib = crib();
    bash(&crib, "true");
    for name in ["tools.d/evil.yaml", "scripts/greet.sh", "toolcrib.lock"] {
        let write =
            file(&crib, "file_write", &serde_json::json!({"path": name, "content": "evil"}));
        assert!(write.stdout.contains("protected against changes"), "{name}: {write:?}");
    }
    let write =
        file(&crib, "file_write", &serde_json::json!({"path": "config.toml", "content": "evil"}));
    assert!(write.stdout.contains("never touched"), "{write:?}");
    for name in ["tools.d", "scripts"] {
        let arguments = serde_json::json!({"path": name, "recursive": true});
        let delete = file(&crib, "file_delete", &arguments);
        assert!(delete.stdout.contains("protected against changes"), "{name}: {delete:?}");
    }
}

#[test]
fn in_a_fresh_folder_what_decides_is_made_before_a_tool_can_make_it() {
    let crib = Crib::new(&[]);
    fs::remove_dir(crib.path().join("tools.d")).expect("it is empty");
    let call = |command: &str| {
        let arguments = serde_json::json!({"command": command}).to_string();
        crib.call("bash", arguments, &["--set", "workspace.root=.", "--yes"])
    };
    let ran = call(
        "mkdir -p tools.d; echo x > tools.d/evil.yaml; echo x > config.yml; echo x > toolcrib.lock; echo mine > a",
    );
    assert_eq!(fs::read_to_string(crib.path().join("a")).expect("bash ran"), "mine\n", "{ran:?}");
    assert_eq!(fs::read_dir(crib.path().join("tools.d")).expect("made").count(), 0);
    let config = fs::read_to_string(crib.path().join("config.yml")).expect("made");
    assert!(config.starts_with("# Settings of toolcrib"), "{config}");
    let lock = fs::read_to_string(crib.path().join("toolcrib.lock")).expect("made");
    assert!(lock.starts_with("# Nothing is pinned yet"), "{lock}");
    // An empty lock contains nothing, and is overwritten.
    let listed = crib.run(&["list"]);
    assert_eq!((listed.code, listed.stderr.contains("lock")), (Some(0), false), "{listed:?}");
}

#[test]
fn the_workspace_is_a_folder_of_its_own_that_is_made_when_it_is_needed() {
    let crib = Crib::new(&[]);
    crib.config("policy: {rules: [{tool: bash, action: allow}]}\n");
    let mut command = crib.command(&["call", "bash", "command=pwd; ls -a .. | sort"]);
    let ran = crate::harness::crib::run(command.env_remove("TOOLCRIB__WORKSPACE__ROOT"));
    assert!(ran.stdout.contains("/workspace\n") && !ran.stdout.contains("config.yml"), "{ran:?}");
    let made = fs::metadata(crib.path().join("workspace")).expect("made");
    assert_eq!(made.permissions().mode() & 0o7022, 0);
}

#[test]
fn a_script_behind_a_link_that_tools_could_replace_is_not_run() {
    let crib = crib();
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("greet.sh"), "echo outside\n").expect("writable");
    fs::remove_dir_all(crib.path().join("scripts")).expect("ours");
    std::os::unix::fs::symlink(outside.path(), crib.path().join("scripts")).expect("a link");
    let run = crib.run(&["call", "greet"]);
    assert!(run.stderr.contains("link"), "{run:?}");
    let ran = bash(&crib, "true");
    assert!(ran.stdout.contains("link"), "{ran:?}");
}

#[test]
fn a_link_that_one_tool_names_as_data_makes_only_that_tool_unavailable() {
    for argv in
        ["cat, notes.txt", "sum, notes", "sed, -n, p, notes.txt", "sh, -c, 'wc -c < notes.txt'"]
    {
        let show = SCRIPT.replace("greet", "show").replace("sh, scripts/show.sh", argv);
        let crib = Crib::new(&[("show.yaml", &show)]);
        crib.config(IN_THE_FOLDER_ITSELF);
        let name = if argv.contains("notes.txt") { "notes.txt" } else { "notes" };
        let link = crib.path().join(name);
        std::os::unix::fs::symlink("/etc/hostname", &link).expect("a link");
        let run = crib.run(&["call", "show"]);
        assert!(run.code == Some(1) && run.stderr.contains("symbolic link"), "{argv}: {run:?}");
        let ran = bash(&crib, "echo works");
        assert!(ran.code == Some(0) && ran.stdout.contains("works"), "{argv}: {ran:?}");
        fs::remove_file(&link).expect("removed");
        fs::write(&link, "data\n").expect("written");
        let run = crib.run(&["call", "show"]);
        assert_eq!(run.code, Some(0), "{argv}: {run:?}");
    }
}

#[test]
fn a_tool_works_again_once_the_link_that_it_names_is_gone_and_what_is_to_be_done_is_said() {
    let call = |server: &mut Server, id: u64, name: &str, arguments: serde_json::Value| {
        let params = serde_json::json!({"name": name, "arguments": arguments});
        let call = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        server.send(&call);
        loop {
            let message = server.receive();
            if message["id"] == id {
                return message["result"]["content"][0]["text"].to_string();
            }
        }
    };
    let nothing = || serde_json::json!({});
    let show =
        SCRIPT.replace("greet", "show").replace("sh, scripts/show.sh", "sh, -c, 'sum x.txt; :'");
    let crib = Crib::new(&[("show.yaml", &show)]);
    crib.config(IN_THE_FOLDER_ITSELF);
    let link = crib.path().join("x.txt");
    let mut server = Server::mcp(&crib);
    let bash = |command: &str| serde_json::json!({"command": command});
    call(&mut server, 10, "bash", bash("ln -s /etc/hostname x.txt"));
    let refused = call(&mut server, 11, "show", nothing());
    assert!(refused.contains("symbolic link") && refused.contains("toolcrib reload"), "{refused}");
    fs::remove_file(&link).expect("removed");
    let works = call(&mut server, 12, "show", nothing());
    assert!(!works.contains("link"), "{works}");
    // A file that a reload found stays protected until the next one.
    call(&mut server, 13, "bash", bash("ln -s /etc/hostname x.txt"));
    assert_eq!(crib.run(&["reload"]).code, Some(0));
    let refused = call(&mut server, 14, "show", nothing());
    assert!(refused.contains("symbolic link") && refused.contains("toolcrib reload"), "{refused}");
    let ran = call(&mut server, 15, "bash", bash("rm x.txt; echo other tools work"));
    assert!(ran.contains("other tools work"), "{ran}");
    assert_eq!(crib.run(&["reload"]).code, Some(0));
    let works = call(&mut server, 16, "show", nothing());
    assert!(!works.contains("link"), "{works}");
}

#[test]
fn a_model_cannot_create_a_file_that_a_manifest_runs() {
    let manifest = "
toolcrib: 1
tools:
  - name: build
    description: Build.
    run: {argv: [make, -f, build.mk]}
  - name: deploy
    description: Deploy.
    run: {argv: [sh, beside]}
";
    let crib = Crib::new(&[("build.yaml", manifest)]);
    crib.config(IN_THE_FOLDER_ITSELF);
    fs::write(crib.path().join("tools.d/beside"), "echo beside\n").expect("writable");
    for (tool, path) in [("build", "build.mk"), ("deploy", "beside")] {
        let content = "all:\n\techo chosen-by-model\n";
        let arguments = serde_json::json!({"path": path, "content": content});
        let ran = file(&crib, "file_write", &arguments);
        assert!(ran.stdout.contains("protected against changes"), "{path}: {ran:?}");
        assert!(!crib.path().join(path).exists(), "{path}");
        let ran = crib.call(tool, "{}".to_owned(), &[]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("which does not exist"), "{tool}: {ran:?}");
        assert!(!said.contains("chosen-by-model"), "{tool}: {ran:?}");
    }
}
