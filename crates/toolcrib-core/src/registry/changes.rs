//! Hearing of new snapshots.

use tokio::sync::watch;

/// Hears of every change of a registry that comes after it was made
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
    /// Waits for a snapshot that it has not told of, and says its generation; `None` once the registry
    /// is gone. Of several snapshots that came meanwhile it tells the last. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<u64> {
        self.0.changed().await.ok()?;
        Some(*self.0.borrow_and_update())
    }
}
