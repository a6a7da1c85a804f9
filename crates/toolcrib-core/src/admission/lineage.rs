//! Which calls a call was made from, and the slots they hold.

use std::sync::{Arc, OnceLock, Weak};

use tokio::time::Instant;
use toolcrib_tool::{ToolDefinition, ToolError, ToolName};

use crate::admission::slots::ConcurrencySlot;
use crate::call::batch::Barrier;
use crate::call::nested::{RootCall, RunningCall};

/// The callers of a nested call, innermost first. Empty for a call that the host made.
///
/// It does not keep slots occupied: a tool that keeps its context beyond the call must not block
/// itself for good.
#[derive(Debug, Clone)]
pub(crate) struct Lineage {
    node: Option<Arc<LineageNode>>,
    /// The running calls of the same batch; `None` below a call that runs alone.
    barrier: Option<Arc<Barrier>>,
    /// The root call that all of them belong to.
    root: Arc<RootCall>,
}

#[derive(Debug)]
struct LineageNode {
    tool: ToolName,
    /// `None` in tests of admission alone.
    call: Option<Arc<RunningCall>>,
    slot: Weak<ConcurrencySlot>,
    depth: usize,
    parent: Lineage,
}

/// A call as the caller of others: what is needed to build their [`Lineage`], which few calls ever
/// do.
#[derive(Debug)]
pub(crate) struct Descent {
    parent: Lineage,
    /// Empty until the call has its permit, or if the tool states no limit.
    slot: OnceLock<Weak<ConcurrencySlot>>,
    /// Whether the call runs alone.
    alone: bool,
}

impl Descent {
    /// For a call of this definition that was made below `parent`.
    pub(crate) fn new(parent: &Lineage, definition: &ToolDefinition) -> Self {
        let alone = parent.runs_alone(definition);
        Self { parent: parent.clone(), slot: OnceLock::new(), alone }
    }

    /// The calls that it was made from.
    pub(crate) fn parent(&self) -> &Lineage {
        &self.parent
    }

    /// Records the slot that the call holds, which its nested calls may share.
    pub(crate) fn hold(&self, slot: &Arc<ConcurrencySlot>) {
        // A call takes only one slot.
        let _ = self.slot.set(Arc::downgrade(slot));
    }

    /// The lineage of the calls that `call`, which is one of `tool`, makes.
    pub(crate) fn lineage(&self, tool: &ToolName, call: Option<Arc<RunningCall>>) -> Lineage {
        let node = LineageNode {
            tool: tool.clone(),
            call,
            slot: self.slot.get().cloned().unwrap_or_default(),
            depth: self.parent.depth() + 1,
            parent: self.parent.clone(),
        };
        let barrier = self.parent.barrier.clone().filter(|_| !self.alone);
        Lineage { node: Some(Arc::new(node)), barrier, root: Arc::clone(&self.parent.root) }
    }
}

impl Lineage {
    /// The lineage of a root call, which shares the barrier with the other calls of its batch.
    pub(crate) fn root(root: Arc<RootCall>, barrier: Arc<Barrier>) -> Self {
        Self { node: None, barrier: Some(barrier), root }
    }

    /// The root call that these calls belong to.
    pub(crate) fn outermost(&self) -> &Arc<RootCall> {
        &self.root
    }

    /// The callers, innermost first.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Arc<RunningCall>> {
        self.nodes().filter_map(|node| node.call.as_ref())
    }

    /// The answer of the root call if it was refused; `None` for nested calls.
    pub(crate) fn refusal(&self) -> Option<ToolError> {
        if self.depth() == 0 { self.root.refusal() } else { None }
    }

    /// Whether all these calls only delegate to a call of that tool.
    pub(crate) fn hands_on(&self, tool: &str) -> bool {
        let mut next = tool;
        self.calls().all(|call| {
            let hands_on = call.delegates_to(next);
            next = call.tool_name();
            hands_on
        })
    }

    /// The tools of these calls, outermost first.
    pub(crate) fn callers(&self) -> Vec<String> {
        let mut names: Vec<_> = self.nodes().map(|node| node.tool.as_str().to_owned()).collect();
        names.reverse();
        names
    }

    /// When a call below these calls is ended: at the caller's deadline, or at the time limit of
    /// one of them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let limits = self.calls().filter_map(|call| call.limit_end()).map(|(at, _)| at);
        limits.chain(self.root.deadline()).min()
    }

    /// The barrier that the running calls of the batch share.
    pub(crate) fn barrier(&self) -> Option<Arc<Barrier>> {
        self.barrier.clone()
    }

    /// Whether a nested call of this definition waits until it can run alone. Root calls are
    /// ordered by their batch.
    pub(crate) fn runs_alone(&self, definition: &ToolDefinition) -> bool {
        self.depth() > 0 && !definition.parallel()
    }

    /// The nesting depth: 0 for a root call.
    pub(crate) fn depth(&self) -> usize {
        self.node.as_ref().map_or(0, |node| node.depth)
    }

    /// The slot that a caller of the same tool holds; a nested call shares it.
    pub(super) fn slot_of(&self, tool: &ToolName) -> Option<Arc<ConcurrencySlot>> {
        self.nodes().filter(|node| node.tool == *tool).find_map(|node| node.slot.upgrade())
    }

    fn nodes(&self) -> impl Iterator<Item = &LineageNode> {
        std::iter::successors(self.node.as_deref(), |node| node.parent.node.as_deref())
    }
}
