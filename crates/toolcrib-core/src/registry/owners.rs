//! The owners of all names, sorted by name, with an index.

use std::sync::Arc;

use hashbrown::HashMap;
use toolcrib_tool::ToolName;

use super::slot::ToolSlot;

/// The owners of one snapshot.
#[derive(Debug)]
pub(super) struct Owners {
    /// Sorted by name.
    slots: Vec<Arc<ToolSlot>>,
    /// The position of each name. Snapshots with the same names share it.
    by_name: Arc<HashMap<ToolName, usize>>,
}

impl Owners {
    /// Creates it from slots that are sorted by name without duplicates.
    pub(super) fn new(slots: Vec<Arc<ToolSlot>>) -> Self {
        let names = slots.iter().map(|slot| slot.entry.definition.tool_name().clone());
        let by_name = names.enumerate().map(|(position, name)| (name, position)).collect();
        Self { slots, by_name: Arc::new(by_name) }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The position of a name.
    #[inline]
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&Arc<ToolSlot>> {
        self.slots.get(position)
    }

    /// The name at a position; empty if there is none.
    pub(super) fn name(&self, position: usize) -> &str {
        self.get(position).map_or("", |slot| slot.name())
    }

    /// Whether there is an available tool at the position.
    pub(super) fn is_available(&self, position: usize) -> bool {
        self.get(position).is_some_and(|slot| slot.is_available())
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<ToolSlot>> {
        self.slots.iter()
    }

    /// A copy with some slots replaced, by position, without changing names.
    pub(super) fn with(&self, others: impl IntoIterator<Item = (usize, Arc<ToolSlot>)>) -> Self {
        let mut slots = self.slots.clone();
        for (position, slot) in others {
            if let Some(place) = slots.get_mut(position) {
                *place = slot;
            }
        }
        Self { slots, by_name: Arc::clone(&self.by_name) }
    }

    /// A copy with the changed owners of some names, sorted by name.
    pub(super) fn spliced(&self, names: Vec<Succession>) -> Self {
        if names.iter().all(|one| one.before.is_some() == one.now.is_some()) {
            let changed = names.into_iter().filter_map(|one| {
                let now = one.now?;
                Some((self.position(now.name())?, now))
            });
            return self.with(changed);
        }
        let mut slots = Vec::with_capacity(self.len() + names.len());
        let mut done = 0;
        for Succession { before, now } in names {
            let Some(slot) = before.as_ref().or(now.as_ref()) else { continue };
            let here = self.slots.partition_point(|other| other.name() < slot.name());
            slots.extend_from_slice(&self.slots[done..here]);
            slots.extend(now);
            done = here + usize::from(before.is_some());
        }
        slots.extend_from_slice(&self.slots[done..]);
        Self::new(slots)
    }
}

/// The old and the new owner of a name.
#[derive(Debug)]
pub(super) struct Succession {
    pub(super) before: Option<Arc<ToolSlot>>,
    pub(super) now: Option<Arc<ToolSlot>>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry};

    use super::*;
    use crate::registry::unit::EntryPosition;

    const NAMES: usize = 40;

    fn slot(number: usize, unit: &str) -> Arc<ToolSlot> {
        let definition = ToolDefinition::builder(format!("t{number:04}")).description("A test.");
        let entry = ToolEntry::client(
            definition.build().expect("a definition"),
            Source::new(Layer::Manifest, unit),
        );
        let entry = if number.is_multiple_of(3) { entry.unavailable("for a test") } else { entry };
        Arc::new(ToolSlot::new(entry, EntryPosition::Declared { rank: 0, position: 0 }))
    }

    fn check(owners: &Owners, model: &[Arc<ToolSlot>]) -> Result<(), TestCaseError> {
        prop_assert_eq!(owners.len(), model.len());
        prop_assert!(owners.iter().zip(model).all(|(one, other)| Arc::ptr_eq(one, other)));
        for (position, slot) in model.iter().enumerate() {
            prop_assert!(owners.get(position).is_some_and(|found| Arc::ptr_eq(found, slot)));
            prop_assert_eq!(owners.is_available(position), slot.is_available());
            prop_assert_eq!(owners.position(slot.name()), Some(position));
            prop_assert_eq!(owners.name(position), slot.name());
        }
        prop_assert!(owners.get(model.len()).is_none() && !owners.is_available(model.len()));
        prop_assert_eq!(owners.name(model.len()), "");
        for other in ["", "t", "t9999", "T0001", "t0001 "] {
            prop_assert_eq!(owners.position(other), None);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_changes_is_changed_and_the_rest_stays_in_its_place(
            there in proptest::collection::vec(prop::bool::weighted(0.9), NAMES),
            changes in proptest::collection::btree_map(0..NAMES, 0..3_u8, 0..20),
        ) {
            let mut model: Vec<Option<Arc<ToolSlot>>> =
                there.iter().enumerate().map(|(at, is)| is.then(|| slot(at, "a"))).collect();
            let flat = |model: &[Option<Arc<ToolSlot>>]| model.iter().flatten().cloned().collect::<Vec<_>>();
            let owners = Owners::new(flat(&model));
            check(&owners, &flat(&model))?;
            let names = changes.into_iter().map(|(at, change)| {
                let before = model[at].clone();
                let now = match change {
                    0 => None,
                    1 => Some(slot(at, "b")),
                    _ => before.clone(),
                };
                model[at].clone_from(&now);
                Succession { before, now }
            });
            let next = owners.spliced(names.collect());
            check(&next, &flat(&model))?;
        }
    }

    #[test]
    fn snapshots_with_the_same_names_share_the_positions() {
        let owners = Owners::new((0..NAMES).map(|at| slot(at, "a")).collect());
        let before = owners.get(1).cloned();
        let same =
            owners.spliced(vec![Succession { before: before.clone(), now: Some(slot(1, "b")) }]);
        assert!(Arc::ptr_eq(&owners.by_name, &same.by_name));
        let other = owners.spliced(vec![Succession { before, now: None }]);
        assert_eq!((other.len(), other.position("t0001")), (NAMES - 1, None));
    }
}
