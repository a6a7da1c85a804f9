//! Files that a run leaves behind, and texts that it hides: audit, state, secrets.

use serde_json::Value;

use crate::harness::crib::{Crib, run};
use crate::harness::server::{Server, command};

const STORY: &str = r#"
toolcrib: 1
tools:
  - name: story
    description: Print a long line. Read-only.
    annotations: {read_only: true}
    run: {argv: [printf, "the password is hunter2-secret and more"]}
"#;

#[test]
fn every_call_is_a_line_in_the_audit_log() {
    let crib = Crib::new(&[]);
    crib.config("audit: {file: audit.jsonl, arguments: redacted}\n");
    crib.run(&["call", "calculator", "expression=2+2"]);
    crib.run(&["call", "calculator", "expresion=2+2"]);
    crib.run(&["list"]);
    let text = std::fs::read_to_string(crib.path().join("audit.jsonl")).expect("it is written");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["success", "invalid_args"]);
    assert_eq!(lines[0]["arguments"]["expression"], "2+2");
}

#[test]
fn the_rest_of_a_long_output_is_read_by_the_next_run_from_the_state_directory() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("state: {dir: state}\noutput: {max_chars: 10}\n");
    let cut = crib.run(&["call", "story"]).stdout;
    let (_, rest) = cut.split_once(r#""handle":""#).expect("a handle");
    let handle = rest.split('"').next().expect("its end");
    let page = crib.run(&["call", "read_output", &format!("handle={handle}")]);
    assert_eq!(page.stdout, "the password is hunter2-secret and more\n", "{page:?}");
}

#[test]
fn inspection_commands_create_no_directories() {
    let crib = Crib::new(&[]);
    crib.config("state: {dir: state}\naudit: {file: audit.jsonl}\n");
    assert_eq!(crib.run(&["list"]).code, Some(0));
    assert_eq!(crib.run(&["show", "calculator"]).code, Some(0));
    assert!(!crib.path().join("state").exists() && !crib.path().join("audit.jsonl").exists());
}

#[test]
fn the_default_state_folder_is_made_by_calls_and_not_by_looking() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    for look in [
        &["list", "--all"][..],
        &["show", "story"],
        &["why", "story"],
        &["search", "line"],
        &["check"],
        &["export"],
        &["lock", "--check"],
        &["doctor"],
        &["config", "show"],
        &["call", "story", "--dry-run"],
    ] {
        crib.run(look);
        assert!(!crib.state_home().exists(), "{look:?}");
    }
    let shown = crib.run(&["config", "show"]).stdout;
    let line =
        shown.lines().find(|line| line.contains("state-home") || line.contains("/toolcrib/"));
    assert!(line.is_some(), "{shown}");
    assert_eq!(crib.run(&["call", "story"]).code, Some(0));
    assert_eq!(std::fs::read_dir(crib.state_home().join("toolcrib")).expect("made").count(), 1);
}

#[test]
fn commands_that_look_create_nothing_in_a_state_folder_without_a_database() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    assert_eq!(crib.run(&["call", "story"]).code, Some(0));
    let folder = std::fs::read_dir(crib.state_home().join("toolcrib")).expect("made");
    let folder = folder.map(|entry| entry.expect("an entry").path()).next().expect("one folder");
    for look in [
        &["list", "--all"][..],
        &["show", "story"],
        &["why", "story"],
        &["search", "line"],
        &["check"],
        &["status"],
        &["stats"],
        &["approvals"],
        &["runs", "list"],
        &["call", "story", "--dry-run"],
    ] {
        std::fs::remove_dir_all(&folder).expect("it is ours");
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&folder)
            .expect("made");
        let run = crib.run(look);
        let found = std::fs::read_dir(&folder).expect("it is there");
        let found: Vec<_> = found.map(|entry| entry.expect("an entry").file_name()).collect();
        assert_eq!(found, Vec::<std::ffi::OsString>::new(), "{look:?}: {run:?}");
    }
    let runs = crib.run(&["runs", "list"]);
    assert!(runs.code == Some(0) && runs.stderr.contains("there is no run yet"), "{runs:?}");
}

