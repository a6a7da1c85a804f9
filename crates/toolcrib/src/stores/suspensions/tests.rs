//! What the files of suspended calls promise.

use std::os::unix::fs::PermissionsExt;

use toolcrib_core::clock::Timestamp;
use toolcrib_core::suspension::Waiting;
use toolcrib_tool::{Arguments, CallId, Layer, Source, ToolDefinition, ToolEntry};

use super::*;

fn suspended(identity: &str) -> Suspension {
    let definition = ToolDefinition::builder("t").description("A tool.").build();
    let source = Source::new(Layer::Host, "test");
    let entry = ToolEntry::client(definition.expect("it is right"), source);
    let arguments = Arguments::from_validated("{}".to_owned());
    let (call, now) = (CallId::new("1"), Timestamp::from_unix_millis(1));
    Suspension::new(&call, &entry, &arguments, Waiting::Client, now, Timestamp::NEVER)
        .expect("there is randomness")
        .for_identity(identity)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_takers_one_gets_the_call() {
    let home = tempfile::tempdir().expect("there is room");
    let dir = home.path().join("s");
    // Each has opened the directory by itself, as processes do.
    let stores: Vec<_> = (0..8).map(|_| FileSuspensions::open(&dir).expect("it is ours")).collect();
    for _ in 0..20 {
        let suspension = suspended("ada");
        stores[0].put(&suspension).await.expect("there is room");
        let takers: Vec<_> = stores
            .iter()
            .cloned()
            .map(|store| {
                let id = suspension.id().clone();
                tokio::spawn(async move { store.take(&id).await.expect("it works") })
            })
            .collect();
        let mut taken = Vec::new();
        for taker in takers {
            taken.extend(taker.await.expect("nobody panics"));
        }
        assert_eq!(taken, [suspension]);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_reported_and_left_and_hides_no_other() {
    let home = tempfile::tempdir().expect("there is room");
    let store = FileSuspensions::open(home.path().join("s")).expect("it is ours");
    let (broken, whole) = (suspended("ada"), suspended("ada"));
    store.put(&broken).await.expect("there is room");
    store.put(&whole).await.expect("there is room");
    let path = home.path().join("s").join(format!("{}.json", broken.id()));
    std::fs::write(&path, "{\"id\":").expect("it is ours");

    for result in [store.find(broken.id()).await, store.take(broken.id()).await] {
        let error = result.expect_err("it is broken");
        assert!(
            matches!(&error, StoreError::Corrupt { place, .. } if *place == path.display().to_string())
        );
    }
    assert!(path.exists());
    assert_eq!(store.list("ada").await.expect("it works"), [whole]);
    assert_eq!(store.list("eve").await.expect("it works"), []);
}

#[tokio::test]
async fn nobody_else_can_look_into_it() {
    let home = tempfile::tempdir().expect("there is room");
    let dir = home.path().join("s");
    let store = FileSuspensions::open(&dir).expect("it is ours");
    let suspension = suspended("");
    store.put(&suspension).await.expect("there is room");
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join(format!("{}.json", suspension.id()))), 0o600);

    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let error = FileSuspensions::open(&dir).expect_err("others may look into it");
    assert!(error.to_string().contains("has mode 755"), "{error}");
}
