//! Connections to other MCP servers, which follow the declarations.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolcrib_mcp::upstream::{Upstream, Upstreams};

/// The servers to connect to, as currently declared. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredUpstreams(Arc<ConnectionsInner>);

#[derive(Debug)]
struct ConnectionsInner {
    host: Vec<Upstream>,
    #[cfg(feature = "manifests")]
    of_files: Mutex<Vec<Upstream>>,
    changes: watch::Sender<()>,
}

impl DeclaredUpstreams {
    /// The servers of the host, which come first and never change.
    pub(crate) fn new(host: Vec<Upstream>) -> Self {
        Self(Arc::new(ConnectionsInner {
            host,
            #[cfg(feature = "manifests")]
            of_files: Mutex::default(),
            changes: watch::Sender::new(()),
        }))
    }

    /// Sets the servers of the host.
    #[cfg(feature = "manifests")]
    pub(crate) fn host(&self) -> &[Upstream] {
        &self.0.host
    }

    /// Sets the servers that files declare, without those whose name the host uses. Connections
    /// follow after a call of [`look_again`](Self::look_again).
    #[cfg(feature = "manifests")]
    pub(crate) fn of_files(&self, upstreams: Vec<Upstream>) {
        *self.0.of_files.lock().unwrap_or_else(PoisonError::into_inner) = upstreams;
    }

    /// Makes the connections, if there are any, follow. Needs no runtime and does not wait.
    #[cfg(feature = "manifests")]
    pub(crate) fn look_again(&self) {
        self.0.changes.send_replace(());
    }
}

impl ConnectionsInner {
    /// In the order that resolves the names of their tools.
    fn all(&self) -> Vec<Upstream> {
        #[cfg_attr(not(feature = "manifests"), expect(unused_mut, reason = "there are no others"))]
        let mut all = self.host.clone();
        #[cfg(feature = "manifests")]
        all.extend(self.of_files.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        all
    }
}

/// The connections of a crib. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    upstreams: Upstreams,
    wanted: DeclaredUpstreams,
    follower: Arc<Mutex<Option<JoinHandle<()>>>>,
    /// Held from reading the wanted servers until they are applied, so that an older state cannot
    /// overwrite a newer one.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Connections {
    pub(crate) fn new(upstreams: Upstreams, wanted: DeclaredUpstreams) -> Self {
        Self { upstreams, wanted, follower: Arc::default(), turn: Arc::default() }
    }

    /// The servers to connect to now.
    #[cfg(feature = "manifests")]
    pub(crate) fn wanted(&self) -> Vec<Upstream> {
        self.wanted.0.all()
    }

    /// The status of the servers.
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// Starts to connect to the wanted servers, and follows changes from now on.
    pub(crate) async fn connect(&self) {
        self.follow();
        let _turn = self.turn.lock().await;
        let wanted = self.wanted.0.all();
        self.upstreams.set(wanted).await;
    }

    fn follow(&self) {
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        // A task that has ended was dropped with its runtime.
        if follower.as_ref().is_none_or(JoinHandle::is_finished) {
            let changes = self.wanted.0.changes.subscribe();
            let wanted = Arc::downgrade(&self.wanted.0);
            let (upstreams, turn) = (self.upstreams.clone(), Arc::clone(&self.turn));
            *follower = Some(tokio::spawn(keep_up(changes, wanted, upstreams, turn)));
        }
    }
}

/// Connects to the wanted servers whenever they have changed, until nobody can change them any
/// more. It keeps only the connections alive.
async fn keep_up(
    mut changes: watch::Receiver<()>,
    wanted: Weak<ConnectionsInner>,
    upstreams: Upstreams,
    turn: Arc<tokio::sync::Mutex<()>>,
) {
    while changes.changed().await.is_ok() {
        let _turn = turn.lock().await;
        let Some(wanted) = wanted.upgrade().map(|parts| parts.all()) else { return };
        upstreams.set(wanted).await;
        upstreams.look_again();
    }
}
