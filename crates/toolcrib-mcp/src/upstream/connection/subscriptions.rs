//! Hearing of changes from servers that have to be asked to tell of them.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::ServiceError;
use rmcp::{Peer, RoleClient};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::backoff::Backoff;

/// Between two streams of changes: servers and what is between may end them at any time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Whether a server tells of changes only to those who ask: servers without a handshake have nobody to
/// tell. One that never changes is not asked.
pub(in crate::upstream) fn has_to_be_asked(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|server| {
        let changes = server.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        !server.protocol_version.has_initialize() && changes == Some(true)
    })
}

/// Asks to be told of changes, and again whenever the stream of them ends. Completes if the server
/// knows nothing of it.
pub(in crate::upstream) async fn listen(peer: Peer<RoleClient>, changed: Arc<Notify>) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    loop {
        let since = Instant::now();
        match peer.listen(filter.clone()).await {
            Ok(mut stream) => {
                // Whatever changed before is not told of.
                changed.notify_one();
                while let Ok(Some(_)) = stream.next().await {
                    changed.notify_one();
                }
            }
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                return;
            }
            Err(_) => {}
        }
        sleep(backoff.next(since.elapsed())).await;
    }
}
