//! Notifications to clients about changes.

pub(crate) mod catalog_changes;
pub(crate) mod list_changes;
pub(crate) mod notifier;
pub(crate) mod stream;
pub(crate) mod subscriptions;
