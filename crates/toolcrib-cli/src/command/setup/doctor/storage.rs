//! Checks what is stored and recorded, and whether there is room for more.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, SystemTime};

use toolcrib::core::audit::rfc3339;
use toolcrib::servers::{SocketFolder, running_servers};
use toolcrib::settings::{Audit, LoadedConfig, State};
use toolcrib::stores::{StateReport, StoredKind};

use super::findings::Findings;
use super::settings::{mode, writable};
use crate::runtime;
use crate::screen::{count, size};

pub(super) fn look(loaded: &LoadedConfig, findings: &mut Findings) {
    stored(&loaded.config().state, findings);
    audit(&loaded.config().audit, findings);
    servers(loaded, findings);
}

/// What is stored, and whether there is room for more.
fn stored(state: &State, findings: &mut Findings) {
    let Some(dir) = state.dir.as_deref().filter(|dir| dir.exists()) else { return };
    match StateReport::read(dir) {
        Ok(None) => {}
        Ok(Some(found)) => {
            let kinds = found.kinds.iter().filter(|kind| kind.entries > 0);
            let line = |kind: &StoredKind| {
                let oldest = kind.oldest.map(|at| {
                    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at.unix_millis());
                    format!(", the oldest of {}", rfc3339(at))
                });
                // The kinds are plurals.
                let entries = count(kind.entries, kind.kind.trim_end_matches('s'));
                format!("{entries}: {}{}", size(kind.bytes), oldest.unwrap_or_default())
            };
            let lines = kinds.map(line).collect();
            let free = size(found.free_bytes);
            let says = format!("the database has {}, of which {free} are free", size(found.bytes));
            findings.good("state", says);
            findings.lines(lines);
            if let Some(free) = found.disk_free_bytes
                && free < LITTLE_ROOM
            {
                findings.warn(
                    "state",
                    format!("only {} are free on the disk of {}", size(free), dir.display()),
                    "free some space: calls that have to be kept fail when the disk is full",
                );
            }
        }
        Err(error) => findings.warn(
            "state",
            error.to_string(),
            "restore a backup with `toolcrib state restore FILE`, or move the database away",
        ),
    }
}

/// Below this, `doctor` warns of a full disk.
const LITTLE_ROOM: u64 = 64 * 1024 * 1024;

/// What running servers report about their state and audit log.
fn servers(loaded: &LoadedConfig, findings: &mut Findings) {
    let found = SocketFolder::of(loaded).ok().and_then(|place| running_servers(&place).ok());
    for server in found.unwrap_or_default() {
        let asked = runtime::block_on(server.client.get("/v1/status"));
        let Ok(Ok(status)) = asked else { continue };
        if let Some(problem) = status["state"]["problem"].as_str() {
            findings.fail(
                "state",
                format!("the server {} cannot store state: {problem}", server.pid),
                "free some space on that disk, or make the folder writable again",
            );
        }
        for place in status["audit"].as_array().into_iter().flatten() {
            let name = place["place"].as_str().unwrap_or_default();
            let lost = place["lost"].as_u64().unwrap_or_default();
            let problem = place["problem"].as_str();
            if problem.is_none() && lost == 0 {
                continue;
            }
            let why = problem.map(|why| format!(": {why}")).unwrap_or_default();
            findings.warn(
                "audit",
                format!("the server {} has lost {lost} records for {name}{why}", server.pid),
                "make the file writable, or start syslog again",
            );
        }
    }
}

fn audit(audit: &Audit, findings: &mut Findings) {
    if let Some(address) = &audit.syslog {
        match address.try_out() {
            Ok(()) => findings.good("audit", format!("every call is sent to syslog at {address}")),
            Err(error) => findings.warn(
                "audit",
                format!("syslog at {address} cannot be reached: {error}"),
                "start it, or set another audit.syslog: up to 4,096 records wait for it, others are lost",
            ),
        }
    }
    if audit.otlp {
        findings.good("audit", "every call is sent to the OpenTelemetry collector".to_owned());
    }
    let Some(file) = audit.file.as_deref() else {
        if audit.syslog.is_none() && !audit.otlp {
            findings.note("audit", "no audit.file and no audit.syslog: calls are not recorded");
        }
        return;
    };
    let shown = file.display();
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let opened = if file.exists() {
        OpenOptions::new().append(true).open(file).map(drop)
    } else {
        writable(parent.unwrap_or(Path::new(".")))
    };
    match (opened, mode(file)) {
        (Err(error), _) => findings.fail(
            "audit",
            format!("{shown} cannot be written to: {error}"),
            "change its owner to the server's user, or set another audit.file",
        ),
        (Ok(()), Some(mode)) if mode & 0o077 != 0 => findings.warn(
            "audit",
            format!("others may access {shown} (mode {mode:03o}), which records all calls"),
            "remove the permission: chmod go=",
        ),
        (Ok(()), _) => findings.good("audit", format!("every call is recorded in {shown}")),
    }
}
