//! What a server answers of the MCP servers behind it.

use serde_json::{Value, json};
use tokio::runtime::Handle;
use toolcrib_mcp::upstream::{Upstream, UpstreamStatus};

use crate::Toolcrib;

/// Those that are to be connected to.
pub(super) fn declared(crib: &Toolcrib) -> Vec<Upstream> {
    crib.declared_upstreams()
}

/// How it stands with each.
pub(super) fn status(crib: &Toolcrib) -> Value {
    crib.upstreams().status().iter().map(UpstreamStatus::to_value).collect()
}

/// How it stands with each after a reload, and as `change` what that has made of it: `added`,
/// `reconnected`, `updated` without another connection, or `removed`.
pub(super) fn status_after(crib: &Toolcrib, before: &[Upstream]) -> Value {
    let now = crib.declared_upstreams();
    if now != before {
        // Nobody is waited for: whoever is new is being connected to when this returns.
        Handle::current().block_on(crib.connect());
    }
    let of =
        |all: &[Upstream], name: &str| all.iter().find(|upstream| upstream.name() == name).cloned();
    let changed = |name: &str| match (of(before, name), of(&now, name)) {
        (None, Some(_)) => Some("added"),
        (Some(one), Some(other)) if !one.is_reached_as(&other) => Some("reconnected"),
        (Some(one), Some(other)) if one != other => Some("updated"),
        _ => None,
    };
    let mut records: Vec<Value> = Vec::new();
    for status in crib.upstreams().status() {
        let mut record = status.to_value();
        record["change"] = changed(&status.name).into();
        records.push(record);
    }
    let gone = before.iter().filter(|one| of(&now, one.name()).is_none());
    records.extend(gone.map(|one| json!({"name": one.name(), "change": "removed"})));
    records.into()
}
