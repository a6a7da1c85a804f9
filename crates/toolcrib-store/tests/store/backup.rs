//! A backup that is made under load begins a server whose calls are done once or are unknown.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::RunStore as _;
use toolcrib_core::suspension::{Settled, SuspensionStore as _};
use toolcrib_store::{Database, DatabaseError, Runs, Suspensions, back_up, restore};
use toolcrib_tool::ErrorKind;

use crate::fixture::{on_disk, resolved, run, suspended};

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_is_whole_and_what_ran_then_has_an_unknown_outcome() {
    let (home, database) = on_disk();
    let (suspensions, runs) = (Suspensions::new(&database), Runs::new(&database));
    let (waits, ran) = (suspended("ada", 1, u64::MAX), suspended("ada", 1, u64::MAX));
    for call in [&waits, &ran] {
        suspensions.put(call).await.expect("there is room");
    }
    let taken = suspensions.take_for_caller(ran.id(), &resolved(&ran, "bob", 5)).await;
    let running = Settled::running(
        taken.expect("it works").expect("it waits"),
        Timestamp::from_unix_millis(5),
    );
    let before = run("ada", 1);
    runs.save(&before).await.expect("there is room");

    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn({
        let (database, stop) = (database.clone(), Arc::clone(&stop));
        async move {
            let suspensions = Suspensions::new(&database);
            let mut made = 0;
            while !stop.load(Ordering::Relaxed) {
                suspensions.put(&suspended("bob", made, u64::MAX)).await.expect("there is room");
                made += 1;
                if made > 500 {
                    break;
                }
            }
            made
        }
    });
    let file = home.path().join("backup.db");
    let (from, to) = (home.path().to_owned(), file.clone());
    let backed_up = tokio::task::spawn_blocking(move || back_up(&from, &to)).await;
    let bytes = backed_up.expect("no panic").expect("it works while the server runs");
    stop.store(true, Ordering::Relaxed);
    assert!(load.await.expect("no panic") > 0);
    let found = file.metadata().expect("it is there");
    assert_eq!((found.len(), found.permissions().mode() & 0o777), (bytes, 0o600));
    assert_eq!(unfinished(home.path()), 0);
    let again = back_up(home.path(), &file).expect_err("no file is replaced");
    assert!(again.to_string().contains("name a new file"), "{again}");

    // The first server goes on with what has happened since.
    let ended = running.lost(None);
    suspensions.settle(&ended).await.expect("it is the taker");
    let refused = restore(home.path(), &file).expect_err("a server uses it");
    assert!(matches!(refused, DatabaseError::InUse { .. }), "{refused}");

    let other = tempfile::tempdir().expect("there is room");
    restore(other.path(), &file).expect("nobody uses it");
    let restored = Database::open(other.path()).expect("it is sound");
    let suspensions = Suspensions::new(&restored);
    let found = suspensions.find(waits.id()).await.expect("it works");
    assert_eq!(found.as_ref(), Some(&waits), "it waits on");
    assert_eq!(suspensions.find(ran.id()).await.expect("it works"), None, "nobody can approve it");
    let outcome = suspensions.settled(ran.id()).await.expect("it works").expect("it is known");
    let kind = outcome.result().and_then(|result| result.error_kind());
    assert_eq!(kind, Some(ErrorKind::OutcomeUnknown));
    let runs = Runs::new(&restored);
    assert!(runs.load(before.id()).await.expect("it works").is_some());
}

/// The number of unfinished backups in a folder.
fn unfinished(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "part")).count()
}

#[tokio::test]
async fn a_backup_removes_what_a_killed_one_has_left_and_nothing_that_another_one_writes() {
    let (home, _database) = on_disk();
    let folder = tempfile::tempdir().expect("there is room");
    let create =
        |name: &str| std::fs::File::create_new(folder.path().join(name)).expect("there is room");
    let (abandoned, of_another) = (".toolcrib-backup-7-0.part", ".toolcrib-backup-8-0.part");
    // With this name, its own process may have been killed, too.
    let with_own_name = format!(".toolcrib-backup-{}-0.part", std::process::id());
    drop((create(abandoned), create(&with_own_name), create("notes.part")));
    let journals = [abandoned, ".toolcrib-backup-9-0.part"].map(|name| format!("{name}-journal"));
    for name in &journals {
        drop(create(name));
    }
    drop(create(&format!("{of_another}-journal")));
    let locked = create(of_another);
    locked.try_lock().expect("nobody else has it");
    back_up(home.path(), &folder.path().join("1.db")).expect("it works");
    assert!(folder.path().join(of_another).exists(), "another backup writes it");
    assert!(folder.path().join("notes.part").exists(), "it is no backup");
    assert_eq!(unfinished(folder.path()), 2);
    let is_there = |name: &String| folder.path().join(name).exists();
    assert!(!journals.iter().any(is_there) && is_there(&format!("{of_another}-journal")));
    drop(locked);
    back_up(home.path(), &folder.path().join("2.db")).expect("it works");
    assert_eq!(unfinished(folder.path()), 1);
}

