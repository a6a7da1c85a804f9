//! Operations of a running server: status, reload, name owners.

mod names;
mod upstreams;

use std::time::{Duration, SystemTime};

use toolcrib_core::audit::{AuditSink, rfc3339};
use toolcrib_core::{Divergence, RegistrySnapshot};
use toolcrib_http::reports::{
    AuditReport, ConfigChanges, ConfigReport, FileProblem, FileReport, NameChange, NameStatus,
    PausedTool, Reloaded, ServerStatus, StateReport, StoredKind, UnavailableTool,
    UnreadableDirectory,
};
use toolcrib_manifest::live::{FileEvent, ScanReport};
use toolcrib_manifest::lock::Kind;

use crate::Toolcrib;
use crate::settings::reload::LastReload;

/// The state of files, upstream servers and names.
pub(crate) fn status(crib: &Toolcrib) -> ServerStatus {
    let snapshot = crib.executor().registry().snapshot();
    let reasons =
        || snapshot.entries().filter_map(|entry| Some((entry.name(), entry.unavailable_reason()?)));
    let unavailable = reasons().count();
    let named = reasons().take(ServerStatus::UNAVAILABLE_MAX);
    ServerStatus {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        generation: snapshot.generation(),
        tools: snapshot.entries().filter(|entry| !entry.opt_in).count() - unavailable,
        unavailable,
        unavailable_tools: named.map(|(name, why)| UnavailableTool::new(name, why)).collect(),
        paused_tools: paused(crib),
        shadowed: snapshot.conflicts().len() + names::shadowed(crib),
        reserved: snapshot.reserved().iter().map(|own| own.name.to_string()).collect(),
        after_restart: divergences(crib, &snapshot),
        files: files(crib),
        unreadable: unreadable(crib),
        upstreams: upstreams::status(crib),
        config: config(crib),
        not_enforced: toolcrib_sandbox::jail::shortfalls()
            .iter()
            .map(ToString::to_string)
            .collect(),
        state: state(crib),
        audit: crib.audit_sinks().places().iter().map(|place| audit(*place)).collect(),
    }
}

/// What is stored. Blocks for a moment.
fn state(crib: &Toolcrib) -> StateReport {
    let Some(database) = crib.database() else { return StateReport::default() };
    let trouble = database.trouble().map(|error| error.to_string());
    match database.report() {
        Ok(found) => StateReport {
            bytes: found.bytes,
            free_bytes: found.free_bytes,
            kinds: found.kinds.iter().map(stored).collect(),
            problem: trouble,
        },
        Err(error) => StateReport { problem: Some(error.to_string()), ..StateReport::default() },
    }
}

fn stored(own: &toolcrib_store::StoredKind) -> StoredKind {
    let at = |time: toolcrib_core::clock::Timestamp| {
        rfc3339(SystemTime::UNIX_EPOCH + Duration::from_millis(time.unix_millis()))
    };
    StoredKind {
        kind: own.kind.to_owned(),
        entries: own.entries,
        bytes: own.bytes,
        oldest: own.oldest.map(at),
    }
}

/// The state of one place of the audit log.
fn audit(place: &dyn AuditSink) -> AuditReport {
    AuditReport { place: place.name(), lost: place.lost(), problem: place.problem() }
}

/// The tools whose calls are refused for a while because they timed out repeatedly.
fn paused(crib: &Toolcrib) -> Vec<PausedTool> {
    let paused = crib.executor().paused().into_iter();
    paused.map(|(name, left)| PausedTool { name, seconds_left: whole_seconds(left) }).collect()
}

/// Seconds, rounded up.
fn whole_seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

/// The result of the last reload of the config.
fn config(crib: &Toolcrib) -> ConfigReport {
    let LastReload { problem, needs_restart, restart_origins } = crib.live_config().last();
    ConfigReport { problem, needs_restart, restart_origins }
}

fn files(crib: &Toolcrib) -> Vec<FileReport> {
    let files = crib.manifests().map(crate::manifests::Reloader::files).unwrap_or_default();
    let report = |file: &toolcrib_manifest::live::FileStatus| FileReport {
        file: file.path.to_string_lossy().into_owned(),
        state: file.state.as_str().to_owned(),
        tools: file.tools,
        reason: file.state.reason().map(ToString::to_string),
    };
    files.iter().map(report).collect()
}

fn unreadable(crib: &Toolcrib) -> Vec<UnreadableDirectory> {
    let dirs = crib.manifests().map(crate::manifests::Reloader::unreadable).unwrap_or_default();
    let report = |(dir, reason): (std::path::PathBuf, String)| UnreadableDirectory {
        directory: dir.to_string_lossy().into_owned(),
        reason,
    };
    dirs.into_iter().map(report).collect()
}

