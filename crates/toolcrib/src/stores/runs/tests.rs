//! What the files of runs promise.

use serde_json::json;

use super::*;

fn record(identity: &str) -> RunRecord {
    let id = RunId::random().expect("there is randomness");
    serde_json::from_value(json!({
        "id": id.as_str(), "identity": identity, "created_at": 1, "version": 0, "slots": [],
    }))
    .expect("it is a record")
}

#[tokio::test]
async fn a_run_is_loaded_as_it_was_saved_and_forgotten_when_removed() {
    let home = tempfile::tempdir().expect("there is room");
    let dir = home.path().join("runs");
    let run = record("ada");
    let version = FileRuns::open(&dir).expect("it is ours").save(&run).await;
    assert_eq!(version.expect("it is new"), 1);

    let store = FileRuns::open(&dir).expect("it is ours");
    let kept = run.clone().with_version(1);
    assert_eq!(store.load(run.id()).await.expect("it works"), Some(kept.clone()));
    assert_eq!(store.list("ada").await.expect("it works"), [kept]);
    assert_eq!(store.list("").await.expect("it works"), []);
    store.remove(run.id()).await.expect("it works");
    assert_eq!(store.load(run.id()).await.expect("it works"), None);
    store.remove(run.id()).await.expect("it is gone already");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_that_save_one_version_one_succeeds() {
    let home = tempfile::tempdir().expect("there is room");
    let dir = home.path().join("runs");
    let run = record("");
    let savers: Vec<_> = (0..8)
        .map(|_| {
            let (store, run) = (FileRuns::open(&dir).expect("it is ours"), run.clone());
            tokio::spawn(async move { store.save(&run).await })
        })
        .collect();
    let mut saved = 0;
    for saver in savers {
        match saver.await.expect("nobody panics") {
            Ok(version) => {
                assert_eq!(version, 1);
                saved += 1;
            }
            Err(error) => assert!(matches!(error, StoreError::Conflict), "{error}"),
        }
    }
    assert_eq!(saved, 1);
}
