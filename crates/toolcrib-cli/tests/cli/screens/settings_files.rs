//! Which config file is read, and what it may contain.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::crib::{Crib, run};

#[test]
fn a_config_that_is_not_a_regular_file_is_an_error() {
    let crib = Crib::new(&[]);
    let path = crib.path().join("config.yml");
    let refused = |kind: &str| {
        let mut list = crate::harness::server::command(env!("CARGO_BIN_EXE_toolcrib"));
        list.arg("list").current_dir(crib.path()).env("HOME", crib.home());
        let run = list.output().expect("the binary runs");
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("config.yml in {}", crib.path().display())), "{said}");
        assert!(said.contains(&format!("is a {kind}, not a file")), "{said}");
    };
    fs::create_dir(&path).expect("made");
    refused("directory");
    fs::remove_dir(&path).expect("removed");
    std::os::unix::fs::symlink("nowhere", &path).expect("linked");
    refused("dangling symbolic link");
    fs::remove_file(&path).expect("removed");
    let made = crate::harness::server::command("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    refused("FIFO");
}

#[test]
fn a_section_that_is_commented_out_has_its_default() {
    let crib = Crib::new(&[]);
    crib.config(
        "server:\n  tokens:\n  #  ada: {}\npolicy:\n  rules:\ntoolsets:\nmanifests: {trusted: null}\n\
         executor:\nsecrets:\n",
    );
    let shown = crib.run(&["config", "show", "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert_eq!(shown.json()["config"]["executor"]["max_concurrency"].as_u64(), {
        fs::remove_file(crib.path().join("config.yml")).expect("removed");
        crib.run(&["config", "show", "--json"]).json()["config"]["executor"]["max_concurrency"]
            .as_u64()
    });
    let protected = |crib: &Crib| {
        crib.run(&["config", "show", "--json"]).json()["config"]["paths"]["protected"].clone()
    };
    let default = protected(&crib);
    assert!(default.as_array().is_some_and(|paths| !paths.is_empty()), "{default}");
    crib.config("paths: {protected: null}\n");
    assert_eq!(protected(&crib), default);
    crib.config("paths: {protected: []}\n");
    assert_eq!(protected(&crib), serde_json::json!([]), "an empty list is one");
    for text in ["", "null"] {
        let set = format!("paths.protected={text}");
        let refused = crib.run(&["--set", &set, "config", "show"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("write `[]` for an empty one"), "{refused:?}");
    }
    crib.config("executor: {max_concurrency: null}\n");
    assert_eq!(crib.run(&["list"]).code, Some(2), "a number is not nothing");
}

#[test]
fn an_include_that_is_empty_or_null_is_refused() {
    let crib = Crib::new(&[]);
    for include in ["[]", "null", ""] {
        crib.config(&format!("toolsets:\n  none:\n    include: {include}\n"));
        let refused = crib.run(&["list"]);
        assert_eq!(refused.code, Some(2), "{include}: {refused:?}");
        assert!(refused.stderr.contains("leave it out for all tools"), "{refused:?}");
    }
    crib.config("toolsets:\n  none: null\n");
    assert_eq!(
        crib.run(&["list"]).code,
        Some(2),
        "a toolset that is commented out is not all tools"
    );
}

#[test]
fn the_policy_of_a_client_has_rules_only_and_its_user_is_somebody() {
    let crib = Crib::new(&[]);
    let with = |own: &str| {
        let hash = format!("blake3:{}", "0".repeat(64));
        crib.config(&format!("server:\n  tokens:\n    a: {{hash: '{hash}', {own}}}\n"));
        crib.run(&["config", "show"])
    };
    for key in ["on_ask: deny", "mode: guarded"] {
        let refused = with(&format!("policy: {{{key}}}"));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("a client's policy has rules only"), "{refused:?}");
        assert!(refused.stderr.contains("write a rule with `action: deny`"), "{refused:?}");
    }
    for key in ["user", "tenant"] {
        let refused = with(&format!("context: {{{key}: null}}"));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(&format!("`{key}` must not be null")), "{refused:?}");
    }
    let good =
        with("policy: {rules: [{tool: bash, action: deny}]}, context: {user: ada, team: null}");
    assert_eq!(good.code, Some(0), "{good:?}");
}

#[test]
fn the_origin_of_the_state_folder_is_the_variable_that_decided_it() {
    let crib = Crib::new(&[]);
    let origin = |set: Option<&str>, home: bool| {
        let mut command = crib.command(&["config", "show", "--json"]);
        if let Some(folder) = set {
            command.env("STATE_DIRECTORY", folder);
        }
        if home {
            command.env_remove("XDG_STATE_HOME");
        }
        run(&mut command).json()["origins"]["state.dir"].clone()
    };
    assert_eq!(origin(None, false)["name"], "XDG_STATE_HOME");
    assert_eq!(origin(Some("/var/lib/toolcrib"), false)["name"], "STATE_DIRECTORY");
    assert_eq!(origin(None, true)["from"], "default");
    crib.config("state: {dir: state}\n");
    assert_eq!(origin(Some("/var/lib/toolcrib"), false)["from"], "file");
}

#[test]
fn a_folder_with_files_of_others_is_refused_as_a_state_folder() {
    let crib = Crib::new(&[]);
    let keys = crib.data().join("keys");
    fs::create_dir(&keys).expect("made");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o700)).expect("set");
    fs::write(keys.join("id_ed25519"), "").expect("written");
    crib.config(&format!("state: {{dir: '{}'}}\n", keys.display()));
    let refused = crib.run(&["call", "calculator", "expression=1"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("state.dir: ") && refused.stderr.contains("an empty folder"),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(&keys).expect("read").count(), 1);
    let doctor = crib.run(&["doctor"]);
    assert!(doctor.stdout.contains("files that are not toolcrib's state"), "{doctor:?}");
}

#[test]
fn check_says_what_makes_a_build_server_accept_a_tool_that_needs_trust() {
    let crib = Crib::new(&[]);
    crib.write(
        "services.yaml",
        "toolcrib: 1\ntools:\n  - name: restart\n    description: Restart the service.\n    run: {argv: \
         [echo]}\n    sandbox: {profile: trusted}\n",
    );
    let check = crib.run(&["check", "--strict"]);
    let help = "`manifests.trusted` in the config holds wherever the config is used, in CI as well";
    assert!(check.code == Some(1) && check.stderr.contains(help), "{check:?}");
    crib.config("manifests: {trusted: ['tools.d/services.yaml:restart']}\n");
    assert_eq!(crib.run(&["check", "--strict"]).code, Some(0));
}

#[test]
fn a_profile_inside_run_is_told_its_place() {
    let crib = Crib::new(&[(
        "a.yaml",
        "toolcrib: 1\ntools:\n  - name: a\n    description: Do it.\n    run: {argv: [echo], profile: trusted}\n",
    )]);
    let check = crib.run(&["check"]);
    assert!(check.stderr.contains("it belongs to `sandbox`, beside `run`"), "{check:?}");
}
