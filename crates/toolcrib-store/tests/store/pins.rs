//! Pins of imported definitions: the first one is stored, and only acceptance changes it.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_mcp::upstream::{MemoryPins, PinStore, Pins};
use toolcrib_store::{Database, DatabasePins};

use crate::fixture::on_disk;

fn definition(number: u32) -> Fingerprint {
    Fingerprint::of_json(&json!(number))
}

fn pins(of: &[(&str, u32)]) -> Pins {
    of.iter().map(|(tool, number)| ((*tool).to_owned(), definition(*number))).collect()
}

async fn the_first_pin_stays_until_another_is_accepted(store: Arc<dyn PinStore>) {
    assert!(store.pins("git").await.expect("it works").is_empty());
    let seen = store.pin_new("git", &pins(&[("a", 1), ("b", 2)])).await.expect("it works");
    assert_eq!(seen, pins(&[("a", 1), ("b", 2)]));
    let seen = store.pin_new("git", &pins(&[("b", 3), ("c", 4)])).await.expect("it works");
    assert_eq!(seen, pins(&[("a", 1), ("b", 2), ("c", 4)]));
    store.accept("git", "b", definition(3)).await.expect("it works");
    let now = store.pins("git").await.expect("it works");
    assert_eq!(now, pins(&[("a", 1), ("b", 3), ("c", 4)]));
    assert!(store.pins("other").await.expect("it works").is_empty());

    let racing: Vec<_> = (0..8)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.pin_new("race", &pins(&[("t", number)])).await })
        })
        .collect();
    let mut seen = Vec::new();
    for racer in racing {
        seen.push(racer.await.expect("nobody panics").expect("it works"));
    }
    assert!(seen.iter().all(|pins| *pins == seen[0]), "all see what the first has pinned");
}

#[tokio::test]
async fn every_pin_store_behaves_the_same() {
    let (_home, disk) = on_disk();
    let memory = Database::in_memory().expect("there is memory");
    let stores: [Arc<dyn PinStore>; 3] = [
        Arc::new(DatabasePins::new(&disk)),
        Arc::new(DatabasePins::new(&memory)),
        Arc::new(MemoryPins::default()),
    ];
    for store in stores {
        the_first_pin_stays_until_another_is_accepted(store).await;
    }
}

#[tokio::test]
async fn the_text_of_a_pinned_definition_is_kept_until_another_is_accepted() {
    let (_home, disk) = on_disk();
    let store = DatabasePins::new(&disk);
    store.pin_new("git", &pins(&[("a", 1)])).await.expect("it works");
    assert_eq!(store.text("git", "a").await.expect("it works"), None);
    let (one, two) = (json!({"description": "One."}), json!({"description": "Two."}));
    store.keep_text("git", "a", definition(2), &two).await.expect("it works");
    assert_eq!(store.text("git", "a").await.expect("it works"), None, "it is not the pinned one");
    store.keep_text("git", "a", definition(1), &one).await.expect("it works");
    assert_eq!(store.text("git", "a").await.expect("it works"), Some(one));
    store.accept("git", "a", definition(2)).await.expect("it works");
    assert_eq!(store.text("git", "a").await.expect("it works"), None);
    store.keep_text("git", "a", definition(2), &two).await.expect("it works");
    assert_eq!(store.text("git", "a").await.expect("it works"), Some(two));
}

#[tokio::test]
async fn a_listing_reads_pins_and_creates_nothing() {
    let home = tempfile::tempdir().expect("there is room");
    let looked = DatabasePins::pinned_tools(home.path(), "git").expect("there is nothing");
    assert_eq!(looked, None);
    assert_eq!(std::fs::read_dir(home.path()).expect("it is ours").count(), 0);

    let database = Database::open(home.path()).expect("the folder is fit for it");
    let store = DatabasePins::new(&database);
    store.pin_new("git", &pins(&[("b", 1), ("a", 1)])).await.expect("it works");
    let looked = DatabasePins::pinned_tools(home.path(), "git").expect("it is there");
    assert_eq!(looked.expect("they are pinned").tools, ["a", "b"]);
    let none = DatabasePins::pinned_tools(home.path(), "other").expect("it is there");
    assert_eq!(none, None);
}
