//! Outputs that expire, exceed the limits, or belong to another identity.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolcrib_core::clock::Timestamp;
use toolcrib_core::spill::{
    Handle, MemorySpill, Owner, Page, SpillError, SpillFormat, SpillLimits, SpillStore, Spilled,
};
use toolcrib_store::{Database, Spills};
use toolcrib_tool::ContextValues;

use crate::fixture::on_disk;

fn owner(user: &str) -> Owner {
    Owner::of(&ContextValues::new().with("user", user), Some("s"))
}

fn limits(max_entries: usize, max_bytes: usize) -> SpillLimits {
    let mut limits = SpillLimits::default();
    (limits.max_entries, limits.max_bytes) = (max_entries, max_bytes);
    limits
}

/// Whether an output was removed; not every store remembers that it was there.
fn is_gone(found: &Result<Page, SpillError>) -> bool {
    matches!(found, Err(SpillError::NotFound | SpillError::Expired))
}

/// Tests that hold for every implementation.
async fn pages_are_readable_by_their_owner_only(store: &dyn SpillStore) {
    let spilled = Spilled::json("{\"a\":\"é\n\"}").with_omitted_bytes(7);
    let handle = store.put(&owner("ada"), spilled).await.expect("there is room");
    let page = store.read(&owner("ada"), &handle, 6, 2).await.expect("it is hers");
    assert_eq!((page.text.as_str(), page.total_chars, page.next_offset()), ("é\n", 10, Some(8)));
    assert_eq!((page.format, page.omitted_bytes), (SpillFormat::Json, 7));
    let no_session = Owner::of(&ContextValues::new().with("user", "ada"), None);
    for other in [owner("bob"), no_session] {
        assert_eq!(store.read(&other, &handle, 0, 9).await, Err(SpillError::NotFound));
    }
    let never = Handle::random().expect("there is randomness");
    assert_eq!(store.read(&owner("ada"), &never, 0, 9).await, Err(SpillError::NotFound));
}

async fn the_oldest_output_is_removed_when_the_store_is_full(store: &dyn SpillStore) {
    let ada = owner("ada");
    let mut handles = Vec::new();
    for text in ["1", "2", "3"] {
        handles.push(store.put(&ada, Spilled::text(text)).await.expect("the oldest makes room"));
    }
    assert!(is_gone(&store.read(&ada, &handles[0], 0, 9).await));
    assert_eq!(store.read(&ada, &handles[1], 0, 9).await.expect("it is there").text, "2");
    let large = store.put(&ada, Spilled::text("x".repeat(1_000))).await.expect("it just fits");
    assert!(is_gone(&store.read(&ada, &handles[2], 0, 9).await));
    assert_eq!(store.read(&ada, &large, 0, 1).await.expect("it is there").total_chars, 1_000);
    let refused = store.put(&ada, Spilled::text("x".repeat(1_001))).await;
    assert!(matches!(refused, Err(SpillError::TooLarge { .. })), "{refused:?}");
}

async fn many_small_outputs_do_not_push_out_a_large_one_of_another_identity(
    store: &dyn SpillStore,
) {
    let large = store.put(&owner("bob"), Spilled::text("x".repeat(900))).await.expect("it fits");
    for _ in 0..20 {
        store.put(&owner("ada"), Spilled::text("1")).await.expect("her oldest makes room");
    }
    let page = store.read(&owner("bob"), &large, 0, 1).await;
    assert_eq!(page.expect("it is in nobody's way").total_chars, 900);
}

#[tokio::test]
async fn a_client_with_many_small_outputs_pushes_out_its_own() {
    let memory = Database::in_memory().expect("there is memory");
    many_small_outputs_do_not_push_out_a_large_one_of_another_identity(&Spills::new(
        &memory,
        limits(5, 1_000),
    ))
    .await;
    many_small_outputs_do_not_push_out_a_large_one_of_another_identity(&MemorySpill::new(limits(
        5, 1_000,
    )))
    .await;
}

#[tokio::test]
async fn every_output_store_behaves_the_same() {
    let (_home, disk) = on_disk();
    let memory = Database::in_memory().expect("there is memory");
    let limits = limits(2, 1_000);
    let stores: [Arc<dyn SpillStore>; 3] = [
        Arc::new(Spills::new(&disk, limits)),
        Arc::new(Spills::new(&memory, limits)),
        Arc::new(MemorySpill::new(limits)),
    ];
    for store in stores {
        pages_are_readable_by_their_owner_only(&*store).await;
        the_oldest_output_is_removed_when_the_store_is_full(&*store).await;
    }
}

#[tokio::test]
async fn an_output_survives_and_its_handle_is_not_in_the_file() {
    let (home, database) = on_disk();
    let store = Spills::new(&database, Spills::disk_limits());
    let handle = store.put(&owner("ada"), Spilled::text("kept")).await.expect("there is room");
    drop((store, database));
    let database = Database::open(home.path()).expect("it is ours");
    let store = Spills::new(&database, Spills::disk_limits());
    let page = store.read(&owner("ada"), &handle, 0, 9).await.expect("it is hers");
    assert_eq!(page.text, "kept");
    let handle = handle.to_string().into_bytes();
    for name in ["toolcrib.db", "toolcrib.db-wal"] {
        let bytes = std::fs::read(home.path().join(name)).expect("it is ours");
        assert!(!bytes.windows(handle.len()).any(|part| part == handle), "{name}");
    }
}

#[tokio::test]
async fn expired_outputs_cannot_be_read() {
    let time = Arc::new(AtomicU64::new(0));
    let clock = {
        let time = Arc::clone(&time);
        Arc::new(move || Timestamp::from_unix_millis(time.load(Ordering::SeqCst)))
    };
    let database = Database::in_memory_with_clock(clock).expect("there is memory");
    let mut limits = SpillLimits::default();
    limits.ttl = Duration::from_millis(100);
    let store = Spills::new(&database, limits);
    let handle = store.put(&owner("ada"), Spilled::text("old")).await.expect("there is room");
    let other = store.put(&owner("ada"), Spilled::text("too")).await.expect("there is room");
    time.store(99, Ordering::SeqCst);
    assert!(store.read(&owner("ada"), &other, 0, 9).await.is_ok());
    time.store(100, Ordering::SeqCst);
    assert!(is_gone(&store.read(&owner("ada"), &handle, 0, 9).await));
}

#[tokio::test]
async fn only_the_identity_that_uses_most_loses_outputs() {
    let database = Database::in_memory().expect("there is memory");
    let store = Spills::new(&database, limits(100, 1_000));
    let bobs = store.put(&owner("bob"), Spilled::text("x".repeat(100))).await.expect("room");
    for _ in 0..50 {
        store.put(&owner("ada"), Spilled::text("x".repeat(200))).await.expect("hers makes room");
    }
    assert!(store.read(&owner("bob"), &bobs, 0, 9).await.is_ok());
}
