//! Starting, failing to start, and telling how it ended.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use toolcrib_sandbox::{Command, SpawnError, Status, find_program};

use crate::{finish, sh, try_finish};

#[tokio::test]
async fn exit_codes_and_signals_are_told_as_they_were() {
    assert_eq!(finish(Command::new("true")).await.status, Status::Exited(0));
    assert_eq!(finish(sh("exit 7")).await.status, Status::Exited(7));
    assert_eq!(finish(sh("exit 255")).await.status, Status::Exited(255));
    let killed = finish(sh("kill -KILL $$")).await;
    assert_eq!(killed.status, Status::Signaled(9));
    assert_eq!(killed.status.signal_name(), Some("SIGKILL"));
    assert!(!killed.stopped && !killed.kill.forced);
}

#[tokio::test]
async fn a_missing_program_is_named_with_the_path_searched() {
    let command = Command::new("no-such-tool").env("PATH", "/usr/bin:/bin");
    let error = try_finish(command).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the program `no-such-tool` was not found; PATH searched: /usr/bin:/bin"
    );
}

#[tokio::test]
async fn programs_are_looked_up_on_the_path_the_program_will_have() {
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("my-tool");
    fs::write(&tool, "#!/bin/sh\necho mine\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(try_finish(Command::new("my-tool")).await.is_err());
    let path = format!("{}:/bin", folder.path().display());
    assert_eq!(finish(Command::new("my-tool").env("PATH", path)).await.stdout.text(), "mine\n");
    // A name with a slash is a path, relative to the working directory.
    let relative = Command::new("./my-tool").cwd(folder.path());
    assert_eq!(finish(relative).await.stdout.text(), "mine\n");
}

#[tokio::test]
async fn a_missing_working_directory_is_not_taken_for_a_missing_program() {
    let error = try_finish(Command::new("true").cwd("/no/such/folder")).await.unwrap_err();
    assert!(matches!(error, SpawnError::WorkingDirectory { .. }), "{error:?}");
    assert!(error.to_string().contains("`/no/such/folder` cannot be used"), "{error}");
    let error = try_finish(Command::new("true").cwd("/dev/null")).await.unwrap_err();
    assert!(matches!(error, SpawnError::WorkingDirectory { .. }), "{error:?}");
}

#[tokio::test]
async fn the_program_starts_in_its_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let text = finish(Command::new("pwd").cwd(folder.path())).await.stdout.text();
    assert_eq!(text.trim_end(), folder.path().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn a_script_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, reason) in [
        ("plain", "echo hi\n", "neither a program nor a script"),
        ("orphan", "#!/no/such/interpreter\n", "interpreter or loader it names is missing"),
    ] {
        let tool = folder.path().join(name);
        fs::write(&tool, text).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let error = try_finish(Command::new(&tool)).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_program_is_found_on_the_servers_path() {
    assert!(find_program("sh").unwrap().is_absolute());
    assert!(find_program("no-such-tool").is_err());
    assert!(find_program("").is_err());
}
