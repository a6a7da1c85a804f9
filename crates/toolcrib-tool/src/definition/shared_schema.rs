//! Shares equal schemas: catalogues of thousands of tools have few different ones.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use serde_json::Value;

/// The schemas in use, by their hash, as weak pointers.
#[derive(Default)]
struct SharedSchemas {
    hasher: RandomState,
    schemas: Mutex<HashMap<u64, Vec<Weak<Value>>>>,
}

static KNOWN: LazyLock<SharedSchemas> = LazyLock::new(SharedSchemas::default);

/// The existing copy, or this one.
pub(super) fn shared_schema(schema: Value) -> Arc<Value> {
    let hash = KNOWN.hasher.hash_one(&schema);
    // Nothing panics while the lock is held that could leave the table half changed.
    let mut schemas = KNOWN.schemas.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |known: &Weak<Value>| known.upgrade().filter(|known| **known == schema);
    if let Some(known) = schemas.get(&hash).and_then(|alike| alike.iter().find_map(same)) {
        return known;
    }
    // The table is cleaned up only when it is full, so the cost is spread over its growth.
    if schemas.len() == schemas.capacity() {
        schemas.retain(|_, alike| {
            alike.retain(|known| known.strong_count() > 0);
            !alike.is_empty()
        });
    }
    let fresh = Arc::new(schema);
    schemas.entry(hash).or_default().push(Arc::downgrade(&fresh));
    fresh
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_schemas_are_shared_and_others_are_not() {
        let schema = || json!({"type": "object", "title": "only here"});
        let (one, two) = (shared_schema(schema()), shared_schema(schema()));
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&one, &shared_schema(json!({"type": "object", "title": "another"}))));
    }

    #[test]
    fn an_unused_schema_is_removed() {
        let schema = shared_schema(json!({"title": "used once"}));
        let known = Arc::downgrade(&schema);
        drop(schema);
        for number in 0..2_000 {
            drop(shared_schema(json!({"title": number})));
        }
        assert_eq!(known.strong_count(), 0);
        let schemas = KNOWN.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(schemas.len() < 2_000, "{} are remembered", schemas.len());
    }
}