#[tokio::test]
async fn a_restore_keeps_what_was_there_and_takes_nothing_that_is_damaged_or_foreign() {
    let (home, database) = on_disk();
    let call = suspended("ada", 1, u64::MAX);
    Suspensions::new(&database).put(&call).await.expect("there is room");
    let file = home.path().join("backup.db");
    back_up(home.path(), &file).expect("it works");
    let later = suspended("ada", 2, u64::MAX);
    Suspensions::new(&database).put(&later).await.expect("there is room");
    drop(database);

    let wrong = home.path().join("wrong");
    std::fs::write(&wrong, "no database").expect("it is ours");
    let error = loop {
        // The server's threads end a moment after the last handle.
        match restore(home.path(), &wrong).expect_err("it is damaged") {
            DatabaseError::InUse { .. } => tokio::task::yield_now().await,
            error => break error,
        }
    };
    let text = error.to_string();
    assert!(text.contains("wrong: this file is no database") && !text.contains("-wal"), "{text}");
    let foreign = home.path().join("foreign");
    let other = rusqlite::Connection::open(&foreign).expect("it is ours");
    other.execute_batch("CREATE TABLE theirs (x)").expect("it is ours");
    drop(other);
    let error = restore(home.path(), &foreign).expect_err("it is another program's");
    assert!(matches!(error, DatabaseError::Foreign { .. }), "{error}");
    let bytes = std::fs::read(&file).expect("it is there");
    std::fs::write(&wrong, &bytes[..bytes.len() / 2]).expect("it is ours");
    restore(home.path(), &wrong).expect_err("it is half a backup");

    loop {
        match restore(home.path(), &file) {
            Err(DatabaseError::InUse { .. }) => tokio::task::yield_now().await,
            restored => break restored.expect("it works"),
        }
    }
    let kept = home.path().join("toolcrib.db-before-restore");
    let old = rusqlite::Connection::open(kept).expect("it is there");
    let calls: i64 = old
        .query_row("SELECT count(*) FROM suspensions", [], |row| row.get(0))
        .expect("it is whole");
    assert_eq!(calls, 2, "also what was only in the log");
    let database = Database::open(home.path()).expect("it is sound");
    let all = Suspensions::new(&database).all().await.expect("it works");
    assert_eq!(all, std::slice::from_ref(&call));
}

#[tokio::test]
async fn a_restore_takes_no_file_that_others_may_change_and_follows_no_link() {
    let (home, database) = on_disk();
    let call = suspended("ada", 1, u64::MAX);
    Suspensions::new(&database).put(&call).await.expect("there is room");
    let file = home.path().join("backup.db");
    back_up(home.path(), &file).expect("it works");
    let other = tempfile::tempdir().expect("there is room");
    let refused = |file: &Path, why: &str| {
        let error = restore(other.path(), file).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
        assert!(!other.path().join("toolcrib.db").exists());
    };
    let link = home.path().join("link.db");
    std::os::unix::fs::symlink(&file, &link).expect("it is ours");
    refused(&link, "symbolic link");
    let fifo = home.path().join("fifo");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).expect("it is ours");
    refused(&fifo, "not a regular file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
    refused(&file, "other users may change this file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    // Only root can give a file away.
    if std::os::unix::fs::chown(&file, Some(65_534), None).is_ok() {
        refused(&file, "other users may change this file");
        std::os::unix::fs::chown(&file, Some(0), None).expect("this is root");
        std::os::unix::fs::chown(other.path(), Some(65_534), None).expect("this is root");
        back_up(home.path(), &other.path().join("b.db")).expect_err("the folder is another's");
        std::os::unix::fs::chown(other.path(), Some(0), None).expect("this is root");
    }
    restore(other.path(), &file).expect("nobody else may change it");
}
