//! The rules that decide who owns a name.

use std::collections::HashSet;
use std::sync::Arc;

use toolcrib_tool::{Layer, ToolEntry};

use super::slot::ToolSlot;
use super::unit::UnitKey;

/// The names of the system's own tools that others may override.
pub const OVERRIDABLE: [&str; 2] = ["attempt_completion", "new_task"];

/// The settings of a registry.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    /// `unit:name` of the manifest and upstream tools that may override a fallback.
    pub(super) allow_override: HashSet<String>,
}

impl Rules {
    /// Whether the entry may override a fallback of its name.
    pub(super) fn may_override(&self, entry: &ToolEntry) -> bool {
        match entry.source.layer {
            Layer::Host | Layer::Native => true,
            _ if !OVERRIDABLE.contains(&entry.name()) => true,
            _ => self.allow_override.contains(&format!("{}:{}", entry.source.unit, entry.name())),
        }
    }
}

/// The previous decision on a name.
#[derive(Debug, Default)]
pub(super) struct PriorDecision {
    /// The unit that owns it, except for fallbacks.
    pub(super) holder: Option<UnitKey>,
    /// The layer for which it is reserved.
    pub(super) reserved: Option<Layer>,
}

/// The new decision on a name.
#[derive(Debug)]
pub(super) struct NameDecision {
    /// The owner's index among the claims.
    pub(super) owner: Option<usize>,
    /// The layer for which the name is reserved.
    pub(super) reserved: Option<Layer>,
}

/// Decides a name from all its claims and the previous decision.
///
/// The owner stays as long as its unit declares the name. A name that is given up goes to the first
/// claim of its layer; without one it is reserved for that layer. A fallback is used if no
/// permitted entry has the name.
pub(super) fn decide(
    rules: &Rules,
    claims: &[Arc<ToolSlot>],
    before: &PriorDecision,
) -> NameDecision {
    let fallback = claims.iter().position(|claim| claim.is_fallback());
    let candidates = || {
        claims.iter().enumerate().filter(|(_, claim)| {
            let entry = &claim.entry;
            let replaces = !entry.is_blocked() && rules.may_override(entry);
            !claim.is_fallback() && (fallback.is_none() || replaces)
        })
    };
    let first = |layer: Option<Layer>, unit: Option<&UnitKey>| {
        candidates()
            .filter(|(_, claim)| layer.is_none_or(|layer| claim.entry.source.layer == layer))
            .filter(|(_, claim)| unit.is_none_or(|unit| unit.is_of(&claim.entry.source)))
            .min_by_key(|(_, claim)| claim.precedence(rules))
            .map(|(position, _)| position)
    };
    let (main, reserved) = match (&before.holder, before.reserved) {
        (None, None) => (first(None, None), None),
        (Some(holder), _) => {
            let heir = first(None, Some(holder)).or_else(|| first(Some(holder.layer), None));
            (heir, heir.is_none().then_some(holder.layer))
        }
        (None, Some(layer)) => {
            let heir = first(Some(layer), None);
            (heir, heir.is_none().then_some(layer))
        }
    };
    NameDecision { owner: main.or(fallback), reserved }
}
