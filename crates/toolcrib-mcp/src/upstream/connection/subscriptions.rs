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

/// The changes to subscribe to: those that a server reports only to subscribers, as servers without a
/// handshake do. `None` if the server has a handshake, or if its lists never change.
pub(in crate::upstream) fn subscription(peer: &Peer<RoleClient>) -> Option<SubscriptionFilter> {
    let server = peer.peer_info()?;
    if server.protocol_version.has_initialize() {
        return None;
    }
    let offered = &server.capabilities;
    let tools = offered.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true);
    let prompts = offered.prompts.as_ref().and_then(|prompts| prompts.list_changed) == Some(true);
    let resources = offered.resources.as_ref().and_then(|one| one.list_changed) == Some(true);
    if !(tools || prompts || resources) {
        return None;
    }
    let mut filter = SubscriptionFilter::builder();
    if tools {
        filter = filter.tools_list_changed();
    }
    if prompts {
        filter = filter.prompts_list_changed();
    }
    if resources {
        filter = filter.resources_list_changed();
    }
    Some(filter.build())
}

/// Subscribes to changes, and again whenever the stream ends. Returns if the server does not
/// support subscriptions.
pub(in crate::upstream) async fn listen(
    peer: Peer<RoleClient>,
    filter: SubscriptionFilter,
    changed: Arc<Notify>,
) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
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
