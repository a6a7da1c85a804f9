//! Detects changes of the catalog for notifications.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use crate::catalog::{Catalog, Offer, Prompt, Resource};

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
