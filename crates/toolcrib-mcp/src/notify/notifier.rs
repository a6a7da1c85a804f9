//! Notifies a client of changes while it is connected.

use std::collections::BTreeSet;
use std::future::pending;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionSendError, SubscriptionSink};
use tokio::sync::watch;

use crate::McpServer;
use crate::notify::catalog_changes::{CatalogChange, CatalogChanges, OfferChanges};
use crate::notify::list_changes::ListChanges;

/// A client that receives notifications.
pub(crate) trait ChangeListener: Send + Sync {
    /// Waits until the client listens; returns false if it never will.
    fn is_listening(&self) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }

    /// Notifies that the tool list has changed; returns false if the client is gone.
    fn tools(&self) -> impl Future<Output = bool> + Send;

    /// Notifies of a change of the catalog; returns false if the client is gone.
    fn catalog(&self, change: CatalogChange) -> impl Future<Output = bool> + Send;
}

impl ChangeListener for Peer<RoleServer> {
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

/// The client of an HTTP session, which is notified while it listens to the session's own stream.
/// Earlier changes are reported once when it starts to listen, so that a session without a listener
/// costs nothing per change.
pub(crate) struct SessionListener {
    pub(crate) peer: Peer<RoleServer>,
    /// How many such streams are open; closed together with the session.
    pub(crate) listening: watch::Receiver<usize>,
}

impl ChangeListener for SessionListener {
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

impl ChangeListener for SubscriptionSink {
    async fn tools(&self) -> bool {
        is_connected(&self.notify_tool_list_changed().await)
    }

    async fn catalog(&self, change: CatalogChange) -> bool {
        is_connected(&match change {
            CatalogChange::Prompts => self.notify_prompt_list_changed().await,
            CatalogChange::Resources => self.notify_resource_list_changed().await,
            CatalogChange::Content(uri) => self.notify_resource_updated(uri).await,
        })
    }
}

/// A subscription that did not ask for this kind of change still exists.
fn is_connected(told: &Result<(), SubscriptionSendError>) -> bool {
    matches!(told, Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)))
}

/// All changes that a client is notified of, from the creation of this value on.
pub(crate) struct RecordedChanges {
    tools: ListChanges,
    catalog: Option<CatalogChanges>,
    offers: Option<OfferChanges>,
}

impl RecordedChanges {
    pub(crate) fn of(server: &McpServer) -> Self {
        Self {
            tools: ListChanges::new(server),
            catalog: server.catalog().map(CatalogChanges::new),
            offers: OfferChanges::new(server),
        }
    }

    /// Notifies `client` until it is gone. `followed` are the resources whose content it is
    /// subscribed to.
    pub(crate) async fn tell(
        mut self,
        client: &impl ChangeListener,
        followed: impl Fn() -> BTreeSet<String>,
    ) {
        let of_tools = async {
            while self.tools.next().await && client.is_listening().await {
                self.tools.mark_notified();
                if !client.tools().await {
                    return;
                }
            }
        };
        let of_catalog = async {
            let Some(catalog) = &mut self.catalog else { return pending().await };
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
        let of_upstreams = async {
            let Some(offers) = &mut self.offers else { return pending().await };
            while let Some(changes) = offers.next().await
                && client.is_listening().await
            {
                for change in changes {
                    if !client.catalog(change).await {
                        return;
                    }
                }
            }
            // Without upstreams, the other changes are still reported.
            if offers.have_ended() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = of_tools => {}
            () = of_catalog => {}
            () = of_upstreams => {}
        }
    }
}
