//! What a server answers of names that are no tools'.

use serde_json::{Value, json};

use crate::Toolcrib;
use crate::names::{DeclaredName, Withheld};

/// How many belong to somebody else.
pub(super) fn shadowed(crib: &Toolcrib) -> usize {
    crib.declared_names().iter().filter(|one| one.shadowed_by().is_some()).count()
}

/// Those that a restart would give to another file.
pub(super) fn divergences(crib: &Toolcrib) -> Vec<Value> {
    let record = |one: &DeclaredName| {
        let fresh = one.after_restart.as_ref()?;
        Some(json!({
            "kind": one.kind.as_str(),
            "name": one.name,
            "live": one.source.to_string(),
            "fresh": fresh.to_string(),
        }))
    };
    crib.declared_names().iter().filter_map(record).collect()
}

/// All that declare the name.
pub(super) fn about(crib: &Toolcrib, name: &str) -> Vec<Value> {
    let names = crib.declared_names().into_iter().filter(|one| one.name == name);
    names.map(|one| record(&one)).collect()
}

fn record(one: &DeclaredName) -> Value {
    let mut record = json!({"kind": one.kind.as_str(), "declared_by": one.source.to_string()});
    match &one.withheld {
        Some(Withheld::Blocked(reason)) => record["blocked"] = json!(reason),
        Some(Withheld::Untrusted(reason)) => record["untrusted"] = json!(reason),
        Some(Withheld::Shadowed(by)) => record["kept_by"] = json!(by.to_string()),
        None => {}
    }
    if let Some(fresh) = &one.after_restart {
        record["after_restart"] = json!(fresh.to_string());
    }
    record
}