#[test]
fn an_unusable_default_state_folder_is_reported_and_skipped() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    std::fs::write(crib.state_home(), "a file").expect("written");
    let run = crib.run(&["call", "story"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("the default state folder cannot be used"), "{run:?}");
    crib.config("state: {dir: none}\n");
    let run = crib.run(&["call", "story"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
}

#[test]
fn a_readable_default_state_folder_is_made_private_with_a_message() {
    use std::os::unix::fs::PermissionsExt as _;
    let crib = Crib::new(&[("story.yaml", STORY)]);
    let folder = crib.home().join("service");
    std::fs::create_dir(&folder).expect("it is ours");
    let set = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&folder, mode).expect("it is ours");
    };
    let mode = || folder.metadata().expect("it is there").permissions().mode() & 0o777;
    let call = || {
        let mut command = crib.command(&["call", "story"]);
        command.env("STATE_DIRECTORY", &folder);
        run(&mut command)
    };
    // As systemd creates it.
    set(0o755);
    let called = call();
    assert_eq!((called.code, mode()), (Some(0), 0o700), "{called:?}");
    assert!(called.stderr.contains("had mode 755"), "{called:?}");
    assert!(folder.join("toolcrib.db").exists());
    // A folder with other content is left unchanged.
    std::fs::remove_dir_all(&folder).expect("it is ours");
    std::fs::create_dir(&folder).expect("it is ours");
    std::fs::write(folder.join("letter.txt"), "").expect("it is ours");
    set(0o755);
    let called = call();
    assert_eq!((called.code, mode()), (Some(0), 0o755), "{called:?}");
    assert!(called.stderr.contains("the default state folder cannot be used"), "{called:?}");
}

#[test]
fn a_state_folder_that_another_user_could_replace_is_refused_with_what_to_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let crib = Crib::new(&[("story.yaml", STORY)]);
    let shared = crib.path().join("shared");
    std::fs::create_dir(&shared).expect("it is ours");
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&shared, mode).expect("it is ours");
    crib.config("state: {dir: shared/state}\n");
    let run = crib.run(&["call", "story"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("who could replace the folder"), "{run:?}");
    assert!(run.stderr.contains("chmod go-w"), "{run:?}");
    let doctor = crib.run(&["doctor", "--json"]).json();
    let findings = doctor["findings"].as_array().expect("a list").iter();
    let state: Vec<_> = findings.filter(|one| one["about"] == "state").collect();
    assert_eq!(state[0]["verdict"], "failure", "{state:?}");
}

#[test]
fn state_directory_of_a_service_is_the_default() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    let folder = crib.home().join("service");
    let mut command = crib.command(&["call", "story"]);
    command.env("STATE_DIRECTORY", &folder);
    assert_eq!(run(&mut command).code, Some(0));
    assert!(folder.join("toolcrib.db").exists());
    assert!(!crib.state_home().exists());
}

#[test]
fn a_first_start_reports_that_nothing_is_pinned() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    let start = || {
        let mut command = crib.command(&["mcp"]);
        run(command.write_stdin("")).stderr
    };
    let said = "nothing is pinned in toolcrib.lock";
    assert!(start().contains(said), "{}", start());
    assert_eq!(crib.run(&["lock"]).code, Some(0));
    assert!(!start().contains(said));
}

#[test]
fn unusable_paths_are_reported_with_their_key() {
    let crib = Crib::new(&[]);
    crib.config("audit: {file: no/such/folder/audit.jsonl}\n");
    let run = crib.run(&["call", "calculator", "expression=1"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.starts_with("error: audit.file: the audit log no/such"), "{run:?}");
}

#[test]
fn secrets_are_masked_and_those_that_cannot_be_are_named() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("secrets:\n  token: {env: CRIB_TOKEN}\n  brief: {env: CRIB_SHORT}\n  gone: {env: CRIB_ABSENT}\n");
    let mut command = crib.command(&["call", "story"]);
    command.env("CRIB_TOKEN", "hunter2-secret").env("CRIB_SHORT", "abc").env_remove("RUST_LOG");
    let run = run(&mut command);
    assert_eq!(run.stdout, "the password is [masked] and more\n");
    let brief = run.stderr.lines().find(|line| line.contains("brief"));
    let is_named =
        brief.is_some_and(|line| line.contains("too short to be masked: give it 4 bytes or more"));
    assert!(is_named, "{run:?}");
    // A missing secret hides nothing: `check` reports it, and so does a server when it starts.
    let check = crib.run(&["check"]);
    let missing = "the secret `gone` is missing: the variable `CRIB_ABSENT` is not set";
    assert!(check.stderr.contains(missing), "{check:?}");
    for stderr in [&run.stderr, &check.stderr] {
        assert!(!stderr.contains("abc") && !stderr.contains("hunter2"), "{stderr}");
    }
}

#[test]
fn a_server_that_starts_reports_the_secrets_that_are_missing_and_no_others() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("secrets:\n  token: {env: CRIB_TOKEN}\n  gone: {env: CRIB_ABSENT}\n");
    let log = crib.path().join("log");
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.arg("mcp").env("CRIB_TOKEN", "hunter2-secret").env_remove("RUST_LOG");
    let file = std::fs::File::create(&log).expect("it is ours");
    let mut server = Server::spawn_with_log(&crib, command, file.into()).greeted();
    server.close_input();
    assert_eq!(server.ended(), Some(0));
    let log = std::fs::read_to_string(&log).expect("it is ours");
    assert!(log.contains("the secret `gone` is missing"), "{log}");
    assert!(!log.contains("`token` is missing"), "{log}");
}

