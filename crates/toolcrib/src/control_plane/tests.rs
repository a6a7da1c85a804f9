//! Tests of each kind of place in the control plane.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use toolcrib_manifest::decode;

use super::*;
use crate::manifests::Manifests;
use crate::settings::Config;
use crate::{ToolCall, Toolcrib, ToolcribBuilder};

/// A folder with a workspace and a manifest directory in it.
pub(super) struct TestWorkspace {
    _dir: tempfile::TempDir,
    pub(super) top: PathBuf,
}

impl TestWorkspace {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for folder in ["ws", "tools.d", "ws/scripts"] {
            fs::create_dir(top.join(folder)).unwrap();
        }
        Self { _dir: dir, top }
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.top.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A manifest with one tool, which `run` describes.
    pub(super) fn tool(&self, name: &str, run: &str) {
        let text = format!(
            "toolcrib: 1\ntools:\n  - name: {name}\n    description: Run something.\n    run: {run}\n"
        );
        self.write(&format!("tools.d/{name}.yaml"), &text);
    }

    pub(super) fn builder(&self, config: &str) -> ToolcribBuilder {
        let config: Config = decode("config.yml", config).unwrap();
        let mut config = config.relative_to(&self.top);
        config.workspace.root = self.top.join("ws");
        config.own_files.push(self.top.join("config.yml"));
        let found = Manifests::load(&config.manifests.dirs, RunnerHost::new(self.top.join("ws")));
        Toolcrib::builder().settings(&config).native_tools().manifests(&found)
    }

    pub(super) fn crib(&self) -> Toolcrib {
        self.builder("{}").build().unwrap()
    }

    fn read_only(&self, crib: &Toolcrib, name: &str) -> bool {
        crib.control_plane().places().read_only.contains(&self.top.join(name))
    }
}

fn hidden(crib: &Toolcrib, path: &Path) -> bool {
    crib.control_plane().places().hidden.contains(&path.to_owned())
}

pub(super) fn unavailable(crib: &Toolcrib, tool: &str) -> Option<String> {
    let snapshot = crib.executor().registry().snapshot();
    snapshot.get(tool)?.unavailable_reason().map(str::to_owned)
}

pub(super) async fn call(crib: &Toolcrib, tool: &str, arguments: &str) -> String {
    crib.turn().call(ToolCall::new("1", tool, arguments)).await.text().into_owned()
}

#[test]
fn config_files_of_any_name_state_audit_and_secrets_are_hidden() {
    let place = TestWorkspace::new();
    let config = "
state: {dir: state}
audit: {file: audit.jsonl, keep: 2}
secrets: {key: {file: key.txt}}
secret_folders: [keys]
";
    let crib = place.builder(config).build().unwrap();
    for name in [
        "config.yml",
        "config.yaml",
        "config.toml",
        "state",
        "audit.jsonl",
        "audit.jsonl.1",
        "audit.jsonl.2",
        "key.txt",
        "keys",
    ] {
        assert!(hidden(&crib, &place.top.join(name)), "{name}");
    }
}

#[test]
fn manifest_directories_the_lock_and_what_prints_a_secret_are_read_only() {
    let place = TestWorkspace::new();
    place.write("print.sh", "");
    let config = "secrets: {a: {command: [./print.sh]}, b: {command: [sh, print.sh]}}";
    let crib = place.builder(config).build().unwrap();
    for name in ["tools.d", "toolcrib.lock", "print.sh"] {
        assert!(place.read_only(&crib, name), "{name}");
    }
}

#[test]
fn the_running_program_its_helper_and_folders_of_programs_are_read_only() {
    let crib = TestWorkspace::new().crib();
    let places = crib.control_plane().places();
    let own = std::env::current_exe().unwrap().canonicalize().unwrap();
    assert!(places.read_only.contains(&own), "{places:?}");
    assert!(places.read_only.contains(&"/usr/bin".into()), "{places:?}");
}

