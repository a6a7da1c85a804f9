//! Tasks of MCP clients survive a restart and are visible to their owner only.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolcrib_core::clock::{Clock as _, SystemClock, Timestamp};
use toolcrib_mcp::{EndedTask, FoundTaskState, StoredTask, TaskStore as _, TaskStoreError};
use toolcrib_store::{Database, Tasks};

fn task(id: &str, expires_at: Timestamp) -> StoredTask {
    StoredTask {
        id: id.to_owned(),
        owner: "ada".to_owned(),
        created_at: "2026-11-22T12:00:00Z".to_owned(),
        expires_at,
    }
}

fn ended() -> EndedTask {
    let at = "2026-11-22T12:00:09Z".to_owned();
    EndedTask { at, outcome: json!({"result": {"content": []}}) }
}

async fn state(tasks: &Tasks, id: &str) -> Option<FoundTaskState> {
    tasks.find("ada", id).await.expect("looked").map(|found| found.state)
}

#[tokio::test]
async fn task_outcomes_survive_a_restart_and_interrupted_tasks_are_lost() {
    let home = tempfile::tempdir().expect("there is room");
    let database = Database::open(home.path()).expect("it opens");
    let tasks = Tasks::new(&database);
    let later = SystemClock.now().after(Duration::from_secs(600));
    for id in ["done", "cut"] {
        tasks.begin(&task(id, later), 10).await.expect("there is room");
    }
    tasks.end("ada", "done", &ended()).await.expect("it has ended");
    // The first outcome stays.
    let withdrawn = EndedTask { outcome: json!({}), ..ended() };
    tasks.end("ada", "done", &withdrawn).await.expect("it is over");

    let other = Tasks::new(&Database::open(home.path()).expect("several may share it"));
    assert_eq!(state(&other, "done").await, Some(FoundTaskState::Ended(ended())));
    assert_eq!(state(&other, "cut").await, Some(FoundTaskState::Working));
    other.end("ada", "cut", &ended()).await.expect("nothing happens");
    assert_eq!(state(&other, "cut").await, Some(FoundTaskState::Working), "it is not its own");
    assert_eq!(other.find("bob", "done").await.expect("looked"), None);

    drop((tasks, database));
    let mut cut = state(&other, "cut").await;
    // The first server's thread ends by itself.
    for _ in 0..100 {
        if cut == Some(FoundTaskState::Lost) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        cut = state(&other, "cut").await;
    }
    assert_eq!(cut, Some(FoundTaskState::Lost));
    assert_eq!(state(&other, "done").await, Some(FoundTaskState::Ended(ended())));
}

#[tokio::test]
async fn a_client_at_its_task_limit_loses_its_oldest_tasks() {
    let now = Arc::new(std::sync::atomic::AtomicU64::new(1_000));
    let clock = {
        let now = Arc::clone(&now);
        move || Timestamp::from_unix_millis(now.load(std::sync::atomic::Ordering::SeqCst))
    };
    let database = Database::in_memory_with_clock(Arc::new(clock)).expect("it opens");
    let tasks = Tasks::new(&database);
    let at = Timestamp::from_unix_millis;
    for id in ["a", "b"] {
        tasks.begin(&task(id, at(2_000)), 2).await.expect("there is room");
    }
    assert_eq!(tasks.begin(&task("c", at(3_000)), 2).await, Err(TaskStoreError::Full));
    let bobs = StoredTask { owner: "bob".to_owned(), ..task("d", at(3_000)) };
    tasks.begin(&bobs, 2).await.expect("his share is his");
    now.store(2_000, std::sync::atomic::Ordering::SeqCst);
    tasks.begin(&task("c", at(3_000)), 2).await.expect("the others have expired");
    assert_eq!(state(&tasks, "a").await, None);
}
