//! Which calls a call was made from, and the slots they hold.

use std::sync::{Arc, OnceLock, Weak};

use tokio::time::Instant;
use toolcrib_tool::{ToolDefinition, ToolError, ToolName};

use crate::admission::slots::ConcurrencySlot;
use crate::call::batch::Barrier;
use crate::call::nested::{RootCall, RunningCall};

/// The calls that lead to a nested call, innermost first. Empty for a call of the host's own.
///
/// It does not keep slots taken: a context that a tool keeps beyond its call must not stop the
/// tool for good.
#[derive(Debug, Clone)]
pub(crate) struct Lineage {
    node: Option<Arc<LineageNode>>,
    /// The calls of the same batch that are at work; `None` below a call that runs alone.
    barrier: Option<Arc<Barrier>>,
    /// The call of the host's own that all of them belong to.
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

/// A call as the origin of others: what it takes to make their [`Lineage`], which few calls ever
/// need.
#[derive(Debug)]
pub(crate) struct Descent {
    parent: Lineage,
    call: Option<Arc<RunningCall>>,
    /// Empty until the call has its permit, and where the tool states no limit.
    slot: OnceLock<Weak<ConcurrencySlot>>,
    /// Whether the call runs alone.
    alone: bool,
}

impl Descent {
    /// Of a call of this definition that was made from the calls of `parent`.
    pub(crate) fn new(parent: &Lineage, definition: &ToolDefinition) -> Self {
        let alone = parent.runs_alone(definition);
        Self { parent: parent.clone(), call: None, slot: OnceLock::new(), alone }
    }

    /// The same of a call that is more than its definition.
    pub(crate) fn of_call(mut self, call: Arc<RunningCall>) -> Self {
        self.call = Some(call);
        self
    }

    /// The call holds this slot, which those it makes may share.
    pub(crate) fn hold(&self, slot: &Arc<ConcurrencySlot>) {
        // A call takes one slot.
        let _ = self.slot.set(Arc::downgrade(slot));
    }

    /// What calls made from this one, a call of `tool`, are admitted with.
    pub(crate) fn lineage(&self, tool: &ToolName) -> Lineage {
        let node = LineageNode {
            tool: tool.clone(),
            call: self.call.clone(),
            slot: self.slot.get().cloned().unwrap_or_default(),
            depth: self.parent.depth() + 1,
            parent: self.parent.clone(),
        };
        let barrier = self.parent.barrier.clone().filter(|_| !self.alone);
        Lineage { node: Some(Arc::new(node)), barrier, root: Arc::clone(&self.parent.root) }
    }
}

impl Lineage {
    /// Of a call that no tool made, or of the calls of one batch.
    pub(crate) fn root() -> Self {
        Self { node: None, barrier: Some(Arc::default()), root: Arc::default() }
    }

    /// The same of one call of the host's own.
    pub(crate) fn of_root(self, root: Arc<RootCall>) -> Self {
        Self { root, ..self }
    }

    /// The call of the host's own that these calls belong to.
    pub(crate) fn outermost(&self) -> &Arc<RootCall> {
        &self.root
    }

    /// The calls that lead here, the innermost first.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Arc<RunningCall>> {
        self.nodes().filter_map(|node| node.call.as_ref())
    }

    /// What the outermost call is answered with whatever came of it, if it is this one.
    pub(crate) fn refusal(&self) -> Option<ToolError> {
        if self.depth() == 0 { self.root.refusal() } else { None }
    }

    /// Whether these calls do nothing but hand a call of that tool on.
    pub(crate) fn hands_on(&self, tool: &str) -> bool {
        let mut next = tool;
        self.calls().all(|call| {
            let hands_on = call.delegates_to(next);
            next = call.tool_name();
            hands_on
        })
    }

    /// The tools of these calls, the outermost first.
    pub(crate) fn callers(&self) -> Vec<String> {
        let mut names: Vec<_> = self.nodes().map(|node| node.tool.as_str().to_owned()).collect();
        names.reverse();
        names
    }

    /// When time ends a call that these calls lead to: the caller's deadline, or the limit of one of
    /// them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let limits = self.calls().filter_map(|call| call.limit_end()).map(|(at, _)| at);
        limits.chain(self.root.deadline()).min()
    }

    /// Where a call stands among those of its batch that are at work.
    pub(crate) fn barrier(&self) -> Option<Arc<Barrier>> {
        self.barrier.clone()
    }

    /// Whether a call of this definition that these calls lead to waits until it can run alone. Calls
    /// of the host's own are put in order by their batch.
    pub(crate) fn runs_alone(&self, definition: &ToolDefinition) -> bool {
        self.depth() > 0 && !definition.parallel()
    }

    /// How many calls lead here: 0 for a call of the host's own.
    pub(crate) fn depth(&self) -> usize {
        self.node.as_ref().map_or(0, |node| node.depth)
    }

    /// The slot a call of this tool holds up the line; a nested call shares it.
    pub(super) fn slot_of(&self, tool: &ToolName) -> Option<Arc<ConcurrencySlot>> {
        self.nodes().filter(|node| node.tool == *tool).find_map(|node| node.slot.upgrade())
    }

    fn nodes(&self) -> impl Iterator<Item = &LineageNode> {
        std::iter::successors(self.node.as_deref(), |node| node.parent.node.as_deref())
    }
}