#[test]
fn scripts_programs_and_files_of_argument_vectors_are_read_only() {
    let place = TestWorkspace::new();
    for file in [
        "ws/scripts/a.sh",
        "ws/b.sh",
        "ws/c.sh",
        "ws/d.sh",
        "ws/e.conf",
        "ws/f.sh",
        "ws/g.sh",
        "ws/notes.db",
        "w.py",
    ] {
        place.write(file, "");
    }
    fs::create_dir(place.top.join("ws/bin")).unwrap();
    place.tool("script", "{script: ../ws/scripts/a.sh}");
    place.tool("program", "{argv: [./b.sh]}");
    place.tool("behind_a_shell", "{argv: [sh, c.sh]}");
    place.tool("in_a_command", "{argv: [sh, -c, 'cd . && ./d.sh']}");
    place.tool("as_an_option", "{argv: [mytool, --config=e.conf]}");
    place.tool("in_a_variable", "{argv: [mytool], env: {BASH_ENV: f.sh/../f.sh, PATH: './bin'}}");
    place.tool("worker", "{worker: [python3, ../w.py]}");
    place.write(
        "tools.d/data.yaml",
        "toolcrib: 1\ntools:\n  - name: data\n    description: Ask.\n    run: {argv: [mydb, notes.db]}\n    \
         sandbox: {write: [notes.db]}\n",
    );
    let crib = place.crib();
    for name in ["ws/scripts/a.sh", "ws/b.sh", "ws/c.sh", "ws/d.sh", "ws/e.conf", "ws/bin", "w.py"]
    {
        assert!(place.read_only(&crib, name), "{name}: {:?}", crib.control_plane().places());
    }
    // The paths that the declaration itself makes writable are data.
    assert!(!place.read_only(&crib, "ws/notes.db"));
    assert!(!place.read_only(&crib, "ws/g.sh"));
}

#[test]
fn the_folder_that_python_loads_modules_from_is_read_only() {
    let place = TestWorkspace::new();
    place.write("ws/scripts/count.py", "");
    place.tool("count", "{argv: [python3, scripts/count.py]}");
    assert!(place.read_only(&place.crib(), "ws/scripts"));
}

#[test]
fn the_interpreter_that_a_script_names_is_read_only() {
    let place = TestWorkspace::new();
    let interpreter = place.write("ws/run", "");
    place.write("ws/a.x", &format!("#!{} -u\n", interpreter.display()));
    place.tool("a", "{argv: [./a.x]}");
    assert!(place.read_only(&place.crib(), "ws/run"));
}

#[test]
fn a_stdio_servers_program_and_files_are_read_only() {
    let place = TestWorkspace::new();
    place.write("ws/server.js", "");
    place.write(
        "tools.d/up.yaml",
        "toolcrib: 1\nupstream:\n  - name: up\n    command: [node, server.js]\n",
    );
    let crib = place.crib();
    assert!(place.read_only(&crib, "ws/server.js"), "{:?}", crib.manifests().unwrap().files());
}

#[test]
fn a_link_is_withheld_with_the_folder_that_it_is_in() {
    let place = TestWorkspace::new();
    place.write("real.sh", "");
    symlink(place.top.join("real.sh"), place.top.join("ws/scripts/run.sh")).unwrap();
    place.tool("run", "{argv: [./scripts/run.sh]}");
    let crib = place.crib();
    assert!(place.read_only(&crib, "real.sh") && place.read_only(&crib, "ws/scripts"));
    let places = crib.control_plane().places();
    assert!(!places.links.iter().any(|link| link.starts_with(&place.top)), "{places:?}");
}

#[test]
fn what_a_link_in_the_workspace_itself_leads_to_makes_programs_unavailable() {
    let place = TestWorkspace::new();
    place.write("real.sh", "");
    symlink(place.top.join("real.sh"), place.top.join("ws/run.sh")).unwrap();
    place.tool("run", "{argv: [./run.sh]}");
    let crib = place.crib();
    let why = unavailable(&crib, "run").unwrap();
    assert!(why.contains("could replace the link"), "{why}");
}

#[tokio::test]
async fn a_broken_manifest_keeps_what_its_last_good_version_runs() {
    let place = TestWorkspace::new();
    place.write("ws/a.sh", "");
    place.tool("a", "{argv: [./a.sh]}");
    let crib = place.crib();
    place.write("tools.d/a.yaml", "toolcrib: 1\ntools: [");
    crib.manifests().unwrap().reload();
    assert!(place.read_only(&crib, "ws/a.sh"));
    fs::remove_file(place.top.join("tools.d/a.yaml")).unwrap();
    // Tools that nobody can call any more are closed in the background.
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        crib.manifests().unwrap().reload();
        if !place.read_only(&crib, "ws/a.sh") {
            return;
        }
    }
    assert!(!place.read_only(&crib, "ws/a.sh"));
}

