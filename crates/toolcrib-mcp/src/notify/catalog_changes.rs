//! Detects changes of the catalog for notifications.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use crate::McpServer;
use crate::catalog::{Catalog, Offer, Prompt, Resource};
use crate::upstream::UpstreamOffers;

/// A kind of change.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CatalogChange {
    /// The list of prompts, or how they look.
    Prompts,
    /// The list of resources, or how they look.
    Resources,
    /// The content of the resource at that address.
    Content(String),
}

/// Waits for changes of what upstreams offer besides tools.
pub(crate) struct OfferChanges {
    server: McpServer,
    changes: watch::Receiver<()>,
    last: UpstreamOffers,
}

impl OfferChanges {
    /// Reports changes from now on; `None` if no upstream can offer anything here.
    pub(crate) fn new(server: &McpServer) -> Option<Self> {
        // In this order, a change in between is reported twice rather than never.
        let changes = server.options().linked.as_ref()?.changes()?;
        Some(Self { server: server.clone(), changes, last: server.upstream_offers() })
    }

    /// Whether there will be no more changes, because the upstreams are gone.
    pub(crate) fn have_ended(&self) -> bool {
        self.changes.has_changed().is_err()
    }

    /// Waits for the next changes that the client can see; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Vec<CatalogChange>> {
        loop {
            self.changes.changed().await.ok()?;
            let now = self.server.upstream_offers();
            let mut changes = Vec::new();
            if now.prompts != self.last.prompts {
                changes.push(CatalogChange::Prompts);
            }
            if now.resources != self.last.resources || now.templates != self.last.templates {
                changes.push(CatalogChange::Resources);
            }
            self.last = now;
            if !changes.is_empty() {
                return Some(changes);
            }
        }
    }
}

/// Waits for changes of a catalog.
pub(crate) struct CatalogChanges {
    catalog: Catalog,
    changes: watch::Receiver<()>,
    last: Arc<Offer>,
}

impl CatalogChanges {
    /// Reports changes from now on.
    pub(crate) fn new(catalog: &Catalog) -> Self {
        // In this order, a change in between is reported twice rather than never.
        let changes = catalog.changes();
        Self { catalog: catalog.clone(), changes, last: catalog.offer() }
    }

    /// Waits for the next changes, including those of subscribed resources; `None` when there will
    /// be no more.
    pub(crate) async fn next(
        &mut self,
        followed: impl Fn() -> BTreeSet<String>,
    ) -> Option<Vec<CatalogChange>> {
        self.changes.changed().await.ok()?;
        let now = self.catalog.offer();
        let mut changes = Vec::new();
        if !same(&self.last.prompts, &now.prompts, prompt_looks_the_same) {
            changes.push(CatalogChange::Prompts);
        }
        if !same(&self.last.resources, &now.resources, resource_looks_the_same) {
            changes.push(CatalogChange::Resources);
        }
        for uri in followed() {
            if self.last.resource(&uri) != now.resource(&uri) {
                changes.push(CatalogChange::Content(uri));
            }
        }
        self.last = now;
        Some(changes)
    }
}

fn same<T>(before: &[T], now: &[T], looks_the_same: fn(&T, &T) -> bool) -> bool {
    before.len() == now.len()
        && before.iter().zip(now).all(|(one, other)| looks_the_same(one, other))
}

/// Compares what lists show of a prompt: not its messages.
fn prompt_looks_the_same(one: &Prompt, other: &Prompt) -> bool {
    let shown =
        |prompt: &Prompt| (prompt.name.clone(), prompt.title.clone(), prompt.description.clone());
    shown(one) == shown(other) && one.icons == other.icons && one.arguments == other.arguments
}

/// Compares what lists show of a resource: not its content.
fn resource_looks_the_same(one: &Resource, other: &Resource) -> bool {
    one.address == other.address
        && one.name == other.name
        && one.title == other.title
        && one.icons == other.icons
        && one.description == other.description
        && one.mime_type == other.mime_type
}
