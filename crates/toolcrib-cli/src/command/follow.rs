//! Servers follow their manifests: what is saved is live a moment later.

use tokio::task::JoinHandle;
use toolcrib::manifests::Reloader;

use crate::startup::Started;

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Follows the manifests, unless the config says not to, and reads them again on SIGHUP.
///
/// Must be called on a runtime.
pub(super) fn manifests(started: &Started) -> anyhow::Result<Option<Following>> {
    let Some(manifests) = started.crib.manifests().cloned() else { return Ok(None) };
    if started.config.manifests.watch {
        manifests.watch()?;
    }
    Ok(Some(Following(tokio::spawn(reload_on_hangup(manifests)))))
}

async fn reload_on_hangup(manifests: Reloader) {
    use tokio::signal::unix::{SignalKind, signal};

    // Without a handler SIGHUP ends the process by itself.
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        tracing::info!("asked to read the manifests again");
        let manifests = manifests.clone();
        // Reads files.
        if tokio::task::spawn_blocking(move || manifests.reload()).await.is_err() {
            return;
        }
    }
}
