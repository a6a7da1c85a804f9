//! Records and databases for tests.

use serde_json::json;
use tempfile::TempDir;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{RunId, RunRecord};
use toolcrib_core::suspension::{ResolutionKind, Resolved, StoreError, Suspension, Waiting};
use toolcrib_store::Database;
use toolcrib_tool::{Arguments, CallId, Layer, Source, ToolDefinition, ToolEntry};

/// A call of this identity that waits between two times.
pub(crate) fn suspended(identity: &str, created: u64, expires: u64) -> Suspension {
    let definition = ToolDefinition::builder("t").description("A tool.").build();
    let source = Source::new(Layer::Host, "test");
    let entry = ToolEntry::client(definition.expect("it is right"), source);
    let arguments = Arguments::from_validated("{}".to_owned());
    let (call, at) = (CallId::new("1"), Timestamp::from_unix_millis);
    Suspension::new(&call, &entry, &arguments, Waiting::Client, at(created), at(expires))
        .expect("there is randomness")
        .for_identity(identity)
}

/// Resolves a call at a given time.
pub(crate) fn resolved(call: &Suspension, by: &str, at: u64) -> Resolved {
    Resolved::new(call, ResolutionKind::Approved, by, Timestamp::from_unix_millis(at))
}

/// A run without calls, which is over.
pub(crate) fn run(identity: &str, created: u64) -> RunRecord {
    let id = RunId::random().expect("there is randomness");
    serde_json::from_value(json!({
        "id": id.as_str(), "identity": identity, "created_at": created, "version": 0, "slots": [],
    }))
    .expect("it is a record")
}

/// A run with one waiting call.
pub(crate) fn waiting_run(identity: &str, created: u64) -> RunRecord {
    let suspension = suspended(identity, created, created + 1_000_000);
    let mut value = serde_json::to_value(run(identity, created)).expect("it is plain data");
    value["slots"] = json!([{"waiting": suspension}]);
    serde_json::from_value(value).expect("it is a record")
}

/// Whether something is kept; not every store remembers what it has removed.
pub(crate) fn is_kept<T>(found: Result<Option<T>, StoreError>) -> bool {
    match found {
        Ok(found) => found.is_some(),
        Err(StoreError::Expired) => false,
        Err(error) => panic!("{error}"),
    }
}

/// A folder for a database, and a database in it.
pub(crate) fn on_disk() -> (TempDir, Database) {
    let home = tempfile::tempdir().expect("there is room");
    let database = Database::open(home.path()).expect("the folder is fit for it");
    (home, database)
}
