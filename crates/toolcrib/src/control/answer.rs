//! What a server answers.

use serde_json::{Value, json};
use toolcrib_core::{Divergence, RegistrySnapshot};
use toolcrib_manifest::live::{FileEvent, LookReport};
use toolcrib_manifest::lock::Kind;
use toolcrib_tool::Source;

use super::{ControlCommand, ControlRequest, names, upstreams};
use crate::Toolcrib;

/// Does what is asked, and says so. Reads files: not for a thread that others wait for.
pub(super) fn answered(crib: &Toolcrib, request: &ControlRequest) -> Value {
    match answer(crib, request) {
        Ok(mut answer) => {
            answer["ok"] = json!(true);
            answer
        }
        Err(error) => failed(&error),
    }
}

/// Does what is asked.
pub(crate) fn answer(crib: &Toolcrib, request: &ControlRequest) -> Result<Value, String> {
    match request.command {
        ControlCommand::Status => Ok(status(crib)),
        ControlCommand::Reload => reload(crib),
        ControlCommand::Stats => Ok(json!({"tools": crib.executor().statistics().snapshot()})),
        ControlCommand::Release => named(request).and_then(|name| release(crib, name)),
        ControlCommand::Why => named(request).map(|name| why(crib, name)),
    }
}

pub(super) fn failed(error: &str) -> Value {
    json!({"ok": false, "error": error})
}

fn named(request: &ControlRequest) -> Result<&str, String> {
    request.name.as_deref().ok_or_else(|| "the request needs a `name`".to_owned())
}

fn status(crib: &Toolcrib) -> Value {
    let snapshot = crib.executor().registry().snapshot();
    let unavailable =
        snapshot.entries().filter(|entry| entry.unavailable_reason().is_some()).count();
    json!({
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
        "generation": snapshot.generation(),
        "tools": snapshot.entries().len() - unavailable,
        "unavailable": unavailable,
        "shadowed": snapshot.conflicts().len() + names::shadowed(crib),
        "reserved": snapshot.reserved().iter().map(|own| own.name.as_str()).collect::<Vec<_>>(),
        "after_restart": divergences(crib, &snapshot),
        "files": files(crib),
        "unreadable": unreadable(crib),
        "upstreams": upstreams::status(crib),
    })
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

fn reload(crib: &Toolcrib) -> Result<Value, String> {
    let manifests = crib.manifests().ok_or("this server has no manifests")?;
    let before = crib.executor().registry().snapshot();
    let declared_before = upstreams::declared(crib);
    let report = manifests.reload();
    if let Some(reason) = &report.refused {
        return Err(format!("nothing was changed: {reason}"));
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

fn release(crib: &Toolcrib, name: &str) -> Result<Value, String> {
    let registry = crib.executor().registry();
    let released = registry.release(name).map_err(|error| error.to_string())?;
    let snapshot = registry.snapshot();
    let owner = snapshot.get(name).map(|entry| entry.source.to_string());
    Ok(json!({"released": released, "owner": owner}))
}

fn why(crib: &Toolcrib, name: &str) -> Value {
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
