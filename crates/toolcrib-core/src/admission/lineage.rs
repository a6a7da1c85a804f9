//! Which calls a call was made from, and the slots they hold.

use std::sync::{Arc, Weak};

use toolcrib_tool::ToolName;

use super::gate::Slot;

/// The calls that lead to a nested call, innermost first. Empty for a call of the host's own.
///
/// It does not keep slots taken: a context that a tool keeps beyond its call must not stop the
/// tool for good.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lineage(Option<Arc<Node>>);

#[derive(Debug)]
struct Node {
    tool: ToolName,
    slot: Weak<Slot>,
    depth: usize,
    parent: Lineage,
}

impl Lineage {
    /// Of a call that no tool made.
    pub(crate) fn root() -> Self {
        Self(None)
    }

    /// How many calls lead here: 0 for a call of the host's own.
    pub(crate) fn depth(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.depth)
    }

    /// With one more call.
    pub(super) fn with(&self, tool: &ToolName, slot: Option<&Arc<Slot>>) -> Self {
        Self(Some(Arc::new(Node {
            tool: tool.clone(),
            slot: slot.map_or_else(Weak::new, Arc::downgrade),
            depth: self.depth() + 1,
            parent: self.clone(),
        })))
    }

    /// The slot a call of this tool holds up the line; a nested call shares it.
    pub(super) fn slot_of(&self, tool: &ToolName) -> Option<Arc<Slot>> {
        self.nodes().filter(|node| node.tool == *tool).find_map(|node| node.slot.upgrade())
    }

    /// The tools whose slots are held up the line.
    pub(super) fn held(&self) -> Vec<ToolName> {
        let held = self.nodes().filter(|node| node.slot.strong_count() > 0);
        held.map(|node| node.tool.clone()).collect()
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.0.as_deref(), |node| node.parent.0.as_deref())
    }
}
