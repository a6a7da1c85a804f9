//! The shipped manifests: no complaint of any kind, and every test in them holds.
#![cfg(feature = "manifests")]
#![cfg_attr(
    feature = "manifests",
    expect(clippy::expect_used, reason = "a test that cannot be set up fails"),
    expect(clippy::disallowed_methods, reason = "the tests make repositories with git itself")
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use toolcrib::manifest::declaration::SandboxProfile;
use toolcrib::manifest_tests::{TestOptions, TestOutcome, run_tests};
use toolcrib::manifests::Manifests;
use toolcrib::runners::{RunnerHost, tool_trust_decision};
use toolcrib::settings::Config;
use toolcrib::{ToolCall, ToolResult, Toolcrib, TurnOptions, lint};

fn folder(below: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(below).canonicalize().expect("the folder")
}

fn loaded(folders: &[PathBuf]) -> Manifests {
    Manifests::load(folders, RunnerHost::new(folder("")))
}

/// What a server loads.
fn shipped() -> Manifests {
    loaded(&[folder("tools.d")])
}

/// That, and what lies ready beside it.
fn catalogue() -> Manifests {
    loaded(&[folder("tools.d"), folder("tools.d/available")])
}

#[test]
fn nothing_in_the_catalogue_is_loaded() {
    let manifests = shipped();
    let mut files = manifests.files().files.iter();
    assert!(files.all(|file| !file.path.to_string_lossy().contains("available")));
}

