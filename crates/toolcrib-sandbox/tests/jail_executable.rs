//! Which file is the helper, whatever becomes of it, and helpers that do not answer.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::future::pending;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use toolcrib_sandbox::jail::{has_helper, open_helper, set_helper};
use toolcrib_sandbox::{
    Command, Confinement, Profile, SpawnError, Status, run, run_blocking, spawn,
};

const LIMIT: Duration = Duration::from_secs(60);

/// A process has one helper, so each test is a process of its own.
fn apart(name: &str) -> bool {
    if std::env::var_os("TOOLCRIB_TEST_APART").is_some() {
        return true;
    }
    let test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", name])
        .env("TOOLCRIB_TEST_APART", "1");
    let finished = run_blocking(test, LIMIT).unwrap();
    let (out, error) = (finished.stdout.text(), finished.stderr.text());
    assert_eq!(finished.status, Status::Exited(0), "{out}\n{error}");
    assert!(out.contains("1 passed"), "{out}");
    false
}

fn program(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn echo() -> Command {
    Command::new("/bin/echo").arg("confined").confine(Confinement::new(Profile::Workspace))
}

#[test]
fn what_stands_at_the_helpers_path_later_is_not_started() {
    if !apart("what_stands_at_the_helpers_path_later_is_not_started") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("toolcrib-jail");
    let other_name = folder.path().join("deps");
    fs::copy(std::env::current_exe().unwrap(), &helper).unwrap();
    fs::hard_link(&helper, &other_name).unwrap();
    assert!(set_helper(&helper));
    assert!(open_helper());
    let marker = folder.path().join("ran");
    let evil = format!("#!/bin/sh\necho unconfined > {}\n", marker.display());
    // In place, by its other name, and by another file of its name.
    program(&other_name, &evil);
    let finished = run_blocking(echo(), LIMIT).unwrap();
    assert_eq!(finished.stdout.text(), "confined\n", "{finished:?}");
    assert!(finished.enforced.syscalls, "{}", finished.enforced);
    fs::remove_file(&helper).unwrap();
    program(&helper, &evil);
    assert_eq!(run_blocking(echo(), LIMIT).unwrap().stdout.text(), "confined\n");
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(run_blocking(echo(), LIMIT).unwrap().stdout.text(), "confined\n");
    assert!(!marker.exists());
}

#[test]
fn without_a_helper_nothing_is_confined_until_there_is_one() {
    if !apart("without_a_helper_nothing_is_confined_until_there_is_one") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("toolcrib-jail");
    assert!(set_helper(&helper));
    assert!(!open_helper() && !has_helper());
    let error = run_blocking(echo(), LIMIT).unwrap_err();
    assert!(matches!(error, SpawnError::NoHelper { .. }), "{error}");
    assert!(Confinement::new(Profile::Workspace).check().unwrap_err().contains("toolcrib-jail"));
    fs::copy(std::env::current_exe().unwrap(), &helper).unwrap();
    assert_eq!(run_blocking(echo(), LIMIT).unwrap().stdout.text(), "confined\n");
}

#[test]
fn a_helper_that_does_not_answer_delays_no_check() {
    if !apart("a_helper_that_does_not_answer_delays_no_check") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("toolcrib-jail");
    program(&helper, "#!/bin/sh\nexec sleep 300\n");
    assert!(set_helper(&helper));
    let withheld = folder.path().join("withheld");
    fs::write(&withheld, "").unwrap();
    let confinement = Confinement::new(Profile::Workspace).write(folder.path()).hide(withheld);
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(confinement.check(), Ok(()));
    }
    let took = start.elapsed();
    assert!(took > Duration::from_millis(400), "the helper was not asked: {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_start_that_does_not_come_about_is_given_up_and_holds_up_nobody() {
    if !apart("a_start_that_does_not_come_about_is_given_up_and_holds_up_nobody") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("toolcrib-jail");
    let number = folder.path().join("number");
    // As one that opens a file which does not answer.
    program(&helper, &format!("#!/bin/sh\necho $$ > {}\nexec sleep 300\n", number.display()));
    assert!(set_helper(&helper));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let start = Instant::now();
        let mut turns = 0;
        let command = echo();
        let mut starts =
            std::pin::pin!(async { tokio::join!(run(echo(), pending()), spawn(&command)) });
        let (ran, kept) = loop {
            tokio::select! {
                biased;
                started = &mut starts => break started,
                () = tokio::time::sleep(Duration::from_millis(20)) => turns += 1,
            }
        };
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert!(turns > 100, "the runtime's only thread took {turns} turns meanwhile");
        for error in [ran.unwrap_err(), kept.unwrap_err()] {
            assert!(matches!(error, SpawnError::Late { .. }), "{error}");
            assert!(error.to_string().contains("was not started within 10s"), "{error}");
        }
    });
    let number = fs::read_to_string(number).unwrap();
    let process = format!("/proc/{}/cmdline", number.trim());
    let ended = Instant::now() + Duration::from_secs(5);
    // A zombie has no command line any more.
    while fs::read(&process).is_ok_and(|words| !words.is_empty()) {
        assert!(Instant::now() < ended, "the helper is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}
