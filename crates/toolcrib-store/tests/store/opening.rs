//! Tests opening a database: who can read it, and what is refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toolcrib_core::run::RunStore as _;
use toolcrib_core::suspension::{StoreError, SuspensionStore as _};
use toolcrib_store::{Database, DatabaseError, Runs, Suspensions};

use crate::fixture::{on_disk, resolved, run, suspended};

#[tokio::test]
async fn stored_data_survives_reopening() {
    let (home, database) = on_disk();
    let (call, kept) = (suspended("ada", 1, 100), run("ada", 1));
    Suspensions::new(&database).put(&call).await.expect("there is room");
    Runs::new(&database).save(&kept).await.expect("it is new");
    drop(database);
    let database = Database::open(home.path()).expect("it is ours");
    let found = Suspensions::new(&database).find(call.id()).await.expect("found");
    assert_eq!(found, Some(call));
    let found = Runs::new(&database).load(kept.id()).await.expect("found");
    assert_eq!(found, Some(kept.with_version(1)));
}

#[tokio::test]
async fn all_database_files_are_private_to_their_owner() {
    let (home, database) = on_disk();
    Runs::new(&database).save(&run("ada", 1)).await.expect("it is new");
    let mut found = Vec::new();
    let mut look = vec![home.path().to_owned()];
    while let Some(folder) = look.pop() {
        for entry in std::fs::read_dir(folder).expect("it is ours") {
            let path = entry.expect("it is ours").path();
            let mode = path.metadata().expect("it is there").permissions().mode() & 0o777;
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{}", path.display());
            found.push(path.file_name().expect("named").to_string_lossy().into_owned());
            if path.is_dir() {
                look.push(path);
            }
        }
    }
    for name in ["toolcrib.db", "toolcrib.db-wal", "toolcrib.db-shm"] {
        assert!(found.contains(&name.to_owned()), "{found:?}");
    }
}

#[test]
fn a_damaged_file_is_refused_with_advice_and_left_unchanged() {
    let home = tempfile::tempdir().expect("there is room");
    let file = home.path().join("toolcrib.db");
    let text = "nothing of ours".repeat(100);
    std::fs::write(&file, &text).expect("it is ours");
    let error = Database::open(home.path()).expect_err("it is no database");
    assert!(matches!(error, DatabaseError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("move it away"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), text);
}

#[test]
fn a_symbolic_link_in_place_of_the_database_is_refused() {
    let home = tempfile::tempdir().expect("there is room");
    let (state, victim) = (home.path().join("state"), home.path().join("victim"));
    std::fs::create_dir(&state).expect("it is ours");
    std::fs::write(&victim, "").expect("it is ours");
    std::os::unix::fs::symlink(&victim, state.join("toolcrib.db")).expect("it is ours");
    Database::open(&state).expect_err("it is a link");
    assert_eq!(std::fs::read(&victim).expect("it is there"), b"");
}

#[tokio::test]
async fn an_unreadable_record_is_reported_and_kept_and_hides_no_other() {
    let (home, database) = on_disk();
    let store = Suspensions::new(&database);
    let (broken, whole) = (suspended("ada", 1, 100), suspended("ada", 2, 100));
    for one in [&broken, &whole] {
        store.put(one).await.expect("there is room");
    }
    let change = |path: &Path| {
        let other = rusqlite::Connection::open(path.join("toolcrib.db")).expect("it is ours");
        let sql = "UPDATE suspensions SET record = '{\"id\":' WHERE id = ?1";
        other.execute(sql, [broken.id().as_str()]).expect("it is there")
    };
    assert_eq!(change(home.path()), 1);
    for _ in 0..2 {
        for result in [
            store.find(broken.id()).await,
            store.take(broken.id(), &resolved(&broken, "bob", 1)).await,
        ] {
            let error = result.expect_err("it is broken");
            let StoreError::Corrupt { place, .. } = &error else { panic!("{error}") };
            assert!(place.contains(broken.id().as_str()) && place.contains("toolcrib.db"));
        }
    }
    assert_eq!(store.list("ada").await.expect("it works"), [whole]);
}
