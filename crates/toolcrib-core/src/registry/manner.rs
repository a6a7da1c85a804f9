//! What every call asks of its tool's definition, read off it once.

use std::time::Duration;

use toolcrib_tool::{Body, Dedupe, ToolDefinition, ToolEntry};

use crate::policy::asks_by_itself;
use crate::retry;

/// How calls of a tool are made.
///
/// It repeats what the entry and its definition say. These are long, and strewn over the memory:
/// with thousands of tools each word of them that a call reads is a wait of its own. These few lie
/// with what else a call reads of its [`Slot`](super::Slot), and are made together with it.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Manner {
    /// Whether it has a time limit or a text budget of its own.
    own_limits: bool,
    /// Whether the tool says that it only reads.
    pub(crate) reads_only: bool,
    /// Whether it cannot run here.
    pub(crate) unavailable: bool,
    /// Whether the client runs it.
    pub(crate) client: bool,
    /// Whether it runs on the blocking pool.
    pub(crate) blocking: bool,
    /// Whether a call may have to wait, or be told to come again.
    pub(crate) limited: bool,
    /// Whether it runs beside no other call of its batch.
    pub(crate) alone: bool,
    /// Whether a call can be spared, because it was made before.
    pub(crate) spared: bool,
    /// Whether its answers are kept in the cache.
    pub(crate) cached: bool,
    /// Whether there may be a check of the tool's own.
    pub(crate) checks: bool,
    /// Whether nothing of the tool's own, or beside it, looks at a call whose text was accepted
    /// before: no constraint, no check, no instance to be made, no client to be asked.
    pub(crate) plain: bool,
    /// Whether a failed call may be tried again by itself.
    pub(crate) retried: bool,
    /// Whether a call may change a resource that others know of.
    pub(crate) writes: bool,
    /// Whether the host has to supply something.
    pub(crate) injected: bool,
    /// Whether it asks for approval where no rule says otherwise.
    pub(crate) asks: bool,
}

impl Manner {
    pub(super) fn of(entry: &ToolEntry) -> Self {
        let definition = &*entry.definition;
        let checks = !matches!(&entry.body, Body::Shared(tool) if !tool.validates());
        Self {
            own_limits: definition.timeout().is_some() || definition.output_chars().is_some(),
            reads_only: definition.annotations().read_only,
            unavailable: entry.unavailable_reason().is_some(),
            client: definition.client(),
            blocking: definition.blocking(),
            limited: definition.max_concurrent().is_some() || definition.rate().is_some(),
            alone: !definition.parallel(),
            spared: definition.cache().is_some() || definition.dedupe() != Dedupe::None,
            cached: definition.cache().is_some(),
            checks,
            plain: entry.constraint.is_none() && !definition.client() && !checks,
            retried: retry::policy(definition).is_some(),
            writes: !definition.resources().written().is_empty(),
            injected: !definition.injections().is_empty(),
            asks: asks_by_itself(definition),
        }
    }

    /// The tool's own time limit.
    pub(crate) fn timeout(self, definition: &ToolDefinition) -> Option<Duration> {
        if self.own_limits { definition.timeout() } else { None }
    }

    /// The tool's own text budget, in characters.
    pub(crate) fn output_chars(self, definition: &ToolDefinition) -> Option<usize> {
        if self.own_limits { definition.output_chars() } else { None }
    }
}
