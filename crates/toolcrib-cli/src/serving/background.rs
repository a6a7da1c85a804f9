//! What goes on beside serving: manifests are followed, and the owner can operate the server.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use toolcrib::Toolcrib;
use toolcrib::http::HttpServer;
use toolcrib::mcp::McpServer;
use toolcrib::servers::{Announcement, OwnerSocket};

use crate::startup::Started;

/// Tasks beside a server, which end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    tasks: Vec<JoinHandle<()>>,
    /// How commands find the server.
    announcement: Announcement,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Beside {
    /// Follows the manifests, unless the config says not to, and reads them and the config again on SIGHUP.
    ///
    /// Must be called on a runtime.
    pub(crate) fn begin(started: &Started) -> anyhow::Result<Self> {
        let mut beside = Self::default();
        if let Some(manifests) = started.crib.manifests()
            && started.config.manifests.watch
        {
            manifests.watch()?;
        }
        // Here and not in the task: until there is a handler, SIGHUP ends the process.
        match signal(SignalKind::hangup()) {
            Ok(hangup) => {
                let reloading = reload_on_hangup(started.crib.clone(), hangup);
                beside.tasks.push(tokio::spawn(reloading));
            }
            Err(error) => tracing::warn!("SIGHUP will end this server: {error}"),
        }
        Ok(beside)
    }

    /// Lets the owner operate a server that has no HTTP listener of its own, where there is a place for
    /// the socket.
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

    /// Ends the tasks, and waits until they have: then the owner's socket is gone.
    pub(crate) async fn end(mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
            let _ = task.await;
        }
    }
}

/// The private socket of this server with the links to it, if there is a place for one. A server without it serves as well.
pub(crate) async fn owner_socket(started: &Started) -> Option<(OwnerSocket, Announcement)> {
    let place = match &started.control {
        Ok(place) => place,
        // Nobody has asked for it.
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

/// Reads the config and the manifests again whenever the process gets SIGHUP.
async fn reload_on_hangup(crib: Toolcrib, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        tracing::info!("asked to read the config and the manifests again");
        let crib = crib.clone();
        // Reads files.
        match tokio::task::spawn_blocking(move || crib.reload()).await {
            Ok(Ok(_)) => {}
            Ok(Err(reason)) => tracing::warn!("the reload failed: {reason}"),
            Err(_) => return,
        }
    }
}
