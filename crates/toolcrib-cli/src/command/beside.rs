//! What goes on beside serving: manifests are followed, and operators are answered.

use tokio::task::JoinHandle;
use toolcrib::control::ControlSocket;
use toolcrib::manifests::Reloader;

use crate::startup::Started;

/// Tasks beside a server, which end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Beside(Vec<JoinHandle<()>>);

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Follows the manifests, unless the config says not to, reads them again on SIGHUP, and answers at
/// the control socket, if there is a place for one.
///
/// Must be called on a runtime.
pub(super) fn beside(started: &Started) -> anyhow::Result<Beside> {
    let mut beside = Beside::default();
    if let Some(manifests) = started.crib.manifests().cloned() {
        if started.config.manifests.watch {
            manifests.watch()?;
        }
        beside.0.push(tokio::spawn(reload_on_hangup(manifests)));
    }
    // A server without it serves as well.
    match started.control.as_ref().map(ControlSocket::open) {
        Ok(Ok(socket)) => beside.0.push(tokio::spawn(socket.serve(started.crib.clone()))),
        Ok(Err(error)) => tracing::warn!("`toolcrib reload` will not reach this server: {error}"),
        // What nobody has asked for.
        Err(why) => tracing::info!("`toolcrib reload` will not reach this server: {why}"),
    }
    Ok(beside)
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
