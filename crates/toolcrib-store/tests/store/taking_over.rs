//! Claims and late writes of a server that died.

use toolcrib_core::Answer;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::suspension::{Outcome, Settled, StoreError, SuspensionStore as _};
use toolcrib_store::{Database, Suspensions};
use toolcrib_tool::{CallId, ToolOutput, ToolResult};

use crate::fixture::{on_disk, resolved, suspended};

#[tokio::test]
async fn a_call_taken_by_a_living_server_stays_its_own() {
    let (home, database) = on_disk();
    let other = Database::open(home.path()).expect("several may share it");
    let (one, two) = (Suspensions::new(&database), Suspensions::new(&other));
    let call = suspended("ada", 1, 100);
    one.put(&call).await.expect("there is room");
    let taken = one.take(call.id(), &resolved(&call, "bob", 5)).await;
    let taken = taken.expect("it works").expect("it waits");
    assert!(two.settled(call.id()).await.expect("looked").is_none());
    let running = Settled::running(taken, Timestamp::from_unix_millis(5));
    let stolen = two.settle(&running).await;
    assert!(matches!(stolen, Err(StoreError::Conflict)), "{stolen:?}");
    one.settle(&running).await.expect("it is the taker");
    let seen = two.settled(call.id()).await.expect("looked").expect("it is known");
    assert_eq!(seen.outcome(), &Outcome::Running);
    let result = ToolResult::success(
        CallId::new("1"),
        "t",
        ToolOutput::from("done"),
        std::time::Duration::ZERO,
    );
    one.settle(&running.ended(Answer::Done(result))).await.expect("it is the taker");
    let seen = two.settled(call.id()).await.expect("looked").expect("it is known");
    assert_eq!(seen.result().map(|result| result.text().into_owned()).as_deref(), Some("done"));
}