#[test]
fn the_catalogue_is_checked_with_its_directory() {
    let checked =
        lint::check(&[folder("tools.d")], &Config::default(), lint::CheckOptions::default())
            .expect("a check");
    let names: Vec<_> = checked.files.declarations().map(|tool| tool.definition.name()).collect();
    assert!(names.contains(&"service_state") && names.contains(&"disk_usage"), "{names:?}");
    // Which of the granted paths exist differs between machines.
    let problems = checked.files.problems().map(|(_, problem)| problem);
    let problems: Vec<_> = problems.filter(|problem| problem.code != "missing-grant").collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn sixteen_shipped_tools_need_no_operators_trust() {
    let (manifests, host) = (shipped(), RunnerHost::new(folder("")));
    let tools: Vec<_> = manifests.files().declarations().collect();
    for tool in &tools {
        let word = tool_trust_decision(tool, &tool.digest(), &host);
        assert!(word.is_none(), "{}: {word:?}", tool.definition.name());
        assert_ne!(tool.sandbox.profile, SandboxProfile::Trusted, "{}", tool.definition.name());
    }
    assert!(tools.len() >= 16, "only {} tools", tools.len());
}

#[test]
fn no_shipped_tool_is_granted_the_root_or_a_home_folder() {
    let homes = ["/", "/root", "/home", "/etc", "/var", "/var/lib", "/run", "/srv", "/tmp", "/opt"];
    // A program's own settings in the home folder, which need the operator's trust.
    let own_settings = ["~/.kube"];
    for tool in catalogue().files().declarations() {
        let (name, sandbox) = (tool.definition.name(), &tool.sandbox);
        assert!(sandbox.write.is_empty(), "{name} may write {:?}", sandbox.write);
        for path in &sandbox.read {
            let text = path.to_string_lossy();
            let is_plain =
                text == "." || path.is_absolute() || own_settings.contains(&text.as_ref());
            let is_open = homes.contains(&&*text) || path.starts_with("/root");
            let is_home = path.starts_with("/home") || text.contains("..");
            assert!(is_plain && !is_open && !is_home, "{name} may read {text}");
        }
    }
}

#[test]
fn shipped_programs_write_nothing_unless_they_start_others() {
    // Those may start programs, or use the network: each for a reason that stands beside it.
    let wider = ["archive_listing", "network_interfaces", "resolve_name"];
    for tool in shipped().files().declarations().filter(|tool| tool.http().is_none()) {
        let name = tool.definition.name();
        let is_pure = tool.sandbox.profile == SandboxProfile::Pure;
        assert_eq!(is_pure, !wider.contains(&name), "{name}");
    }
}

/// A workspace with the shipped tools.
struct Crib {
    workspace: TempDir,
    crib: Toolcrib,
}

impl Crib {
    fn new() -> Self {
        let workspace = tempfile::tempdir().expect("a directory");
        let host = RunnerHost::new(workspace.path());
        let manifests = Manifests::load(&[folder("tools.d")], host);
        let crib = Toolcrib::builder().entries(manifests.entries()).build().expect("a crib");
        Self { workspace, crib }
    }

    async fn call(&self, tool: &str, arguments: serde_json::Value) -> ToolResult {
        let turn = self.crib.executor().turn(TurnOptions::default());
        turn.call(ToolCall::new("call", tool, arguments.to_string())).await
    }

    /// Runs git by hand, in a folder of the workspace.
    fn git(&self, folder: &str, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(arguments)
            .current_dir(self.workspace.path().join(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status();
        assert!(status.expect("git").success(), "{arguments:?}");
    }

    /// A repository with one commit and one change.
    fn repository(&self, name: &str) -> PathBuf {
        let path = self.workspace.path().join(name);
        fs::create_dir(&path).expect("a directory");
        self.git(name, &["init", "--quiet"]);
        fs::write(path.join("f"), "1\n").expect("a file");
        self.git(name, &["add", "f"]);
        self.git(name, &["commit", "--quiet", "--message=one"]);
        // As long as before, so that Git has to look at the content, through filters.
        fs::write(path.join("f"), "2\n").expect("a file");
        path
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_git_tools_tell_of_a_repository_in_the_workspace() {
    let crib = Crib::new();
    crib.repository("app");
    let log = crib.call("git_log", serde_json::json!({"path": "app"})).await;
    assert!(log.is_success() && log.text().contains(" a: one"), "{log:?}");
    let status = crib.call("git_status", serde_json::json!({"path": "app"})).await;
    assert!(status.is_success() && status.text().contains(" M f"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_hostile_repository_names_is_run_or_read() {
    let crib = Crib::new();
    let pwned = crib.workspace.path().join("pwned");
    let run = format!("touch {}; cat", pwned.display());
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("canary"), "the canary\n").expect("a file");
    let away = outside.path().display().to_string();
    let settings: [(&str, &[(&str, &str)]); 10] = [
        (
            "filter",
            &[("filter.x.clean", &run), ("filter.x.smudge", &run), ("filter.x.required", "true")],
        ),
        ("process", &[("filter.x.process", &run)]),
        ("monitor", &[("core.fsmonitor", &run)]),
        ("pager", &[("core.pager", &run), ("pager.log", "true"), ("pager.status", "true")]),
        ("signature", &[("log.showSignature", "true"), ("gpg.program", &run)]),
        (
            "external",
            &[("diff.external", &run), ("diff.x.textconv", &run), ("diff.x.command", &run)],
        ),
        ("worktree", &[("core.worktree", &away)]),
        ("include", &[("include.path", "/etc/hostname")]),
        (
            "partial",
            &[
                ("core.repositoryFormatVersion", "1"),
                ("extensions.partialClone", "origin"),
                ("remote.origin.url", "ext::sh -c touch% pwned"),
                ("remote.origin.promisor", "true"),
                ("protocol.ext.allow", "always"),
            ],
        ),
        ("submodules", &[("status.submoduleSummary", "true"), ("diff.ignoreSubmodules", "none")]),
    ];
    for (name, settings) in settings {
        let path = crib.repository(name);
        fs::write(path.join(".gitattributes"), "* filter=x diff=x\n").expect("a file");
        if name == "partial" {
            // What is not there is fetched by a partial clone, through a program that the remote names.
            fs::remove_dir_all(path.join(".git/objects")).expect("the objects go");
            fs::create_dir(path.join(".git/objects")).expect("a directory");
        }
        if name == "submodules" {
            crib.repository("submodules/inner");
            crib.git("submodules/inner", &["config", "core.fsmonitor", &run]);
            crib.git(name, &["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
        }
        for (key, value) in settings {
            crib.git(name, &["--git-dir=.git", "config", key, value]);
        }
        let hooks = path.join(".git/hooks");
        fs::create_dir_all(&hooks).expect("a directory");
        let hook = hooks.join("post-index-change");
        fs::write(&hook, format!("#!/bin/sh\n{run} < /dev/null\n")).expect("a hook");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a mode");
        for tool in ["git_status", "git_log"] {
            let result = crib.call(tool, serde_json::json!({"path": name})).await;
            let told = format!("{} {result:?}", result.text());
            assert!(!pwned.exists(), "{tool} of {name}: {told}");
            assert!(!told.contains("canary"), "{tool} of {name}: {told}");
        }
        // The same repository by hand, which shows that the trap is one.
        if ["filter", "process", "monitor"].contains(&name) {
            let by_hand = Command::new("git").arg("status").current_dir(&path).output();
            assert!(pwned.exists(), "{name}: {by_hand:?}");
            fs::remove_file(&pwned).expect("it goes");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_looks_like_a_bare_repository_is_not_one_to_the_git_tools() {
    let crib = Crib::new();
    let path = crib.repository("evil");
    let bare = crib.workspace.path().join("bare");
    fs::rename(path.join(".git"), &bare).expect("it is moved");
    let pwned = crib.workspace.path().join("pwned");
    let run = format!("touch {}; cat", pwned.display());
    fs::write(bare.join("f"), "two\n").expect("a file");
    fs::write(bare.join(".gitattributes"), "* filter=x\n").expect("a file");
    for (key, value) in [("core.bare", "false"), ("core.worktree", "."), ("filter.x.clean", &run)] {
        crib.git("bare", &["--git-dir=.", "config", key, value]);
    }
    for tool in ["git_status", "git_log"] {
        let result = crib.call(tool, serde_json::json!({"path": "bare"})).await;
        assert!(result.text().contains("not a git repository"), "{result:?}");
    }
    assert!(!pwned.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_git_tools_follow_no_link_or_pointer_out_of_the_workspace() {
    let crib = Crib::new();
    let outside = Crib::new();
    let theirs = outside.repository("theirs");
    outside.git("theirs", &["commit", "--quiet", "--all", "--message=canary"]);
    let (git, own) = (theirs.join(".git"), crib.workspace.path());
    for name in ["link", "pointer", "alternates"] {
        fs::create_dir(own.join(name)).expect("a directory");
    }
    std::os::unix::fs::symlink(&git, own.join("link/.git")).expect("a link");
    fs::write(own.join("pointer/.git"), format!("gitdir: {}\n", git.display())).expect("a file");
    crib.git("alternates", &["init", "--quiet"]);
    let objects = git.join("objects").display().to_string();
    fs::write(own.join("alternates/.git/objects/info/alternates"), objects).expect("a file");
    for branch in ["master", "main"] {
        let from = git.join("refs/heads").join(branch);
        if from.exists() {
            fs::copy(from, own.join("alternates/.git/refs/heads").join(branch)).expect("a branch");
        }
    }
    for name in ["link", "pointer", "alternates"] {
        for tool in ["git_log", "git_status"] {
            let result = crib.call(tool, serde_json::json!({"path": name})).await;
            let told = format!("{} {result:?}", result.text());
            assert!(!told.contains("canary"), "{tool} of {name}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shipped_tools_read_nothing_outside_their_places_even_by_links() {
    let crib = Crib::new();
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("canary.txt"), "the canary\n").expect("a file");
    let own = crib.workspace.path();
    std::os::unix::fs::symlink(outside.path(), own.join("folder")).expect("a link");
    std::os::unix::fs::symlink(outside.path().join("canary.txt"), own.join("file"))
        .expect("a link");
    let absolute = outside.path().join("canary.txt").display().to_string();
    let up = "folder/../../x".to_owned();
    for path in ["file".to_owned(), "folder/canary.txt".to_owned(), absolute, up] {
        for (tool, more) in [
            ("tail_log", serde_json::json!({})),
            ("search_log", serde_json::json!({"pattern": "canary"})),
            ("file_checksum", serde_json::json!({})),
            ("archive_listing", serde_json::json!({})),
        ] {
            let mut arguments = more;
            arguments["path"] = path.clone().into();
            let result = crib.call(tool, arguments).await;
            assert!(!result.text().contains("the canary"), "{tool} {path}: {result:?}");
            assert!(!result.is_success(), "{tool} {path}: {result:?}");
        }
    }
    for tool in ["large_files", "recent_files", "directory_size"] {
        let arguments = match tool {
            "large_files" => serde_json::json!({"path": "folder/", "min_size_mib": 1}),
            _ => serde_json::json!({"path": "folder/"}),
        };
        let result = crib.call(tool, arguments).await;
        assert!(!result.text().contains("canary"), "{tool}: {result:?}");
    }
}

#[test]
fn nothing_is_wrong_with_the_shipped_manifests() {
    let manifests = catalogue();
    let problems: Vec<_> = manifests.files().problems().map(|(_, problem)| problem).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(manifests.files().declarations().count() >= 16);
}

#[test]
fn every_shipped_tool_teaches_and_is_tested() {
    let manifests = catalogue();
    for declaration in manifests.files().declarations() {
        let definition = &declaration.definition;
        let name = definition.name();
        assert!(definition.annotations().read_only, "{name} says what it does to the world");
        assert!(definition.timeout().is_some(), "{name} states its time limit");
        let named = declaration.http().is_some() || !declaration.needs.bins.is_empty();
        assert!(named, "{name} says what it needs");
        let takes_arguments = definition.input_schema()["properties"]
            .as_object()
            .is_some_and(|properties| !properties.is_empty());
        assert!(
            !takes_arguments || !definition.input_examples().is_empty(),
            "{name} has an example"
        );
        assert!(!declaration.tests.is_empty(), "{name} has a test");
    }
}

#[test]
fn every_shipped_tool_that_asks_a_server_is_tested_with_a_recorded_answer() {
    let manifests = shipped();
    let mut asking = manifests.files().declarations().filter(|tool| tool.http().is_some());
    assert!(asking.all(|tool| tool.tests.iter().any(|test| test.answer.is_some())));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tests_in_the_shipped_manifests_hold() {
    let manifests = catalogue();
    let crib = Toolcrib::builder().entries(manifests.entries()).build().expect("a crib");
    let tools = manifests.files().declarations();
    let reports = run_tests(crib.executor(), tools, TestOptions::default()).await;
    let (mut ran, mut failures) = (0, Vec::new());
    for report in &reports {
        match &report.outcome {
            // Its program is not on this machine: said here, and counted as not run.
            TestOutcome::Skipped(reason) => println!("not run: {}: {reason}", report.tool),
            TestOutcome::Passed => ran += 1,
            failed => {
                ran += 1;
                failures.push(format!("{} / {}: {failed:#?}", report.tool, report.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(ran >= 20, "only {ran} tests could run here");
}
