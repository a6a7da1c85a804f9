//! What a server logs at its start: tools that cannot be called, a missing lock, profiles that cannot be enforced.

use std::sync::mpsc;
use std::time::Duration;

use toolcrib::manifest::lock::{Lock, LockMode};
use toolcrib::settings::SandboxRequire;
use toolcrib::tool::fully_visible;
use toolcrib_sandbox::jail;

use super::Started;
use crate::screen;

/// The number of unavailable tools that are named at the start.
const NAMED_AT_START: usize = 5;

/// Logs which tools cannot be called, and why.
pub(super) fn log_unavailable_tools(started: &Started) {
    let snapshot = started.crib.executor().registry().snapshot();
    let reasons = snapshot.entries().filter_map(|entry| {
        let reason = fully_visible(entry.unavailable_reason()?);
        Some(format!("`{}`: {reason}", entry.name()))
    });
    let reasons: Vec<_> = reasons.collect();
    if reasons.is_empty() {
        return;
    }
    let named = &reasons[..reasons.len().min(NAMED_AT_START)];
    let rest = match reasons.len() - named.len() {
        0 => String::new(),
        more => format!("; {more} more: see `toolcrib list --all`"),
    };
    tracing::warn!(
        "{} unavailable: {}{rest}",
        screen::count(reasons.len(), "tool"),
        named.join("; ")
    );
}

/// Logs once per start that nothing is pinned: a lock in mode `warn` is otherwise silent until it
/// is written.
pub(super) fn log_missing_lock(started: &Started) {
    let registry = &started.config.registry;
    let files = started.manifests.files();
    let declares = files.declarations().next().is_some() || files.upstreams().next().is_some();
    let pins_nothing = || matches!(Lock::read(&registry.lock_file), Ok(None));
    if registry.lock == LockMode::Warn && declares && pins_nothing() {
        tracing::warn!(
            "nothing is pinned in {}. `toolcrib lock` accepts the tools as they are now; with \
             `registry.lock: enforce` what changes later is blocked until it is accepted",
            registry.lock_file.display()
        );
    }
}

/// How long a start waits for the check of what this machine can enforce, which usually takes
/// milliseconds.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// Logs which parts of confinement profiles this machine cannot enforce. It does not wait for an
/// unresponsive helper: clients are served in the meantime.
pub(super) fn log_unenforced_profiles(require: SandboxRequire) {
    let then = match require {
        SandboxRequire::Required => "programs that need it are refused",
        SandboxRequire::BestEffort => "programs run without it, because of `sandbox.require`",
    };
    let (done, probed) = mpsc::channel();
    std::thread::spawn(move || {
        for shortfall in jail::probe() {
            tracing::warn!("{shortfall}: {then}");
        }
        // The start may have gone on.
        let _ = done.send(());
    });
    let _ = probed.recv_timeout(PROBE_WAIT);
}
