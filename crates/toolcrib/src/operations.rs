//! What operators ask of a running server: its status, a reload, who owns a name.

mod names;
mod upstreams;

use serde_json::{Value, json};
use toolcrib_core::{Divergence, RegistrySnapshot};
use toolcrib_manifest::live::{FileEvent, LookReport};
use toolcrib_manifest::lock::Kind;
use toolcrib_tool::Source;

use crate::Toolcrib;

/// The state of files, upstream servers and names.
pub(crate) fn status(crib: &Toolcrib) -> Value {
    let snapshot = crib.executor().registry().snapshot();
    let unavailable: Vec<_> = snapshot
        .entries()
        .filter_map(|entry| {
            Some(json!({"name": entry.name(), "reason": entry.unavailable_reason()?}))
        })
        .collect();
    json!({
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
        "generation": snapshot.generation(),
        "tools": snapshot.entries().len() - unavailable.len(),
        "unavailable": unavailable.len(),
        "unavailable_tools": unavailable,
        "shadowed": snapshot.conflicts().len() + names::shadowed(crib),
        "reserved": snapshot.reserved().iter().map(|own| own.name.as_str()).collect::<Vec<_>>(),
        "after_restart": divergences(crib, &snapshot),
        "files": files(crib),
        "unreadable": unreadable(crib),
        "upstreams": upstreams::status(crib),
        "config": config(crib),
        "not_enforced": toolcrib_sandbox::jail::shortfalls(),
    })
}

/// How the last reload of the config ended.
fn config(crib: &Toolcrib) -> Value {
    let last = crib.live_config().last();
    json!({"problem": last.problem, "needs_restart": last.needs_restart})
}

fn files(crib: &Toolcrib) -> Vec<Value> {
    let files = crib.manifests().map(crate::manifests::Reloader::files).unwrap_or_default();
    let record = |file: &toolcrib_manifest::live::FileStatus| {
        json!({
            "file": file.path.to_string_lossy(),
            "state": file.state.as_str(),
            "tools": file.tools,
            "reason": file.state.reason(),
        })
    };
    files.iter().map(record).collect()
}

fn unreadable(crib: &Toolcrib) -> Vec<Value> {
    let dirs = crib.manifests().map(crate::manifests::Reloader::unreadable).unwrap_or_default();
    let record = |(dir, reason): &(std::path::PathBuf, String)| json!({"directory": dir.to_string_lossy(), "reason": reason});
    dirs.iter().map(record).collect()
}

fn divergences(crib: &Toolcrib, snapshot: &RegistrySnapshot) -> Vec<Value> {
    let record = |own: &Divergence| {
        json!({
            "kind": Kind::Tool.as_str(),
            "name": own.name.as_str(),
            "live": own.live.as_ref().map(ToString::to_string),
            "fresh": own.fresh.to_string(),
        })
    };
    snapshot.would_differ().iter().map(record).chain(names::divergences(crib)).collect()
}

impl Toolcrib {
    /// Reads the config ([`follow_config`](Self::follow_config)) and the manifests again, puts into
    /// effect what has changed, and says what that is, as `toolcrib reload --json` has it.
    ///
    /// A config that cannot be used changes nothing, and fails. Must be called within a runtime, on a
    /// thread that may block.
    pub fn reload(&self) -> Result<Value, String> {
        let config = self.reload_config().map_err(|why| format!("nothing was changed: {why}"))?;
        let mut report = reload_manifests(self)?;
        if let Some(config) = config {
            report["config"] = json!(config);
        }
        let unmatched = self.unmatched_in_config();
        for text in &unmatched {
            tracing::warn!("the config: {text}");
        }
        report["unmatched"] = json!(unmatched);
        Ok(report)
    }
}

fn reload_manifests(crib: &Toolcrib) -> Result<Value, String> {
    let manifests = crib.manifests().ok_or("this server has no manifests")?;
    let before = crib.executor().registry().snapshot();
    let declared_before = upstreams::declared(crib);
    let report = manifests.reload();
    if let Some(reason) = &report.refused {
        return Err(format!("the manifests were not changed: {reason}"));
    }
    let after = crib.executor().registry().snapshot();
    let names = |snapshot: &RegistrySnapshot| {
        snapshot.entries().map(|entry| entry.name().to_owned()).collect::<Vec<_>>()
    };
    let (before, now) = (names(&before), names(&after));
    Ok(json!({
        "generation": after.generation(),
        "added": now.iter().filter(|name| before.binary_search(name).is_err()).collect::<Vec<_>>(),
        "removed": before.iter().filter(|name| now.binary_search(name).is_err()).collect::<Vec<_>>(),
        "troubles": troubles(&report),
        "files": files(crib),
        "unreadable": unreadable(crib),
        "upstreams": upstreams::status_after(crib, &declared_before),
    }))
}

/// The files that cannot be used, with their errors as a compiler would show them.
fn troubles(report: &LookReport) -> Vec<Value> {
    let trouble = |event: &FileEvent| match event {
        FileEvent::Stale { unit, reason, load, .. } | FileEvent::Broken { unit, reason, load } => {
            Some(json!({
                "file": unit.name,
                "reason": reason,
                "shown": load.as_ref().map(|load| load.render(false)),
            }))
        }
        FileEvent::Loaded { .. } | FileEvent::Removed { .. } => None,
    };
    report.events.iter().filter_map(trouble).collect()
}

/// Who owns a name here and now, who else declares it, and what a restart would change.
pub(crate) fn name_status(crib: &Toolcrib, name: &str) -> Value {
    let snapshot = crib.executor().registry().snapshot();
    let source = |source: &Source| source.to_string();
    let owner = snapshot.get(name);
    let waiting = snapshot.conflicts().iter().filter(|own| own.loser.name() == name);
    let reserved = snapshot.reserved().iter().find(|own| own.name.as_str() == name);
    let restart = snapshot.would_differ().into_iter().find(|own| own.name.as_str() == name);
    let file = owner.and_then(|entry| {
        let files = crib.manifests()?.files();
        files.into_iter().find(|file| file.path.to_string_lossy() == entry.source.unit.as_str())
    });
    json!({
        "name": name,
        "owner": owner.map(|entry| source(&entry.source)),
        "unavailable": owner.and_then(|entry| entry.unavailable_reason()),
        "stale": file.as_ref().and_then(|file| file.state.reason()),
        "waiting": waiting.map(|own| source(&own.loser.source)).collect::<Vec<_>>(),
        "given_up_by": reserved.map(|own| source(&own.owner)),
        "after_restart": restart.map(|own| source(&own.fresh)),
        "besides": names::about(crib, name),
    })
}
