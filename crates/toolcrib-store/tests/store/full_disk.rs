//! Tests a full disk: every failed change is reported, and earlier data stays intact.
//!
//! The disk is a file system of one megabyte in memory, mounted for a child process of this test only. On machines
//! where users cannot mount, a limit on file sizes takes its place.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use toolcrib_core::run::RunStore as _;
use toolcrib_core::spill::{Owner, SpillLimits, SpillStore as _, Spilled};
use toolcrib_core::suspension::{StoreError, SuspensionStore as _};
use toolcrib_store::{Database, DatabaseError, Kept, Retention, Runs, Spills, Suspensions};
use toolcrib_tool::ContextValues;

use crate::fixture::{resolved, run, suspended};

/// The variable that names the folder of the small disk for the child process.
const FOLDER: &str = "TOOLCRIB_STORE_FULL_DISK";

/// The database error behind a failure.
fn cause(error: &StoreError) -> &DatabaseError {
    let StoreError::Failed { source, .. } = error else { panic!("{error}") };
    source.downcast_ref().unwrap_or_else(|| panic!("{error}"))
}

/// Runs only in the child process: fills the disk, and makes room again.
#[tokio::test]
async fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 300 * 1024]).expect("there is room for it");
    let database = Database::open(folder).expect("there is room for it");
    let (suspensions, runs) = (Suspensions::new(&database), Runs::new(&database));
    let mut kept = Vec::new();
    let error = loop {
        let call = suspended("ada", 1, u64::MAX);
        match suspensions.put(&call).await {
            Ok(()) => kept.push(call),
            Err(error) => break error,
        }
        assert!(kept.len() < 5_000, "the disk is never full");
    };
    let text = error.to_string();
    match cause(&error) {
        DatabaseError::DiskFull { .. } => assert!(text.contains("free some space"), "{text}"),
        DatabaseError::Disk { .. } => assert!(text.contains("limit on file sizes"), "{text}"),
        other => panic!("{other}"),
    }
    assert!(text.contains("toolcrib.db"), "{text}");
    // Existing data can be read, and later changes may succeed.
    assert_eq!(suspensions.all().await.expect("it can be read").len(), kept.len());
    let mut failed = 0;
    for created in 0..5 {
        failed += usize::from(runs.save(&run("ada", created)).await.is_err());
    }
    assert!(failed > 0);
    std::fs::remove_file(&ballast).expect("it is ours");
    if matches!(cause(&error), DatabaseError::DiskFull { .. }) {
        suspensions.put(&suspended("ada", 1, u64::MAX)).await.expect("there is room again");
        let taken = suspensions
            .take(kept[0].id(), &resolved(&kept[0], "bob", 1))
            .await
            .expect("there is room again");
        assert_eq!(taken.as_ref(), Some(&kept[0]));
    }
    drop(database);
    let file = rusqlite::Connection::open(folder.join("toolcrib.db")).expect("it is ours");
    let sound: String =
        file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("it can be read");
    assert_eq!(sound, "ok");
    std::io::stdout().write_all(b"whole\n").expect("the test listens");
}

/// The variable that names the folder of the small disk for the child process that removes old entries.
const OLD: &str = "TOOLCRIB_STORE_FULL_DISK_OF_OLD";