#[test]
fn what_a_turn_can_still_run_stays_read_only_after_a_reload() {
    let place = TestWorkspace::new();
    place.write("ws/a.sh", "");
    place.write("ws/b.sh", "");
    place.tool("a", "{argv: [./a.sh]}");
    let crib = place.crib();
    let turn = crib.turn();
    place.tool("a", "{argv: [./b.sh]}");
    crib.manifests().unwrap().reload();
    assert!(place.read_only(&crib, "ws/a.sh") && place.read_only(&crib, "ws/b.sh"));
    drop(turn);
    crib.manifests().unwrap().reload();
    assert!(place.read_only(&crib, "ws/b.sh"));
}

#[cfg(feature = "builtins")]
#[tokio::test]
async fn file_tools_change_nothing_that_a_manifest_runs_and_do_not_see_the_config() {
    let place = TestWorkspace::new();
    let script = place.write("ws/scripts/a.sh", "true");
    place.tool("a", "{script: ../ws/scripts/a.sh}");
    let config = format!("{{workspace: {{root: {0:?}}}, projects: {{all: {0:?}}}}}", place.top);
    let mut config: Config = decode("config.yml", &config).unwrap();
    config.own_files.push(place.write("config.yml", "server: {token: canary}"));
    config.manifests.dirs = vec![place.top.join("tools.d")];
    let found = Manifests::load(&config.manifests.dirs, RunnerHost::new(place.top.join("ws")));
    let context = [("project_id".to_owned(), serde_json::Value::from("all"))];
    let crib = Toolcrib::builder()
        .settings(&config)
        .context(context.into_iter().collect())
        .native_tools()
        .manifests(&found)
        .build()
        .unwrap();
    for path in ["ws/scripts/a.sh", "tools.d/new.yaml", "toolcrib.lock", "TOOLS.D/new.yaml"] {
        let said =
            call(&crib, "file_write", &format!(r#"{{"path":"{path}","content":"x"}}"#)).await;
        let lock = path == "toolcrib.lock";
        // Without a config file, the lock is in the current directory.
        assert!(lock || said.contains("protected against changes"), "{path}: {said}");
    }
    for path in ["ws/scripts", "ws", "tools.d"] {
        let arguments = format!(r#"{{"path":"{path}","recursive":true}}"#);
        let said = call(&crib, "file_delete", &arguments).await;
        assert!(said.contains("protected against changes"), "{path}: {said}");
    }
    let said = call(&crib, "file_read", r#"{"path":"config.yml"}"#).await;
    assert!(said.contains("never touched") && !said.contains("canary"), "{said}");
    let said = call(&crib, "file_search", r#"{"pattern":"canary"}"#).await;
    assert!(!said.contains("config.yml"), "{said}");
    assert_eq!(fs::read_to_string(script).unwrap(), "true");
}

#[tokio::test]
async fn a_script_that_a_program_could_have_made_is_not_run_before_a_reload() {
    let place = TestWorkspace::new();
    let script = place.write("ws/scripts/a.sh", "#!/bin/sh\necho first\n");
    place.tool("a", "{argv: [sh, scripts/a.sh]}");
    place.tool("other", "{argv: [uname]}");
    let crib = place.crib();
    assert!(call(&crib, "a", "{}").await.contains("first"));
    // A checkout removes it, and a program runs that could write there.
    fs::remove_file(&script).unwrap();
    call(&crib, "other", "{}").await;
    fs::write(&script, "echo evil").unwrap();
    let said = call(&crib, "a", "{}").await;
    assert!(said.contains("could create") && !said.contains("evil"), "{said}");
    crib.manifests().unwrap().reload();
    assert!(call(&crib, "a", "{}").await.contains("evil"));
}

#[tokio::test]
async fn without_a_config_too_no_program_writes_where_manifests_are_read_from() {
    let place = TestWorkspace::new();
    place.tool("plant", "{argv: [touch, tools.d/planted.yaml]}");
    let found = Manifests::load(&[place.top.join("tools.d")], RunnerHost::new(&place.top));
    let crib = Toolcrib::builder().manifests(&found).build().unwrap();
    let said = call(&crib, "plant", "{}").await;
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(!place.top.join("tools.d/planted.yaml").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_starts_while_it_could_make_the_config_or_the_lock() {
    let place = TestWorkspace::new();
    place.tool("shell", "{argv: [sh, -c, 'echo ran; touch config.yml toolcrib.lock']}");
    for name in ["config.yml", "toolcrib.lock"] {
        place.write("config.yml", "{}");
        place.write("toolcrib.lock", "");
        let config: Config = decode("config.yml", "{}").unwrap();
        let mut config = config.relative_to(&place.top);
        config.workspace.root = place.top.clone();
        config.own_files.push(place.top.join("config.yml"));
        let found = Manifests::load(&config.manifests.dirs, RunnerHost::new(&place.top));
        let crib = Toolcrib::builder().settings(&config).manifests(&found).build().unwrap();
        fs::remove_file(place.top.join(name)).unwrap();
        let said = call(&crib, "shell", "{}").await;
        assert!(said.contains("could create") && !said.contains("ran"), "{said}");
        assert!(!place.top.join(name).exists(), "{name}");

        // An editor may remove a file before it writes it, so the start waits.
        let late = place.top.join(name);
        let editor = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            fs::write(late, "").unwrap();
        });
        assert!(call(&crib, "shell", "{}").await.contains("ran"), "{name}");
        editor.join().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_while_a_script_of_another_tool_goes_and_comes() {
    let place = TestWorkspace::new();
    let script = place.write("ws/scripts/a.sh", "#!/bin/sh\necho first\n");
    place.tool("a", "{argv: [sh, scripts/a.sh]}");
    place.tool("other", "{argv: [echo, other]}");
    let crib = place.crib();
    let (done, editing) = (Arc::new(AtomicBool::new(false)), script.clone());
    let over = Arc::clone(&done);
    let editor = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            fs::remove_file(&editing).unwrap();
            std::thread::sleep(Duration::from_micros(500));
            fs::write(&editing, "#!/bin/sh\necho first\n").unwrap();
            std::thread::sleep(Duration::from_micros(500));
        }
    });
    for _ in 0..200 {
        assert_eq!(call(&crib, "other", "{}").await.trim(), "other");
    }
    done.store(true, Ordering::Relaxed);
    editor.join().unwrap();
}

#[test]
fn a_tool_whose_script_is_missing_is_unavailable_until_its_manifest_is_read_again() {
    let place = TestWorkspace::new();
    place.tool("a", "{argv: [./a.sh]}");
    let crib = place.crib();
    let why = unavailable(&crib, "a").unwrap();
    assert!(why.contains("a.sh`, which does not exist"), "{why}");
    place.write("ws/a.sh", "");
    assert!(unavailable(&crib, "a").is_some());
    crib.manifests().unwrap().reload();
    assert_eq!(unavailable(&crib, "a"), None);
}

fn settings(place: &TestWorkspace, text: &str) -> Config {
    let config: Config = decode("config.yml", text).unwrap();
    let mut config = config.relative_to(&place.top);
    config.workspace.root = place.top.join("ws");
    config
}

#[test]
fn a_place_that_a_reload_names_is_withheld_before_the_restart() {
    let place = TestWorkspace::new();
    let crib = place.crib();
    let token = place.write("ws/newtok", "canary");
    assert!(!hidden(&crib, &token));
    crib.expect_config(&settings(&place, "secrets: {tok: {file: ws/newtok}}"));
    assert!(hidden(&crib, &token));
}

#[test]
fn a_missing_secret_and_a_missing_script_of_a_trusted_tool_are_nobodys_to_make() {
    let place = TestWorkspace::new();
    let text = "toolcrib: 1\ntools:\n  - name: a\n    description: Run something.\n    \
                sandbox: {profile: trusted}\n    run: {script: ../ws/missing.sh}\n";
    place.write("tools.d/a.yaml", text);
    let crib = place.builder("secrets: {tok: {file: ws/keys/tok}}").build().unwrap();
    let guarded = crib.control_plane().places().guarded.clone();
    for missing in ["ws/missing.sh", "ws/keys/tok"] {
        assert!(guarded.contains(&place.top.join(missing)), "{missing}: {guarded:?}");
    }
}

#[test]
fn an_audit_log_that_rotates_is_withheld_with_its_folder_or_refused() {
    let place = TestWorkspace::new();
    let own = settings(&place, "audit: {file: ws/audit/log, max_bytes: 1MiB}");
    assert!(own.own_places().hidden.contains(&place.top.join("ws/audit")));
    assert_eq!(own.misplaced_audit_log(), None);
    let beside = settings(&place, "audit: {file: ws/log, max_bytes: 1MiB}");
    assert!(beside.misplaced_audit_log().is_some_and(|why| why.contains("a folder of its own")));
    assert_eq!(settings(&place, "audit: {file: ws/log}").misplaced_audit_log(), None);
}

#[test]
fn a_config_is_to_come_in_each_folder_where_one_is_looked_for_and_none_is() {
    let place = TestWorkspace::new();
    let mut config = settings(&place, "{}");
    config.own_files = vec![place.write("other.yml", ""), place.top.join("ws/config.toml")];
    assert_eq!(config.configs_to_come(), [place.top.join("ws/config.yml")]);
    place.write("ws/config.toml", "");
    assert!(config.configs_to_come().is_empty());
}

#[test]
fn a_missing_file_that_an_argument_vector_runs_is_read_only_and_its_tool_waits_for_a_reload() {
    let place = TestWorkspace::new();
    fs::create_dir(place.top.join("ws/sub")).unwrap();
    for (tool, run, file) in [
        ("makefile", "{argv: [make, -f, build.mk]}", "ws/build.mk"),
        ("glued", "{argv: [make, -fglued.mk, all]}", "ws/glued.mk"),
        ("long", "{argv: [make, --makefile=long.mk]}", "ws/long.mk"),
        ("moved", "{argv: [make, -C, sub, -f, moved.mk]}", "ws/sub/moved.mk"),
        ("playbook", "{argv: [ansible-playbook, site2.yml]}", "ws/site2.yml"),
        ("python", "{argv: [python3, nightly.py]}", "ws/nightly.py"),
        ("bare", "{argv: [timeout, '9', sh, nightly]}", "ws/nightly"),
        ("filter", "{argv: [awk, -f, rules.txt, in.txt]}", "ws/rules.txt"),
    ] {
        place.tool(tool, run);
        let crib = place.crib();
        assert!(place.read_only(&crib, file), "{tool}: {:?}", crib.control_plane().places());
        let why = unavailable(&crib, tool).unwrap_or_default();
        assert!(why.contains(&format!("{file}`, which does not exist")), "{tool}: {why}");
        place.write(file, "");
        assert!(unavailable(&crib, tool).is_some(), "{tool}");
        crib.manifests().unwrap().reload();
        let why = unavailable(&crib, tool).unwrap_or_default();
        assert!(!why.contains("does not exist"), "{tool}: {why}");
    }
}

#[test]
fn a_missing_file_that_a_program_may_run_is_read_only_and_its_tool_is_available() {
    let place = TestWorkspace::new();
    place.tool("after_options", "{argv: [python3, -W, ignore, nightly]}");
    place.tool("in_a_command", "{argv: [sh, -c, 'test -e x && ./d.sh; . settings']}");
    place.tool("behind_env", "{argv: [env, -u, A, ./e.sh]}");
    place.tool("as_an_option", "{argv: [printer, --config=e.conf]}");
    let crib = place.crib();
    for name in ["ws/nightly", "ws/d.sh", "ws/settings", "ws/e.sh", "ws/e.conf"] {
        assert!(place.read_only(&crib, name), "{name}: {:?}", crib.control_plane().places());
    }
    for tool in ["after_options", "in_a_command", "behind_env"] {
        assert_eq!(unavailable(&crib, tool), None, "{tool}");
    }
}

#[test]
fn a_file_that_a_program_reads_unasked_and_names_that_would_win_over_it_are_read_only() {
    let place = TestWorkspace::new();
    fs::create_dir(place.top.join("ws/sub")).unwrap();
    for file in ["Makefile", "sub/makefile", "package.json", "build.ninja"] {
        place.write(&format!("ws/{file}"), "{}");
    }
    place.tool("make", "{argv: [make, build]}");
    place.tool("make_below", "{argv: [make, -C, sub, build]}");
    place.tool("npm", "{argv: [npm, run, build]}");
    let crib = place.crib();
    for name in
        ["Makefile", "makefile", "GNUmakefile", "sub/GNUmakefile", "sub/makefile", "package.json"]
    {
        let name = format!("ws/{name}");
        assert!(place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
    for name in ["sub/Makefile", "build.ninja"] {
        let name = format!("ws/{name}");
        assert!(!place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
    for tool in ["make", "make_below", "npm"] {
        assert!(!unavailable(&crib, tool).is_some_and(|why| why.contains("exist")), "{tool}");
    }
}

#[test]
fn a_file_that_a_program_would_read_unasked_stays_open_if_another_is_named_or_it_is_granted() {
    let place = TestWorkspace::new();
    for file in ["Makefile", "own.mk", "package.json"] {
        place.write(&format!("ws/{file}"), "{}");
    }
    place.tool("named", "{argv: [make, -fown.mk, build]}");
    place.tool("install", "{argv: [npm, install]}");
    place.tool("granted", "{argv: [ninja]}\n    sandbox: {write: [build.ninja]}");
    let crib = place.crib();
    for name in ["Makefile", "GNUmakefile", "package.json", "build.ninja"] {
        let name = format!("ws/{name}");
        assert!(!place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
}

#[test]
fn a_missing_file_that_is_a_programs_data_stays_open_to_tools() {
    let place = TestWorkspace::new();
    place.tool("target", "{argv: [make, app]}");
    place.tool("filter", "{argv: [sed, -n, 1p, notes.txt]}");
    place.tool("one_liner", "{argv: [perl, -ne, 'print', lines.txt]}");
    place.tool("script", "{argv: [sh, -c, 'cat in.txt > out.sh']}");
    place.tool("sorted", "{argv: [timeout, '9', sort, -o, sorted.sh, words]}");
    place.tool("printed", "{argv: [sh, -c, 'printf hello; echo $1', sh, '${args.x}']}");
    let crib = place.crib();
    for name in ["app", "notes.txt", "lines.txt", "in.txt", "out.sh", "sorted.sh", "words"] {
        let name = format!("ws/{name}");
        assert!(!place.read_only(&crib, &name), "{name}: {:?}", crib.control_plane().places());
    }
}

#[test]
fn a_script_is_the_one_in_the_working_directory_and_not_beside_the_manifest() {
    let place = TestWorkspace::new();
    place.tool("a", "{argv: [python3, abs2.py]}");
    place.write("tools.d/abs2.py", "");
    let crib = place.crib();
    assert!(place.read_only(&crib, "ws/abs2.py"));
    let why = unavailable(&crib, "a").unwrap();
    assert!(why.contains("ws/abs2.py`, which does not exist"), "{why}");
}

#[cfg(feature = "builtins")]
#[tokio::test]
async fn file_tools_do_not_create_a_file_that_a_manifest_runs() {
    let place = TestWorkspace::new();
    place.tool("build", "{argv: [make, -f, build.mk]}");
    place.tool("site", "{argv: [ansible-playbook, site2.yml]}");
    place.tool("beside", "{argv: [python3, abs2.py]}");
    place.tool("command", "{argv: [sh, -c, 'test ! -e d.sh || ./d.sh']}");
    place.write("tools.d/abs2.py", "");
    let crib = place.crib();
    for path in ["build.mk", "site2.yml", "abs2.py", "d.sh"] {
        let arguments = format!(r#"{{"path":"{path}","content":"x"}}"#);
        let said = call(&crib, "file_write", &arguments).await;
        assert!(said.contains("protected against changes"), "{path}: {said}");
        assert!(!place.top.join("ws").join(path).exists(), "{path}");
    }
    for tool in ["build", "site", "beside"] {
        let said = call(&crib, tool, "{}").await;
        assert!(said.contains("which does not exist"), "{tool}: {said}");
    }
}

#[tokio::test]
async fn a_file_that_a_program_created_and_a_command_would_run_is_not_run_before_a_reload() {
    let place = TestWorkspace::new();
    place.tool("command", "{argv: [sh, -c, 'test ! -e d.sh || sh ./d.sh; echo done']}");
    place.tool("other", "{argv: [touch, d.sh]}");
    let crib = place.crib();
    assert!(call(&crib, "command", "{}").await.contains("done"));
    call(&crib, "other", "{}").await;
    assert!(place.top.join("ws/d.sh").exists());
    let said = call(&crib, "command", "{}").await;
    assert!(said.contains("could create"), "{said}");
    crib.manifests().unwrap().reload();
    assert!(call(&crib, "command", "{}").await.contains("done"));
}

#[test]
fn a_tool_whose_missing_script_would_be_behind_a_link_is_unavailable() {
    let place = TestWorkspace::new();
    symlink("made-later.mk", place.top.join("ws/build.mk")).unwrap();
    place.tool("build", "{argv: [make, -f, build.mk]}");
    place.tool("other", "{argv: [uname]}");
    let crib = place.crib();
    let why = unavailable(&crib, "build").unwrap();
    assert!(why.contains("symbolic link in the workspace"), "{why}");
    assert_eq!(unavailable(&crib, "other"), None);
}
