//! Subscriptions to changes, for servers that report them only on request.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, SubscriptionFilter};
use rmcp::service::ServiceError;
use rmcp::{Peer, RoleClient};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::backoff::Backoff;

/// Delays between two streams of changes: servers and proxies may close a stream at any time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Whether a server reports changes only to subscribers, as servers without a handshake do. A
/// server whose lists never change is not asked.
pub(in crate::upstream) fn needs_subscription(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|server| {
        let changes = server.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        !server.protocol_version.has_initialize() && changes == Some(true)
    })
}

/// Subscribes to changes, and again whenever the stream ends. Returns if the server does not
/// support subscriptions.
pub(in crate::upstream) async fn listen(peer: Peer<RoleClient>, changed: Arc<Notify>) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    loop {
        let since = Instant::now();
        match peer.listen(filter.clone()).await {
            Ok(mut stream) => {
                // Changes before the subscription are not reported.
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
