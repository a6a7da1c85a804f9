//! Records changes for subscriptions of 2026-07-28 before they are acknowledged.

use std::sync::{Mutex, PoisonError};

use tokio::task::Id;

use crate::notify::notifier::RecordedChanges;

/// The changes of subscriptions that are being acknowledged.
///
/// One task accepts, acknowledges and then serves a subscription, in this order; only the task's id
/// links the first call to the last. The entry of a client that disconnects before the
/// acknowledgement stays until its connection ends, shortly after.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<Vec<(Option<Id>, RecordedChanges)>>);

impl Subscriptions {
    /// Records the changes for this task's subscription.
    pub(crate) fn note(&self, changes: RecordedChanges) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = tokio::task::try_id();
        noted.retain(|(of, _)| *of != id);
        noted.push((id, changes));
    }

    /// Takes the changes last recorded for this task.
    pub(crate) fn noted(&self) -> Option<RecordedChanges> {
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

    /// Whether there is something to report at once.
    async fn has_news(changes: RecordedChanges) -> bool {
        let (client, mut told) = mpsc::unbounded_channel();
        let telling = changes.tell(&client, BTreeSet::new);
        let _ = tokio::time::timeout(Duration::ZERO, telling).await;
        told.try_recv().is_ok()
    }

    #[tokio::test]
    async fn changes_before_the_acknowledgement_go_to_that_subscription_only() {
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        let server = McpServer::new(executor.clone(), McpOptions::default());
        let subscriptions = Arc::new(Subscriptions::default());
        // Accepts the subscription and continues after the acknowledgement.
        let accept = async || {
            let (subscriptions, server) = (Arc::clone(&subscriptions), server.clone());
            let (accepted, is_accepted) = oneshot::channel();
            let (acknowledge, acknowledged) = oneshot::channel::<()>();
            let changes = tokio::spawn(async move {
                subscriptions.note(RecordedChanges::of(&server));
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
