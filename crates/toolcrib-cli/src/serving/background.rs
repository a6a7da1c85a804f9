//! Background tasks of a server: following manifests, and the owner's socket.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use toolcrib::Toolcrib;
use toolcrib::http::HttpServer;
use toolcrib::mcp::McpServer;
use toolcrib::servers::{Announcement, OwnerSocket};

use crate::serving::service_manager::ServiceManager;
use crate::startup::Started;

/// Background tasks of a server, which end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BackgroundTasks {
    tasks: Vec<JoinHandle<()>>,
    /// Makes the server discoverable by commands.
    announcement: Announcement,
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl BackgroundTasks {
    /// Watches the manifests, unless the config disables it, and reloads them and the config on
    /// SIGHUP. The service manager is told about these reloads, and that the server is alive.
    ///
    /// Must be called on a runtime.
    pub(crate) fn begin(started: &Started, manager: &ServiceManager) -> anyhow::Result<Self> {
        let mut background = Self::default();
        background.tasks.extend(manager.begin_signs_of_life());
        if let Some(manifests) = started.crib.manifests()
            && started.config.manifests.watch
        {
            manifests.watch()?;
        }
        // Installed here instead of in the task: without a handler, SIGHUP ends the process.
        match signal(SignalKind::hangup()) {
            Ok(hangup) => {
                let reloading = reload_on_hangup(started.crib.clone(), hangup, manager.clone());
                background.tasks.push(tokio::spawn(reloading));
            }
            Err(error) => tracing::warn!("SIGHUP will end this server: {error}"),
        }
        Ok(background)
    }

    /// Serves the owner's socket for a server without an HTTP listener, if there is a place for the
    /// socket.
    pub(crate) async fn serve_owner(
        &mut self,
        started: &Started,
        mcp: McpServer,
    ) -> anyhow::Result<()> {
        let Some((socket, announcement)) = owner_socket(started).await else { return Ok(()) };
        self.announcement = announcement;
        let server = HttpServer::for_owner(socket, started.crib.clone(), mcp)?;
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = server.serve(std::future::pending()).await {
                tracing::warn!("the owner's socket is no longer served: {error}");
            }
        }));
        Ok(())
    }

    /// Ends the tasks and waits until they have ended: then the owner's socket is removed.
    pub(crate) async fn end(mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
            let _ = task.await;
        }
    }
}

/// The private socket of this server and the links to it, if there is a place for one. A server
/// also runs without it.
pub(crate) async fn owner_socket(started: &Started) -> Option<(OwnerSocket, Announcement)> {
    let place = match &started.control {
        Ok(place) => place,
        // No socket was requested.
        Err(why) => {
            tracing::info!("commands like `toolcrib status` will not reach this server: {why}");
            return None;
        }
    };
    let opened = place.open_socket().await;
    let opened = opened.inspect_err(|error| {
        tracing::warn!("commands like `toolcrib status` will not reach this server: {error}");
    });
    let socket = opened.ok()?;
    let announcement = place.announce(&socket);
    Some((socket, announcement))
}

/// Reloads the config and the manifests whenever the process receives SIGHUP.
async fn reload_on_hangup(crib: Toolcrib, mut hangup: Signal, manager: ServiceManager) {
    while hangup.recv().await.is_some() {
        tracing::info!("reloading the config and the manifests (SIGHUP)");
        manager.reloading();
        let crib = crib.clone();
        // Reloading reads files.
        match tokio::task::spawn_blocking(move || crib.reload()).await {
            Ok(Ok(_)) => manager.ready("reloaded"),
            Ok(Err(reason)) => {
                tracing::warn!("the reload failed: {reason}");
                // The reason may hold what only the log masks.
                manager.ready(
                    "the last reload failed, the settings before it are in effect: see the log",
                );
            }
            Err(_) => return,
        }
    }
}