/// Runs only in the child process: fills the disk with outputs that become too old, and others' files.
#[tokio::test]
async fn child_with_old_entries() {
    let Some(folder) = std::env::var_os(OLD) else { return };
    let folder = Path::new(&folder);
    let database = Database::open(folder).expect("there is room for it");
    let mut limits = SpillLimits::default();
    limits.ttl = Duration::MAX;
    let spills = Spills::new(&database, limits);
    let ada = Owner::of(&ContextValues::new().with("user", "ada"), None);
    for _ in 0..20 {
        let text = "x".repeat(100_000);
        spills.put(&ada, Spilled::text(text)).await.expect("there is room");
    }
    // The first sweep reserves space.
    database.sweep().await.expect("there is room");
    assert!(folder.join("toolcrib.db-reserve").exists());
    let mut ballast = std::fs::File::create(folder.join("ballast")).expect("there is room");
    while ballast.write_all(&[1; 4096]).is_ok() {}
    while ballast.write_all(&[1]).is_ok() {}
    let suspensions = Suspensions::new(&database);
    let mut failed = None;
    for _ in 0..5_000 {
        if let Err(error) = suspensions.put(&suspended("ada", 1, u64::MAX)).await {
            failed = Some(error);
            break;
        }
    }
    let error = failed.expect("the disk is full");
    assert!(matches!(cause(&error), DatabaseError::DiskFull { .. }), "{error}");
    assert!(matches!(database.trouble(), Some(DatabaseError::DiskFull { .. })));
    let before = suspensions.all().await.expect("it can be read").len();
    // The background thread tries again, and has nothing to remove yet.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(folder.join("toolcrib.db-reserve").exists(), "the space is kept for a removal");
    assert!(database.trouble().is_some());

    let mut retention = Retention::default();
    retention.outputs = Kept::new(Some(Duration::from_millis(1)), None);
    database.keep(retention);
    database.sweep().await.expect("the reserved space is enough");
    let report = database.report().expect("it can be read");
    let outputs = report.kinds.iter().find(|own| own.kind == "outputs").expect("a kind");
    assert_eq!(outputs.entries, 0, "{report:?}");
    suspensions.put(&suspended("ada", 1, u64::MAX)).await.expect("there is room again");
    assert_eq!(suspensions.all().await.expect("it works").len(), before + 1);
    assert_eq!(database.trouble(), None);
    std::io::stdout().write_all(b"whole\n").expect("the test listens");
}

/// The variable that names the folder of the small disk for the processes of which the first is killed.
const KILLED: &str = "TOOLCRIB_STORE_FULL_DISK_KILLED";

fn fill(folder: &Path) {
    let mut ballast = std::fs::File::create(folder.join("ballast")).expect("there is room");
    while ballast.write_all(&[1; 4096]).is_ok() {}
    while ballast.write_all(&[1]).is_ok() {}
}

/// Stores calls until the disk is full. Returns how many.
async fn until_full(suspensions: &Suspensions) -> usize {
    for stored in 0..5_000 {
        if let Err(error) = suspensions.put(&suspended("ada", 1, u64::MAX)).await {
            assert!(matches!(cause(&error), DatabaseError::DiskFull { .. }), "{error}");
            return stored;
        }
    }
    panic!("the disk is never full")
}

/// Runs only in a child process: stores calls, fills the disk and ends without a word.
#[tokio::test]
async fn child_that_is_killed() {
    let Some(folder) = std::env::var_os(KILLED) else { return };
    let folder = Path::new(&folder);
    let database = Database::open(folder).expect("there is room for it");
    let reserve = folder.join("toolcrib.db-reserve");
    assert!(reserve.exists(), "it is there before the first change");
    let suspensions = Suspensions::new(&database);
    suspensions.put(&suspended("ada", 1, u64::MAX)).await.expect("there is room");
    if std::env::var_os("WITHOUT_RESERVE").is_some() {
        std::fs::remove_file(&reserve).expect("it is there");
    }
    fill(folder);
    until_full(&suspensions).await;
    std::process::abort();
}

