//! Cancellation tokens in a tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::select_all;
use tokio::sync::Notify;

/// A cancellation token in a tree: turn, its calls, and their nested calls.
///
/// A token is cancelled as soon as it or any of its ancestors is. Clones are the same token.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancellation(Arc<TokenNode>);

#[derive(Debug, Default)]
struct TokenNode {
    set: AtomicBool,
    /// Whether the client lost its rights. It is set before `set`.
    revoked: AtomicBool,
    changed: Notify,
    /// The longest wind-down, in milliseconds, of the work under this token and its descendants.
    wind_down: AtomicU64,
    parent: Option<Cancellation>,
}

impl Cancellation {
    /// Creates a child token.
    pub(crate) fn child(&self) -> Self {
        Self(Arc::new(TokenNode { parent: Some(self.clone()), ..TokenNode::default() }))
    }

    /// Cancels this token and its descendants.
    pub(crate) fn set(&self) {
        self.0.set.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    /// Cancels this token and its descendants because the client lost its rights.
    pub(crate) fn revoke(&self) {
        self.0.revoked.store(true, Ordering::Release);
        self.set();
    }

    /// Whether this token or an ancestor was cancelled because the client lost its rights.
    pub(crate) fn is_revoked(&self) -> bool {
        self.chain().any(|node| node.revoked.load(Ordering::Acquire))
    }

    /// Completes when this token or an ancestor is cancelled.
    pub(crate) async fn cancelled(&self) {
        let chain = self.chain().map(|node| Box::pin(node.wait()));
        select_all(chain).await;
    }

    /// Records the wind-down time of work under this token.
    pub(crate) fn needs(&self, wind_down: Duration) {
        if wind_down.is_zero() {
            return;
        }
        let millis = u64::try_from(wind_down.as_millis()).unwrap_or(u64::MAX);
        for node in self.chain() {
            node.wind_down.fetch_max(millis, Ordering::AcqRel);
        }
    }

    /// The longest wind-down of the work under this token and its descendants.
    pub(crate) fn wind_down(&self) -> Duration {
        Duration::from_millis(self.0.wind_down.load(Ordering::Acquire))
    }

    /// Whether this token or an ancestor is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.chain().any(|node| node.set.load(Ordering::Acquire))
    }

    /// This token and its ancestors.
    fn chain(&self) -> impl Iterator<Item = &TokenNode> {
        std::iter::successors(Some(&*self.0), |node| Some(&*node.parent.as_ref()?.0))
    }
}

impl TokenNode {
    async fn wait(&self) {
        let changed = self.changed.notified();
        tokio::pin!(changed);
        // Registered before the flag is read, so that a change between the two is not missed.
        changed.as_mut().enable();
        if !self.set.load(Ordering::Acquire) {
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::Cancellation;

    #[tokio::test]
    async fn cancelling_reaches_everything_below_and_nothing_above() {
        let turn = Cancellation::default();
        let call = turn.child();
        let (nested, sibling) = (call.child(), turn.child());
        let mut waits = std::pin::pin!(nested.cancelled());
        assert!(waits.as_mut().now_or_never().is_none());
        call.set();
        waits.await;
        assert!(nested.is_cancelled() && call.is_cancelled());
        assert!(!turn.is_cancelled() && !sibling.is_cancelled());
        turn.set();
        sibling.cancelled().await;
    }
}
