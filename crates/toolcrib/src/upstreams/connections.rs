//! Connections to other MCP servers, which follow what is declared.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolcrib_mcp::upstream::{Upstream, Upstreams};

use super::declared::Declared;
#[cfg(feature = "manifests")]
use super::declared::FileChange;

/// The servers to be connected to, as they are declared now. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Wanted(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    declared: Mutex<Declared>,
    changes: watch::Sender<()>,
}

impl Wanted {
    /// Those of the host.
    pub(crate) fn new(host: Vec<Upstream>) -> Self {
        let declared = Mutex::new(Declared::new(host));
        Self(Arc::new(Parts { declared, changes: watch::Sender::new(()) }))
    }

    /// Applies a set of changes of manifests; connections follow, once there are any. Needs no
    /// runtime, and waits for nobody.
    #[cfg(feature = "manifests")]
    pub(crate) fn apply(&self, changes: Vec<FileChange>) {
        self.0.declared().apply(changes);
        // Also where nothing has changed: a look may be about the lock.
        self.0.changes.send_replace(());
    }
}

impl Parts {
    fn declared(&self) -> MutexGuard<'_, Declared> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections of a crib. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    upstreams: Upstreams,
    wanted: Wanted,
    follower: Arc<Mutex<Option<JoinHandle<()>>>>,
    /// Held from reading what is wanted until it is so: what is older must not come later.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Connections {
    pub(crate) fn new(upstreams: Upstreams, wanted: Wanted) -> Self {
        Self { upstreams, wanted, follower: Arc::default(), turn: Arc::default() }
    }

    /// What is to be connected to now.
    #[cfg(feature = "manifests")]
    pub(crate) fn wanted(&self) -> Vec<Upstream> {
        self.wanted.0.declared().wanted()
    }

    /// How it stands with them.
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// Begins to connect to what is wanted, and follows it from now on.
    pub(crate) async fn connect(&self) {
        self.follow();
        let _turn = self.turn.lock().await;
        let wanted = self.wanted.0.declared().wanted();
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
    wanted: Weak<Parts>,
    upstreams: Upstreams,
    turn: Arc<tokio::sync::Mutex<()>>,
) {
    while changes.changed().await.is_ok() {
        let _turn = turn.lock().await;
        let Some(wanted) = wanted.upgrade().map(|parts| parts.declared().wanted()) else { return };
        upstreams.set(wanted).await;
        upstreams.look_again();
    }
}
