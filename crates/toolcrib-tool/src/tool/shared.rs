//! One instance of a tool that answers all calls of an entry.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::Tool;

/// One instance of a tool that answers all calls of an entry. It dereferences to the [`Tool`].
///
/// Clones are the same instance, and so are those in clones of an entry or a [`Body`](crate::Body). The
/// instance is closed once ([`Tool::close`]), when the last registry and the last call let go of it. To
/// offer one instance under several names or in several registries, clone its entry or its body. If you
/// wrap the same `Arc` twice, each wrapper counts as an instance and is closed on its own.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};
///
/// let define = |name: &str| ToolDefinition::builder(name).description("Answer.").build();
/// let body = Arc::new(tool_fn(|_: serde_json::Value, _| async { "pong" }));
/// let ping = ToolEntry::new(define("ping")?, body, Source::new(Layer::Host, "example"));
/// let echo = ToolEntry { definition: Arc::new(define("echo")?), ..ping.clone() };
/// # assert_eq!((ping.name(), echo.name()), ("ping", "echo"));
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
#[derive(Clone)]
pub struct SharedTool(Arc<Instance>);

struct Instance {
    tool: Arc<dyn Tool>,
    /// The data that registries attach to the instance; it is dropped with the last registry that
    /// holds it.
    record: Mutex<Option<Weak<dyn Any + Send + Sync>>>,
}

impl SharedTool {
    /// An instance of its own.
    pub fn new(tool: Arc<dyn Tool>) -> Self {
        Self(Arc::new(Instance { tool, record: Mutex::new(None) }))
    }

    /// The tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.0.tool
    }

    /// Whether both are the same instance.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The record that registries share about this instance. If there is none, `make` makes it; its
    /// argument says whether there was one before, which has been dropped since.
    #[doc(hidden)]
    pub fn record(
        &self,
        make: impl FnOnce(bool) -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        let mut record = self.0.record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = record.as_ref().and_then(Weak::upgrade) {
            return known;
        }
        let fresh = make(record.is_some());
        *record = Some(Arc::downgrade(&fresh));
        fresh
    }
}

impl Deref for SharedTool {
    type Target = dyn Tool;

    fn deref(&self) -> &Self::Target {
        self.0.tool.as_ref()
    }
}

impl fmt::Debug for SharedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedTool")
    }
}
