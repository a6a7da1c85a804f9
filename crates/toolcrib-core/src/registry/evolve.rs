//! Applying changes to a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use toolcrib_tool::{ToolEntry, ToolName};

use super::change::{Change, Edit, UnitContent};
use super::conflict::Reservation;
use super::error::RegistryError;
use super::owners::Succession;
use super::rules::{PriorDecision, decide};
use super::slot::ToolSlot;
use super::snapshot::{RegistrySnapshot, SnapshotParts};
use super::unit::{EntryPosition, UnitKey, UnitRef};

/// The effect of changes, by name, each list sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// Names with a new owner that had none.
    pub added: Vec<ToolName>,
    /// Names that lost their owner.
    pub removed: Vec<ToolName>,
    /// Names whose tool changed: its definition, its body or its source.
    pub changed: Vec<ToolName>,
}

impl Applied {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// All claims on a name that is affected by a change.
#[derive(Debug, Default)]
struct NameClaims {
    claims: Vec<Arc<ToolSlot>>,
    before: PriorDecision,
    owner: Option<Arc<ToolSlot>>,
}

impl RegistrySnapshot {
    /// The snapshot after a set of changes, whose order does not matter. See [`Change`].
    ///
    /// An owner keeps a name as long as its unit declares it. A name that is given up goes to the
    /// first entry of the same layer that declares it; if there is none, it is
    /// [`reserved`](Self::reserved).
    ///
    /// Fails, without any effect, if the set names linked-in or fallback tools, has two changes of
    /// one unit, or has entries whose source is not their unit.
    pub fn evolve(
        &self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<(Self, Applied), RegistryError> {
        Ok(self.edited(Edit::of(changes)?))
    }

    pub(super) fn edited(&self, edit: Edit) -> (Self, Applied) {
        let Edit { contents, renames, released } = edit;
        let mut registered = self.registered();
        let mut names = BTreeMap::<ToolName, NameClaims>::new();

        // The declarations of the changed units, before and after.
        let mut declared = HashMap::<UnitKey, Vec<Arc<ToolSlot>>>::new();
        let is_changed = |slot: &ToolSlot| {
            let key = UnitRef::of(&slot.entry.source);
            contents.get_key_value(&key).map(|(unit, _)| unit)
        };
        for slot in self.owners().iter().chain(self.waiting()) {
            if let Some(unit) = is_changed(slot) {
                names.entry(slot.entry.definition.tool_name().clone()).or_default();
                declared.entry(unit.clone()).or_default().push(Arc::clone(slot));
            }
        }
        for unsorted in declared.values_mut() {
            unsorted.sort_by_key(|slot| slot.place);
        }
        for (unit, content) in &contents {
            for slot in declare(unit, content, &declared, &mut registered) {
                let name = slot.entry.definition.tool_name().clone();
                names.entry(name).or_default().claims.push(slot);
            }
        }
        let released = released.and_then(|name| self.reservation(&name));
        if let Some(released) = released {
            names.entry(released.name.clone()).or_default();
        }

        // The declarations of other units, and the current owners.
        let changed = |slot: &ToolSlot| is_changed(slot).is_some();
        for (name, known) in &mut names {
            if let Some(owner) = self.slot(name.as_str()) {
                if !owner.is_fallback() {
                    let unit = UnitKey::of(&owner.entry.source);
                    known.before.holder = Some(renames.get(&unit).cloned().unwrap_or(unit));
                }
                if !changed(owner) {
                    known.claims.push(Arc::clone(owner));
                }
                known.owner = Some(Arc::clone(owner));
            }
            let is_released = released.is_some_and(|released| released.name == *name);
            known.before.reserved = self.reserved_for(name.as_str()).filter(|_| !is_released);
            let start = self.waiting().partition_point(|slot| slot.name() < name.as_str());
            let waiting = self.waiting()[start..].iter().take_while(|w| w.name() == name.as_str());
            known.claims.extend(waiting.filter(|slot| !changed(slot)).cloned());
        }
        self.decided(names, registered)
    }

    /// Decides the names and builds the new snapshot.
    fn decided(&self, names: BTreeMap<ToolName, NameClaims>, registered: u64) -> (Self, Applied) {
        let rules = self.rules();
        let mut applied = Applied::default();
        let mut owners = Vec::with_capacity(names.len());
        let mut waiting = Vec::new();
        let mut reserved = Vec::new();
        let touched = |name: &ToolName| names.contains_key(name);
        let untouched_waiting: Vec<_> = self
            .waiting()
            .iter()
            .filter(|slot| !touched(slot.entry.definition.tool_name()))
            .cloned()
            .collect();
        reserved.extend(self.reserved().iter().filter(|held| !touched(&held.name)).cloned());

        for (name, known) in names {
            let NameClaims { mut claims, before, owner } = known;
            let decision = decide(rules, &claims, &before);
            if let Some(layer) = decision.reserved {
                let last = owner.as_ref().map(|owner| owner.entry.source.clone());
                let last = last.filter(|source| source.layer == layer);
                let held = self.reservation(name.as_str()).map(|held| held.owner.clone());
                // One of them always exists for a reserved name.
                if let Some(owner) = last.or(held) {
                    reserved.push(Reservation { name: name.clone(), owner });
                }
            }
            let now = decision.owner.map(|position| claims.swap_remove(position));
            claims.sort_by(|a, b| a.precedence(rules).cmp(&b.precedence(rules)));
            waiting.extend(claims);
            match (&owner, &now) {
                (None, Some(_)) => applied.added.push(name),
                (Some(_), None) => applied.removed.push(name),
                (Some(before), Some(now)) if !Arc::ptr_eq(before, now) => {
                    applied.changed.push(name);
                }
                _ => {}
            }
            owners.push(Succession { before: owner, now });
        }
        let owners = self.owners().spliced(owners);
        let waiting = merged(untouched_waiting, waiting);
        reserved.sort_unstable_by(|a, b| a.name.cmp(&b.name));

        let parts =
            SnapshotParts { owners, waiting, reserved, rules: Arc::clone(rules), registered };
        (Self::assemble(parts), applied)
    }
}

/// The new declarations of a unit.
fn declare(
    unit: &UnitKey,
    content: &UnitContent,
    declared: &HashMap<UnitKey, Vec<Arc<ToolSlot>>>,
    registered: &mut u64,
) -> Vec<Arc<ToolSlot>> {
    let before = |unit| declared.get(unit).map(Vec::as_slice).unwrap_or_default();
    match content {
        UnitContent::Nothing => Vec::new(),
        UnitContent::Entries { rank, entries } => {
            let known = before(unit);
            (0..)
                .zip(entries)
                .map(|(position, entry)| {
                    let place = EntryPosition::Declared { rank: *rank, position };
                    let new = ToolSlot::new(entry.clone(), place);
                    // Unchanged slots are kept with their compiled parts.
                    let same = known.iter().find(|known| known.is_same(&new));
                    same.map_or_else(|| Arc::new(new), Arc::clone)
                })
                .collect()
        }
        // Renaming an unknown unit has no effect on the target.
        UnitContent::MovedFrom { from, .. } if before(from).is_empty() => before(unit).to_vec(),
        UnitContent::MovedFrom { from, rank } => (0..)
            .zip(before(from))
            .map(|(position, slot)| {
                let place = EntryPosition::Declared { rank: *rank, position };
                Arc::new(ToolSlot::new(renamed(&slot.entry, from, unit), place))
            })
            .collect(),
        UnitContent::More(entry) => {
            *registered += 1;
            let new = ToolSlot::new((**entry).clone(), EntryPosition::Registered(*registered));
            before(unit).iter().cloned().chain([Arc::new(new)]).collect()
        }
        UnitContent::Less(name) => {
            before(unit).iter().filter(|slot| slot.name() != name).cloned().collect()
        }
    }
}

fn renamed(entry: &ToolEntry, from: &UnitKey, to: &UnitKey) -> ToolEntry {
    let mut entry = entry.clone();
    entry.source.unit.clone_from(&to.name);
    if let Some(origin) = entry.source.origin.as_mut().filter(|origin| origin.file == from.name) {
        origin.file.clone_from(&to.name);
    }
    entry
}

/// Merges two lists that are sorted by name and disjoint.
fn merged(one: Vec<Arc<ToolSlot>>, other: Vec<Arc<ToolSlot>>) -> Vec<Arc<ToolSlot>> {
    let mut all = one;
    all.extend(other);
    // Stable, and linear for two sorted runs.
    all.sort_by(|a, b| a.name().cmp(b.name()));
    all
}
