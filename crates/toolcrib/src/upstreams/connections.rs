//! Connections to other MCP servers, which follow what is declared.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolcrib_mcp::upstream::{Upstream, Upstreams};

/// The servers to be connected to, as they are declared now. Cloning it is cheap.
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
    /// Those of the host, which come first and stay.
    pub(crate) fn new(host: Vec<Upstream>) -> Self {
        Self(Arc::new(ConnectionsInner {
            host,
            #[cfg(feature = "manifests")]
            of_files: Mutex::default(),
            changes: watch::Sender::new(()),
        }))
    }

    /// Those of the host.
    #[cfg(feature = "manifests")]
    pub(crate) fn host(&self) -> &[Upstream] {
        &self.0.host
    }

    /// Says which servers files name now; what they lose to the host is not among them. Connections
    /// follow when they are told to [look](Self::look_again).
    #[cfg(feature = "manifests")]
    pub(crate) fn of_files(&self, upstreams: Vec<Upstream>) {
        *self.0.of_files.lock().unwrap_or_else(PoisonError::into_inner) = upstreams;
    }

    /// Has connections follow, once there are any. Needs no runtime, and waits for nobody.
    #[cfg(feature = "manifests")]
    pub(crate) fn look_again(&self) {
        self.0.changes.send_replace(());
    }
}

impl ConnectionsInner {
    /// In the order that decides names among their tools.
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
    /// Held from reading what is wanted until it is so: what is older must not come later.
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

    /// Their status.
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// Begins to connect to what is wanted, and follows it from now on.
    pub(crate) async fn connect(&self) {
        self.follow();
        let _turn = self.turn.lock().await;
        let wanted = self.wanted.0.all();
        self.upstreams.set(wanted).await;
    }

    fn follow(&self) {
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        // One that has ended went with its runtime.
        if follower.as_ref().is_none_or(JoinHandle::is_finished) {
            let changes = self.wanted.0.changes.subscribe();
            let wanted = Arc::downgrade(&self.wanted.0);
            let (upstreams, turn) = (self.upstreams.clone(), Arc::clone(&self.turn));
            *follower = Some(tokio::spawn(keep_up(changes, wanted, upstreams, turn)));
        }
    }
}

/// Connects to what is wanted whenever that has changed, until nobody can change it any more. Keeps
/// alive only the connections.
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
