//! Sixteen concurrent calls on the same and on different files: nothing is lost or half written.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use serde_json::json;
use toolcrib_sandbox::LockTable;

use crate::harness::Crib;

const TASKS: usize = 16;
const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_tasks_lose_nothing_and_leave_no_lock() {
    let crib = Arc::new(Crib::new(&[("whole", b"aaaa")]));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let crib = Arc::clone(&crib);
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let line = format!("{task} {round} end\n");
                    let log = json!({"path": "log", "content": line, "mode": "append"});
                    crib.text("file_write", log).await;
                    let whole = format!("{task:04}").repeat(1000);
                    crib.text("file_write", json!({"path": "whole", "content": whole})).await;
                    let own = format!("own/{task}");
                    let mine = json!({"path": own, "content": "x", "mode": "append"});
                    crib.text("file_write", mine).await;
                    let read = crib.text("file_read", json!({"path": "whole"})).await;
                    assert!(read.as_bytes().chunks(4).all(|part| part == &read.as_bytes()[..4]));
                    let log = crib.text("file_read", json!({"path": "log"})).await;
                    assert!(
                        log.lines().all(|line| line.ends_with(" end") || line.starts_with('['))
                    );
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let log = fs::read_to_string(crib.path("log")).unwrap();
    assert_eq!(log.lines().collect::<BTreeSet<_>>().len(), TASKS * ROUNDS);
    for task in 0..TASKS {
        assert_eq!(fs::read(crib.path(&format!("own/{task}"))).unwrap().len(), ROUNDS);
    }
    // No other test of this process holds a lock in these files' folder.
    let folder = fs::metadata(crib.path(".")).unwrap();
    let key = |name: &str| toolcrib_sandbox::LockKey {
        device: std::os::unix::fs::MetadataExt::dev(&folder),
        folder: std::os::unix::fs::MetadataExt::ino(&folder),
        name: name.to_owned(),
    };
    let table = LockTable::of_process();
    for name in ["log", "whole"] {
        assert!(!table.contains(&key(name)), "{name}");
    }
}
