//! What subscriptions of 2026-07-28 are told of, from before their clients know that they are heard.

use std::sync::{Mutex, PoisonError};

use tokio::task::Id;

use crate::notify::notifier::Changes;

/// The changes of subscriptions that are being acknowledged.
///
/// A subscription is accepted, acknowledged and then served by one task, in this order; nothing but the
/// task is the same in both calls. One whose client was gone before it was acknowledged stays until
/// its connection ends, which is soon.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<Vec<(Option<Id>, Changes)>>);

impl Subscriptions {
    /// Notes what a subscription of this task is told of.
    pub(crate) fn note(&self, changes: Changes) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = tokio::task::try_id();
        noted.retain(|(of, _)| *of != id);
        noted.push((id, changes));
    }

    /// What was noted of this task last.
    pub(crate) fn noted(&self) -> Option<Changes> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = tokio::task::try_id();
        let at = noted.iter().position(|(of, _)| *of == id)?;
        Some(noted.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio::sync::oneshot;
    use toolcrib_core::{Change, Executor, Mock, Registry, SourceUnit};
    use toolcrib_tool::{Layer, ToolDefinition};

    use super::*;
    use crate::{McpOptions, McpServer};

    /// Whether there is something to tell at once.
    async fn has_news(changes: Changes) -> bool {
        let (client, mut told) = mpsc::unbounded_channel();
        let telling = changes.tell(&client, BTreeSet::new);
        let _ = tokio::time::timeout(Duration::ZERO, telling).await;
        told.try_recv().is_ok()
    }

    #[tokio::test]
    async fn what_changes_before_a_subscription_is_acknowledged_is_told_to_it_and_to_no_later_one()
    {
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        let server = McpServer::new(executor.clone(), McpOptions::default());
        let subscriptions = Arc::new(Subscriptions::default());
        // Accepts, and goes on once it is acknowledged.
        let accept = async || {
            let (subscriptions, server) = (Arc::clone(&subscriptions), server.clone());
            let (accepted, is_accepted) = oneshot::channel();
            let (acknowledge, acknowledged) = oneshot::channel::<()>();
            let changes = tokio::spawn(async move {
                subscriptions.note(Changes::of(&server));
                accepted.send(()).unwrap();
                acknowledged.await.unwrap();
                subscriptions.noted().unwrap()
            });
            is_accepted.await.unwrap();
            (acknowledge, changes)
        };
        let (acknowledge_first, first) = accept().await;
        let definition = ToolDefinition::builder("ping").description("Answer.").build().unwrap();
        let unit = SourceUnit::new(Layer::Host, "host");
        let entries = vec![Mock::tool(definition).answers("pong").entry_of(&unit)];
        executor.registry().apply([Change::Replace { unit, entries }]).unwrap();
        let (acknowledge_second, second) = accept().await;
        acknowledge_second.send(()).unwrap();
        acknowledge_first.send(()).unwrap();
        assert!(has_news(first.await.unwrap()).await);
        assert!(!has_news(second.await.unwrap()).await);
        assert!(subscriptions.0.lock().unwrap().is_empty());
    }
}