fn divergences(crib: &Toolcrib, snapshot: &RegistrySnapshot) -> Vec<NameChange> {
    let change = |own: Divergence| NameChange {
        kind: Kind::Tool.as_str().to_owned(),
        name: own.name.to_string(),
        live: own.live.as_ref().map(ToString::to_string),
        fresh: own.fresh.to_string(),
    };
    snapshot.would_differ().into_iter().map(change).chain(names::divergences(crib)).collect()
}

impl Toolcrib {
    /// Reads the config ([`follow_config`](Self::follow_config)) and the manifests again, applies
    /// the changes, and reports them.
    ///
    /// An invalid config changes nothing and returns an error. Must be called within a runtime, on a thread that may
    /// block.
    pub fn reload(&self) -> Result<Reloaded, String> {
        let config = self.reload_config().map_err(|why| format!("nothing was changed: {why}"))?;
        let mut report = reload_manifests(self)?;
        report.config = config.map(|config| ConfigChanges {
            changed: config.changed,
            added_clients: config.added_clients,
            removed_clients: config.removed_clients,
            needs_restart: config.needs_restart,
            restart_origins: config.restart_origins,
            ended_clients: config.ended_clients,
        });
        let unmatched = self.unmatched_in_config();
        for text in &unmatched {
            tracing::warn!("the config: {text}");
        }
        report.unmatched = unmatched;
        Ok(report)
    }
}

fn reload_manifests(crib: &Toolcrib) -> Result<Reloaded, String> {
    let manifests = crib.manifests().ok_or("this server has no manifests")?;
    let before = crib.executor().registry().snapshot();
    let declared_before = upstreams::declared(crib);
    let (report, reviewed) = manifests.reload_and_review();
    if let Some(reason) = &report.refused {
        return Err(format!("the manifests were not changed: {reason}"));
    }
    let after = crib.executor().registry().snapshot();
    let names = |snapshot: &RegistrySnapshot| {
        snapshot.entries().map(|entry| entry.name().to_owned()).collect::<Vec<_>>()
    };
    let (before, now) = (names(&before), names(&after));
    let missing = |all: &[String], from: &[String]| {
        all.iter().filter(|name| from.binary_search(name).is_err()).cloned().collect()
    };
    Ok(Reloaded {
        generation: after.generation(),
        added: missing(&now, &before),
        removed: missing(&before, &now),
        troubles: troubles(&report),
        files: files(crib),
        unreadable: unreadable(crib),
        upstreams: upstreams::status_after(crib, &declared_before),
        reviewed: reviewed.iter().map(|file| file.display().to_string()).collect(),
        ..Reloaded::default()
    })
}

/// The files that cannot be used, with their diagnostics.
fn troubles(report: &ScanReport) -> Vec<FileProblem> {
    let trouble = |event: &FileEvent| match event {
        FileEvent::Stale { unit, reason, load, .. } | FileEvent::Broken { unit, reason, load } => {
            Some(FileProblem {
                file: unit.name.clone(),
                reason: reason.clone(),
                shown: load.as_ref().map(|load| load.render(false)),
            })
        }
        FileEvent::Loaded { .. } | FileEvent::Removed { .. } => None,
    };
    report.events.iter().filter_map(trouble).collect()
}

/// The current owner of a name, other declarations of it, and what a restart would change.
pub(crate) fn name_status(crib: &Toolcrib, name: &str) -> NameStatus {
    let snapshot = crib.executor().registry().snapshot();
    let owner = snapshot.get(name);
    let waiting = snapshot.conflicts().iter().filter(|own| own.loser.name() == name);
    let reserved = snapshot.reserved().iter().find(|own| own.name.as_str() == name);
    let restart = snapshot.would_differ().into_iter().find(|own| own.name.as_str() == name);
    let file = owner.and_then(|entry| {
        let files = crib.manifests()?.files();
        files.into_iter().find(|file| file.path.to_string_lossy() == entry.source.unit.as_str())
    });
    NameStatus {
        name: name.to_owned(),
        owner: owner.map(|entry| entry.source.to_string()),
        unavailable: owner.and_then(|entry| entry.unavailable_reason()).map(ToString::to_string),
        paused_seconds: crib.executor().paused().get(name).copied().map(whole_seconds),
        stale: file.as_ref().and_then(|file| file.state.reason()).map(ToString::to_string),
        waiting: waiting.map(|own| own.loser.source.to_string()).collect(),
        given_up_by: reserved.map(|own| own.owner.to_string()),
        after_restart: restart.map(|own| own.fresh.to_string()),
        besides: names::about(crib, name),
    }
}
