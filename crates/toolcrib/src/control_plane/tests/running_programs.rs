//! Files that become part of the control plane while a program runs that can change them, and links to
//! files that programs could create.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use toolcrib_manifest::decode;
use toolcrib_runners::{ExposeSecret as _, RunnerHost};

use super::{TestWorkspace, call, unavailable};
use crate::Toolcrib;
use crate::manifests::Manifests;
use crate::settings::Config;

/// Waits until a running program has made a file.
async fn made(file: &Path) {
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "{} was not made", file.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A tool that makes `ws/began`, waits for `ws/go`, and then runs this.
fn slow(place: &TestWorkspace, then: &str) {
    let text = format!("touch began; until test -e go; do sleep 0.02; done; {then}");
    place.tool("slow", &format!("{{argv: [sh, -c, {text:?}]}}"));
}

/// Calls the tool that [`slow`] declares. Completes when it has begun.
async fn begin(place: &TestWorkspace, crib: &Toolcrib) -> tokio::task::JoinHandle<String> {
    let own = crib.clone();
    let running = tokio::spawn(async move { call(&own, "slow", "{}").await });
    made(&place.top.join("ws/began")).await;
    running
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_declared_while_a_program_runs_that_changes_it_is_not_run_before_a_review() {
    let place = TestWorkspace::new();
    slow(&place, "echo 'echo evil' >> late.sh");
    let crib = place.crib();
    let running = begin(&place, &crib).await;

    place.write("ws/late.sh", "echo original\n");
    place.tool("late", "{argv: [sh, late.sh]}");
    assert_eq!(crib.manifests().unwrap().reload().refused, None);
    let said = call(&crib, "late", "{}").await;
    assert!(said.contains("running can change") && !said.contains("original"), "{said}");

    place.write("ws/go", "");
    running.await.unwrap();
    let said = call(&crib, "late", "{}").await;
    assert!(said.contains("could create or change") && !said.contains("evil"), "{said}");
    crib.manifests().unwrap().reload();
    assert!(call(&crib, "late", "{}").await.contains("evil"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_unchanged_since_the_reload_is_run_once_the_program_has_ended() {
    let place = TestWorkspace::new();
    slow(&place, "true");
    let crib = place.crib();
    let running = begin(&place, &crib).await;
    place.write("ws/late.sh", "echo original\n");
    place.tool("late", "{argv: [sh, late.sh]}");
    crib.manifests().unwrap().reload();
    assert!(call(&crib, "late", "{}").await.contains("running can change"));
    place.write("ws/go", "");
    running.await.unwrap();
    assert!(call(&crib, "late", "{}").await.contains("original"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_a_running_program_changes_is_not_read_again() {
    let place = TestWorkspace::new();
    slow(&place, "echo evil-evil > key.txt");
    let key = place.write("ws/key.txt", "original-value");
    let config = format!("secrets: {{key: {{file: {key:?}}}}}");
    let config: Config = decode("config.yml", &config).unwrap();
    let secrets = config.read_secrets();
    let host = RunnerHost::new(place.top.join("ws")).with_secrets(secrets.clone());
    let found = Manifests::load(&[place.top.join("tools.d")], host);
    let crib = Toolcrib::builder().manifests(&found).secrets(&secrets).unwrap().build().unwrap();
    let running = begin(&place, &crib).await;

    // A reload reads it, and then withholds it from programs that start later.
    crib.refresh_secrets().unwrap();
    crib.expect_config(&config);
    place.write("ws/go", "");
    running.await.unwrap();
    crib.refresh_secrets().unwrap();
    assert_eq!(secrets.get("key").unwrap().expose_secret(), "original-value");
    crib.manifests().unwrap().reload();
    crib.refresh_secrets().unwrap();
    assert_eq!(secrets.get("key").unwrap().expose_secret(), "evil-evil");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_starts_that_could_create_the_manifest_that_a_link_leads_to() {
    let place = TestWorkspace::new();
    place.tool("plant", "{argv: [sh, -c, 'echo ran; cp ../tools.d/plant.yaml later.yaml']}");
    let crib = place.crib();
    let link = place.top.join("tools.d/later.yaml");
    symlink(place.top.join("ws/later.yaml"), &link).unwrap();
    let said = call(&crib, "plant", "{}").await;
    assert!(said.contains("ws/later.yaml` does not exist") && !said.contains("ran"), "{said}");
    fs::remove_file(&link).unwrap();
    assert!(call(&crib, "plant", "{}").await.contains("ran"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_a_running_program_wrote_through_a_link_is_not_loaded_before_a_review() {
    let place = TestWorkspace::new();
    slow(&place, "mv planted later.yaml");
    place.write(
        "ws/planted",
        "toolcrib: 1\ntools: [{name: planted, description: Planted., run: {argv: [uname]}}]\n",
    );
    let crib = place.crib();
    crib.manifests().unwrap().watch().unwrap();
    let running = begin(&place, &crib).await;
    symlink(place.top.join("ws/later.yaml"), place.top.join("tools.d/later.yaml")).unwrap();
    place.write("ws/go", "");
    running.await.unwrap();
    let refused = || {
        let files = crib.manifests().unwrap().files();
        files.iter().any(|file| format!("{file:?}").contains("could create or change"))
    };
    let began = Instant::now();
    while !refused() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            crib.manifests().unwrap().files()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let offers = || crib.executor().registry().snapshot().get("planted").is_some();
    assert!(!offers());
    crib.manifests().unwrap().reload();
    assert!(offers());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_reaches_the_kept_homes_of_upstreams() {
    let place = TestWorkspace::new();
    let top = place.top.display().to_string();
    fs::create_dir_all(place.top.join("homes/up")).unwrap();
    place.write("homes/up/token", "canary");
    let tool = |name: &str, grant: &str| {
        let run = format!(
            "{{argv: [sh, -c, 'echo began; cat {top}/homes/up/token; echo x > {top}/homes/up/.npmrc']}}\
             \n    sandbox: {grant}"
        );
        place.tool(name, &run);
    };
    tool("above", &format!("{{write: [{top:?}]}}"));
    tool("within", &format!("{{write: ['{top}/homes/up']}}"));
    tool("reads", &format!("{{read: ['{top}/homes/up']}}"));
    place.write("config.yml", "");
    let crib = place.builder("state: {homes: homes}").build().unwrap();
    let said = call(&crib, "above", "{}").await;
    assert!(said.contains("began") && !said.contains("canary"), "{said}");
    for tool in ["within", "reads"] {
        let why = unavailable(&crib, tool).unwrap();
        assert!(why.contains("homes`, which no program may read"), "{tool}: {why}");
    }
    assert!(!place.top.join("homes/up/.npmrc").exists());
}
