//! Notifications of new snapshots.

use tokio::sync::watch;

/// Reports changes of a registry after its creation
/// ([`Registry::changes`](crate::Registry::changes)).
///
/// ```
/// use toolcrib_core::{Mock, Registry};
/// use toolcrib_tool::ToolDefinition;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::scratch().build()?;
/// let mut changes = registry.changes();
/// let definition = ToolDefinition::builder("ping").description("Answer.").build()?;
/// let _ = registry.register(Mock::tool(definition).answers("pong").entry())?;
/// assert_eq!(changes.next().await, Some(registry.snapshot().generation()));
///
/// drop(registry);
/// assert_eq!(changes.next().await, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RegistryChanges(pub(super) watch::Receiver<u64>);

impl RegistryChanges {
    /// Waits for a new snapshot and returns its generation; `None` once the registry is gone. Of
    /// several new snapshots it reports the last. The future is cancel-safe.
    pub async fn next(&mut self) -> Option<u64> {
        self.0.changed().await.ok()?;
        Some(*self.0.borrow_and_update())
    }
}
