//! Telling clients what has changed.

pub(crate) mod catalog_changes;
pub(crate) mod list_changes;
pub(crate) mod notifier;
pub(crate) mod stream;
pub(crate) mod subscriptions;
