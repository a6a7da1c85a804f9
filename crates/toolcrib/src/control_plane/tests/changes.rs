//! The control plane while manifests, settings and files change.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use toolcrib_manifest::decode;
use toolcrib_runners::RunnerHost;

use super::{TestWorkspace, call, hidden};
use crate::Toolcrib;
use crate::manifests::Manifests;
use crate::settings::Config;

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
fn a_place_that_a_reload_names_is_withheld_before_the_restart() {
    let place = TestWorkspace::new();
    let crib = place.crib();
    let token = place.write("ws/newtok", "canary");
    assert!(!hidden(&crib, &token));
    crib.expect_config(&place.settings("secrets: {tok: {file: ws/newtok}}"));
    assert!(hidden(&crib, &token));
}