/// Runs only in a child process: opens the database that a killed one left on a full disk.
#[tokio::test]
async fn child_after_the_killed_one() {
    let Some(folder) = std::env::var_os(KILLED) else { return };
    let folder = Path::new(&folder);
    let database = Database::open(folder).expect("reading needs no room");
    let suspensions = Suspensions::new(&database);
    let before = suspensions.all().await.expect("it can be read").len();
    assert!(before > 0);
    let before = before + until_full(&suspensions).await;
    assert!(matches!(database.trouble(), Some(DatabaseError::DiskFull { .. })));
    database.keep(Retention::default());
    std::fs::remove_file(folder.join("ballast")).expect("it is there");
    // The background thread registers the server within a few seconds, and nobody has to call.
    for _ in 0..100 {
        if database.trouble().is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(database.trouble(), None);
    suspensions.put(&suspended("ada", 2, u64::MAX)).await.expect("there is room again");
    assert_eq!(suspensions.all().await.expect("it can be read").len(), before + 1);
    let locks = std::fs::read_dir(folder.join("servers")).expect("a folder").count();
    assert_eq!(locks, 1, "failed registrations leave no locks");
    std::io::stdout().write_all(b"whole\n").expect("the test listens");
}

#[test]
fn after_a_kill_a_database_on_a_full_disk_opens_reads_and_recovers_by_itself() {
    for without_reserve in [false, true] {
        let home = tempfile::tempdir().expect("there is room");
        let run = "--exact --nocapture --test-threads=1";
        let script = format!(
            "mount -t tmpfs -o size=24m,mode=0700 none \"$DISK\" && {{ \"$0\" \
             full_disk::child_that_is_killed {run}; exec \"$0\" full_disk::child_after_the_killed_one {run}; }}"
        );
        let own = std::env::current_exe().expect("it runs");
        let mut shell = Command::new("unshare");
        shell.args(["-Urm", "sh", "-c", &script]).arg(own);
        shell.env(KILLED, home.path()).env("DISK", home.path());
        if without_reserve {
            shell.env("WITHOUT_RESERVE", "1");
        }
        let output = shell.output().expect("there is a shell");
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("unshare failed") || stderr.contains("mount:") {
            println!("skipped: this machine mounts no file system for a test");
            return;
        }
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("whole"), "{output:?}");
    }
}

#[test]
fn old_entries_are_removed_and_make_room_while_the_disk_is_full() {
    let home = tempfile::tempdir().expect("there is room");
    let mount = "mount -t tmpfs -o size=24m,mode=0700 none \"$DISK\"";
    let script = format!(
        "{mount} && exec \"$0\" full_disk::child_with_old_entries --exact --nocapture --test-threads=1"
    );
    let own = std::env::current_exe().expect("it runs");
    let mut shell = Command::new("unshare");
    shell.args(["-Urm", "sh", "-c", &script]).arg(own);
    let output = shell.env(OLD, home.path()).env("DISK", home.path()).output();
    let output = output.expect("there is a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unshare failed") || stderr.contains("mount:") {
        println!("skipped: this machine mounts no file system for a test");
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("whole"), "{output:?}");
}

/// Runs the child under a shell that has limited its disk.
fn child_after(shell: &mut Command, folder: &Path, script: &str) -> Output {
    let script =
        format!("{script} && exec \"$0\" full_disk::child --exact --nocapture --test-threads=1");
    let own = std::env::current_exe().expect("it runs");
    shell.args(["sh", "-c", &script]).arg(own).env(FOLDER, folder).env("DISK", folder);
    shell.output().expect("there is a shell")
}

#[test]
fn a_full_disk_is_reported_corrupts_nothing_and_is_recoverable() {
    let home = tempfile::tempdir().expect("there is room");
    let mut shell = Command::new("unshare");
    shell.arg("-Urm");
    let mount = "mount -t tmpfs -o size=1m,mode=0700 none \"$DISK\"";
    let mut output = child_after(&mut shell, home.path(), mount);
    if String::from_utf8_lossy(&output.stderr).contains("unshare failed")
        || String::from_utf8_lossy(&output.stderr).contains("mount:")
    {
        let limit = "trap '' XFSZ; ulimit -f 1024";
        output = child_after(&mut Command::new("env"), home.path(), limit);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("whole"), "{output:?}");
}

#[test]
fn a_file_size_limit_is_reported_and_corrupts_nothing() {
    let home = tempfile::tempdir().expect("there is room");
    let limit = "trap '' XFSZ; ulimit -f 1024";
    let output = child_after(&mut Command::new("env"), home.path(), limit);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("whole"), "{output:?}");
}
