//! Tests of answers to requests with an `Idempotency-Key`: in memory, on disk, and between servers.

use std::path::Path;
use std::sync::Arc;

use toolcrib_core::run::RunId;
use toolcrib_http::{
    AnswerError, AnswerKey, AnswerLimits, AnswerStore, Claim, MemoryAnswers, StoredResponse,
};
use toolcrib_store::{Answers, Database};

fn answer() -> StoredResponse {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    StoredResponse { status: 200, headers, body: "{}".to_owned() }
}

fn answered() -> Claim {
    Claim::Answered { request: "1".to_owned(), answer: answer() }
}

fn key(name: &str) -> AnswerKey {
    AnswerKey::new("ada", name)
}

fn server(dir: &Path) -> (Database, Answers) {
    let database = Database::open(dir).expect("it opens");
    let answers = Answers::within(&database, AnswerLimits::default());
    (database, answers)
}

async fn keys_are_claimed_once_then_settled_or_released(store: Arc<dyn AnswerStore>) {
    let claims: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.claim(&key("a"), "1").await.expect("claimed") })
        })
        .collect();
    let mut new = 0;
    for claim in claims {
        new += usize::from(claim.await.expect("nobody panics") == Claim::New);
    }
    assert_eq!(new, 1, "of all who claim a key one gets it");
    store.settle(&key("a"), &answer()).await.expect("settled");
    assert_eq!(store.claim(&key("a"), "1").await.expect("known"), answered());
    store.release(&key("a")).await.expect("an answer is not released");
    assert_eq!(store.claim(&key("a"), "1").await.expect("known"), answered());
    let bobs = AnswerKey::new("bob", "a");
    assert_eq!(store.claim(&bobs, "2").await.expect("his own"), Claim::New);
    store.release(&bobs).await.expect("released");
    assert_eq!(store.claim(&bobs, "3").await.expect("it is new again"), Claim::New);
}

async fn a_client_at_its_limit_does_not_affect_others(store: Arc<dyn AnswerStore>) {
    for number in 0..3 {
        let key = key(&number.to_string());
        assert_eq!(store.claim(&key, "1").await.expect("there is room"), Claim::New);
        store.settle(&key, &answer()).await.expect("settled");
    }
    let AnswerError::Full(full) = store.claim(&key("new"), "1").await.expect_err("three") else {
        panic!("it is full")
    };
    assert!(full.retry_after.is_some());
    assert_eq!(
        full.to_string(),
        "this client has 3 Idempotency-Keys, which is its limit (`limits.per_client.keys`)"
    );
    assert_eq!(store.claim(&key("0"), "1").await.expect("hers stay"), answered());
    let bobs = AnswerKey::new("bob", "new");
    assert_eq!(store.claim(&bobs, "1").await.expect("his share is his"), Claim::New);
}

fn stores(dir: &Path, limits: AnswerLimits) -> [Arc<dyn AnswerStore>; 3] {
    let memory = Database::in_memory().expect("it opens");
    let file = Database::open(dir).expect("it opens");
    [
        Arc::new(MemoryAnswers::within(limits)),
        Arc::new(Answers::within(&memory, limits)),
        Arc::new(Answers::within(&file, limits)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_store_behaves_the_same() {
    let home = tempfile::tempdir().expect("there is room");
    for store in stores(home.path(), AnswerLimits::default()) {
        keys_are_claimed_once_then_settled_or_released(store).await;
    }
    let home = tempfile::tempdir().expect("there is room");
    for store in stores(home.path(), AnswerLimits::default().with_keys(3)) {
        a_client_at_its_limit_does_not_affect_others(store).await;
    }
}

#[tokio::test]
async fn two_servers_never_work_on_one_key_and_a_dead_servers_claim_ends_at_once() {
    let home = tempfile::tempdir().expect("there is room");
    let (first_database, first) = server(home.path());
    let (_second_database, second) = server(home.path());
    assert_eq!(first.claim(&key("a"), "1").await.expect("new"), Claim::New);
    let working = Claim::Working { request: "1".to_owned() };
    assert_eq!(second.claim(&key("a"), "1").await.expect("known"), working);
    // Only the server that claimed it can settle or release it.
    assert!(second.settle(&key("a"), &answer()).await.is_err());
    second.release(&key("a")).await.expect("nothing happens");
    assert_eq!(second.claim(&key("a"), "1").await.expect("known"), working);
    first.settle(&key("a"), &answer()).await.expect("settled");
    assert_eq!(second.claim(&key("a"), "1").await.expect("known"), answered());

    assert_eq!(first.claim(&key("b"), "1").await.expect("new"), Claim::New);
    let run = RunId::random().expect("randomness");
    first.note_run(&key("b"), &run).await.expect("noted");
    drop((first, first_database));
    let lost = Claim::Lost { request: "1".to_owned(), run: Some(run.to_string()) };
    let mut known = second.claim(&key("b"), "1").await.expect("known");
    // The first server's thread ends by itself.
    for _ in 0..100 {
        if known == lost {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        known = second.claim(&key("b"), "1").await.expect("known");
    }
    assert_eq!(known, lost);
    // It stays so, over a restart too.
    let (_third_database, third) = server(home.path());
    assert_eq!(third.claim(&key("b"), "1").await.expect("known"), lost);
}