#[test]
fn root_uses_no_state_folder_that_another_user_could_change() {
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("state: {dir: own}\n");
    let own = crib.path().join("own");
    std::fs::create_dir(&own).expect("it is ours");
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    std::fs::set_permissions(&own, mode).expect("it is ours");
    if std::os::unix::fs::chown(&own, Some(65_534), Some(65_534)).is_err() {
        // Only root can change the owner of folders.
        return;
    }
    let called = crib.run(&["call", "story"]);
    assert!(
        called.code != Some(0) && called.stderr.contains("belongs to another user"),
        "{called:?}"
    );
    assert!(called.stderr.contains("run this as that user"), "{called:?}");
    let doctor = crib.run(&["doctor"]);
    assert!(doctor.stdout.contains("belongs to another user"), "{doctor:?}");
}

#[test]
fn root_starts_nothing_that_another_user_trusted_in_a_state_folder() {
    let tool = "toolcrib: 1\ntools:\n  - name: mark\n    description: Marks.\n    \
                annotations: {read_only: true}\n    sandbox: {profile: trusted}\n    \
                run: {argv: [touch, ran.txt]}\n    tests: [{name: runs, args: {}, expect: {}}]\n";
    let upstream = "toolcrib: 1\nupstream:\n  - {name: ups, command: [touch, ups.txt], \
                    sandbox: {profile: trusted}}\n";
    let crib = Crib::new(&[("mark.yaml", tool), ("ups.yaml", upstream)]);
    crib.config("state: {dir: own}\n");
    let own = crib.path().join("own");
    std::fs::create_dir(&own).expect("it is ours");
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    std::fs::set_permissions(&own, mode).expect("it is ours");
    for file in ["tools.d/mark.yaml", "tools.d/ups.yaml"] {
        let trusted = crib.run(&["trust", "--yes", file]);
        assert_eq!(trusted.code, Some(0), "{trusted:?}");
    }
    if std::os::unix::fs::chown(&own, Some(65_534), Some(65_534)).is_err() {
        // Only root can change the owner of folders.
        return;
    }
    let commands: [&[&str]; 6] = [
        &["test"],
        &["lock"],
        &["lock", "--diff"],
        &["doctor", "--connect"],
        &["list", "--connect"],
        &["search", "mark", "--connect"],
    ];
    for command in commands {
        let run = crib.run(command);
        assert_ne!(run.code, Some(0), "{run:?}");
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains("belongs to another user"), "{run:?}");
    }
    for started in ["ran.txt", "ups.txt", "workspace/ran.txt", "workspace/ups.txt"] {
        assert!(!crib.path().join(started).exists(), "{started}");
    }
}

#[test]
fn a_state_folder_that_others_could_replace_is_refused_and_what_a_container_needs_is_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("state: {dir: volume/state}\n");
    let volume = crib.path().join("volume");
    let set = |folder: &std::path::Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder, mode).expect("it is ours");
    };
    std::fs::create_dir(&volume).expect("it is ours");
    set(&volume, 0o777);
    let called = crib.run(&["call", "story"]);
    assert!(called.code != Some(0) && called.stderr.contains("every user"), "{called:?}");
    assert!(called.stderr.contains("emptyDir") && called.stderr.contains("chmod +t"), "{called:?}");
    set(&volume, 0o1777);
    assert_eq!(crib.run(&["call", "story"]).code, Some(0));
}

#[test]
fn a_start_removes_the_sockets_of_servers_that_were_killed() {
    use std::os::unix::net::UnixListener;
    let crib = Crib::new(&[("story.yaml", STORY)]);
    crib.config("state: {dir: state}\n");
    assert_eq!(crib.run(&["call", "story"]).code, Some(0));
    let control = crib.path().join("state/control");
    let _ = std::fs::create_dir(&control);
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    std::fs::set_permissions(&control, mode).expect("it is ours");
    for name in ["999999999.sock", "999999998.1.sock"] {
        drop(UnixListener::bind(control.join(name)).expect("bound"));
    }
    let living = UnixListener::bind(control.join("999999997.sock")).expect("bound");
    std::fs::write(control.join("note.txt"), "").expect("written");
    let _server = Server::mcp(&crib);
    let names: Vec<_> = std::fs::read_dir(&control)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned())
        .collect();
    let has = |name: &str| names.iter().any(|own| own == name);
    assert!(!has("999999999.sock") && !has("999999998.1.sock"), "{names:?}");
    assert!(has("999999997.sock") && has("note.txt"), "{names:?}");
    drop(living);
}
