//! Telling a client what has changed, as long as it is there.

use std::collections::BTreeSet;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSendError, SubscriptionSink};
use tokio::sync::watch;

use crate::McpServer;
use crate::notify::catalog_changes::{CatalogChange, CatalogChanges};
use crate::notify::list_changes::ListChanges;

/// Somebody who is told.
pub(crate) trait Told: Send + Sync {
    /// Waits until somebody listens; false once nobody will.
    fn is_listening(&self) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }

    /// Tells that the list of tools is another one; false once nobody is there.
    fn tools(&self) -> impl Future<Output = bool> + Send;

    /// Tells of a change of the catalog; false once nobody is there.
    fn catalog(&self, change: CatalogChange) -> impl Future<Output = bool> + Send;
}

impl Told for Peer<RoleServer> {
    async fn tools(&self) -> bool {
        self.notify_tool_list_changed().await.is_ok()
    }

    async fn catalog(&self, change: CatalogChange) -> bool {
        let told = match change {
            CatalogChange::Prompts => self.notify_prompt_list_changed().await,
            CatalogChange::Resources => self.notify_resource_list_changed().await,
            CatalogChange::Content(uri) => {
                self.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await
            }
        };
        told.is_ok()
    }
}

/// The client of a session over HTTP, which is told while it listens to the session's own stream. What
/// changes before that is told once, when it does: a session that its client has left costs nothing more
/// with every change.
pub(crate) struct OfSession {
    pub(crate) peer: Peer<RoleServer>,
    /// How many such streams are open; closed with the session.
    pub(crate) listening: watch::Receiver<usize>,
}

impl Told for OfSession {
    async fn is_listening(&self) -> bool {
        self.listening.clone().wait_for(|streams| *streams > 0).await.is_ok()
    }

    async fn tools(&self) -> bool {
        self.peer.tools().await
    }

    async fn catalog(&self, change: CatalogChange) -> bool {
        self.peer.catalog(change).await
    }
}

impl Told for SubscriptionSink {
    async fn tools(&self) -> bool {
        is_there(&self.notify_tool_list_changed().await)
    }

    async fn catalog(&self, change: CatalogChange) -> bool {
        is_there(&match change {
            CatalogChange::Prompts => self.notify_prompt_list_changed().await,
            CatalogChange::Resources => self.notify_resource_list_changed().await,
            CatalogChange::Content(uri) => self.notify_resource_updated(uri).await,
        })
    }
}

/// A subscription is there also where it did not ask for this.
fn is_there(told: &Result<(), SubscriptionSendError>) -> bool {
    matches!(told, Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)))
}

/// All that a client is told of, from when this was made.
pub(crate) struct Changes {
    tools: ListChanges,
    catalog: Option<CatalogChanges>,
}

impl Changes {
    pub(crate) fn of(server: &McpServer) -> Self {
        Self { tools: ListChanges::new(server), catalog: server.catalog().map(CatalogChanges::new) }
    }

    /// Tells `client` until it is gone. `followed` are the resources whose content it wants to be told
    /// of.
    pub(crate) async fn tell(
        mut self,
        client: &impl Told,
        followed: impl Fn() -> BTreeSet<String>,
    ) {
        let of_tools = async {
            while self.tools.next().await && client.is_listening().await {
                self.tools.tells_now();
                if !client.tools().await {
                    return;
                }
            }
        };
        let Some(catalog) = &mut self.catalog else { return of_tools.await };
        let of_catalog = async {
            while let Some(changes) = catalog.next(&followed).await
                && client.is_listening().await
            {
                for change in changes {
                    if !client.catalog(change).await {
                        return;
                    }
                }
            }
        };
        tokio::select! {
            () = of_tools => {}
            () = of_catalog => {}
        }
    }
}
