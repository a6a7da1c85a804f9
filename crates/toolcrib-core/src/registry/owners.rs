//! The owners of all names, in groups that snapshots share: the next snapshot costs what has changed,
//! and not what there is.

use std::ops::Range;
use std::sync::Arc;

use super::slot::Slot;
use super::unit::UnitRef;

/// Slots of a group. With ten thousand tools a change touches as many groups as slots of one.
const GROUP: usize = 128;

/// The owners, sorted by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    /// All but the last are full.
    groups: Vec<Group>,
    len: usize,
}

/// What is asked of all slots stands beside them, so that nobody has to look into each.
#[derive(Debug, Clone)]
struct Group {
    slots: Arc<[Arc<Slot>]>,
    /// The [marks](UnitRef::mark) of their units.
    units: Arc<[u64]>,
    /// Those that can run here, a bit each.
    available: u128,
}

impl Group {
    fn new(slots: &[Arc<Slot>]) -> Self {
        let mark = |slot: &Arc<Slot>| UnitRef::of(&slot.entry.source).mark();
        let available = slots.iter().enumerate();
        let available = available.map(|(at, slot)| u128::from(slot.is_available()) << at);
        Self {
            units: slots.iter().map(mark).collect(),
            available: available.fold(0, |all, one| all | one),
            slots: slots.into(),
        }
    }
}

impl Owners {
    /// Of slots that are sorted by name.
    pub(super) fn new(slots: &[Arc<Slot>]) -> Self {
        Self { groups: slots.chunks(GROUP).map(Group::new).collect(), len: slots.len() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, position: usize) -> Option<&Arc<Slot>> {
        self.groups.get(position / GROUP)?.slots.get(position % GROUP)
    }

    /// Whether there is one at the position that can run here.
    #[inline]
    pub(super) fn is_available(&self, position: usize) -> bool {
        let group = self.groups.get(position / GROUP);
        group.is_some_and(|group| group.available >> (position % GROUP) & 1 == 1)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Slot>> {
        (0..self.len).map(|position| &self.groups[position / GROUP].slots[position % GROUP])
    }

    /// Those that can run here.
    pub(super) fn available(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.groups.iter().flat_map(|group| {
            let all = group.slots.iter().enumerate();
            all.filter(|(at, _)| group.available >> at & 1 == 1).map(|(_, slot)| slot)
        })
    }

    /// Those of some positions.
    fn range(&self, range: Range<usize>) -> impl Iterator<Item = &Arc<Slot>> {
        range.filter_map(|position| self.get(position))
    }

    /// Those whose unit has one of these marks, which are sorted, and perhaps a few others.
    pub(super) fn marked(&self, marks: &[u64]) -> impl Iterator<Item = &Arc<Slot>> {
        self.groups.iter().flat_map(move |group| {
            let all = group.units.iter().zip(group.slots.iter());
            all.filter(move |(unit, _)| marks.binary_search(unit).is_ok()).map(|(_, slot)| slot)
        })
    }

    /// Where a name is, or would be.
    fn place_of(&self, name: &str) -> usize {
        let last = |group: &Group| group.slots.last().is_some_and(|slot| slot.name() < name);
        let group = self.groups.partition_point(last);
        let inside = self
            .groups
            .get(group)
            .map_or(0, |group| group.slots.partition_point(|slot| slot.name() < name));
        (group * GROUP + inside).min(self.len)
    }

    /// With others in the place of some, by position; the names stay.
    pub(super) fn with(&self, others: impl IntoIterator<Item = (usize, Arc<Slot>)>) -> Self {
        let mut owners = self.clone();
        let mut others = others.into_iter().peekable();
        while let Some((position, slot)) = others.next() {
            let Some(group) = owners.groups.get_mut(position / GROUP) else { continue };
            let mut slots = group.slots.to_vec();
            slots[position % GROUP] = slot;
            let same = |next: &(usize, Arc<Slot>)| next.0 / GROUP == position / GROUP;
            while let Some((position, slot)) = others.next_if(same) {
                slots[position % GROUP] = slot;
            }
            *group = Group::new(&slots);
        }
        owners
    }

    /// With what became of some names, sorted: who had each, and who has it.
    pub(super) fn spliced(&self, names: Vec<Succession>) -> Self {
        let same = |one: &Succession| one.before.is_some() == one.now.is_some();
        if names.iter().all(same) {
            let changed = names.into_iter().filter_map(|one| {
                let (before, now) = one.before.zip(one.now)?;
                (!Arc::ptr_eq(&before, &now)).then(|| (self.place_of(now.name()), now))
            });
            return self.with(changed);
        }
        let mut all = Vec::with_capacity(self.len + names.len());
        let mut done = 0;
        for Succession { before, now } in names {
            let Some(slot) = before.as_ref().or(now.as_ref()) else { continue };
            let here = self.place_of(slot.name());
            all.extend(self.range(done..here).cloned());
            all.extend(now);
            done = here + usize::from(before.is_some());
        }
        all.extend(self.range(done..self.len).cloned());
        Self::new(&all)
    }
}

/// Who had a name, and who has it.
#[derive(Debug)]
pub(super) struct Succession {
    pub(super) before: Option<Arc<Slot>>,
    pub(super) now: Option<Arc<Slot>>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry};

    use super::*;
    use crate::registry::unit::Place;

    /// Names around the ends of two groups.
    const NAMES: usize = 2 * GROUP + 3;

    fn slot(number: usize, unit: &str) -> Arc<Slot> {
        let definition = ToolDefinition::builder(format!("t{number:04}")).description("A test.");
        let entry = ToolEntry::client(
            definition.build().expect("a definition"),
            Source::new(Layer::Manifest, unit),
        );
        let entry = if number.is_multiple_of(3) { entry.unavailable("for a test") } else { entry };
        Arc::new(Slot::new(entry, Place::Declared { rank: 0, position: 0 }))
    }

    fn check(owners: &Owners, model: &[Arc<Slot>]) -> Result<(), TestCaseError> {
        let same = |(one, other): (&Arc<Slot>, &Arc<Slot>)| Arc::ptr_eq(one, other);
        prop_assert_eq!(owners.len(), model.len());
        prop_assert!(owners.iter().zip(model).all(same));
        for (position, slot) in model.iter().enumerate() {
            prop_assert!(owners.get(position).is_some_and(|found| Arc::ptr_eq(found, slot)));
            prop_assert_eq!(owners.is_available(position), slot.is_available());
        }
        prop_assert!(owners.get(model.len()).is_none() && !owners.is_available(model.len()));
        let available = model.iter().filter(|slot| slot.is_available());
        prop_assert!(owners.available().zip(available.clone()).all(same));
        prop_assert_eq!(owners.available().count(), available.count());
        let unit = Source::new(Layer::Manifest, "b");
        let marks = [UnitRef::of(&unit).mark()];
        let of_unit = model.iter().filter(|slot| slot.entry.source.unit == "b");
        prop_assert!(owners.marked(&marks).zip(of_unit.clone()).all(same));
        prop_assert_eq!(owners.marked(&marks).count(), of_unit.count());
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_changes_is_changed_and_the_rest_stays_in_its_place(
            there in proptest::collection::vec(prop::bool::weighted(0.9), NAMES),
            changes in proptest::collection::btree_map(0..NAMES, 0..3_u8, 0..20),
        ) {
            let mut model: Vec<Option<Arc<Slot>>> =
                there.iter().enumerate().map(|(at, is)| is.then(|| slot(at, "a"))).collect();
            let flat = |model: &[Option<Arc<Slot>>]| model.iter().flatten().cloned().collect::<Vec<_>>();
            let owners = Owners::new(&flat(&model));
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
    fn groups_without_a_change_are_shared() {
        let slots: Vec<_> = (0..NAMES).map(|at| slot(at, "a")).collect();
        let owners = Owners::new(&slots);
        let succession = Succession {
            before: Some(Arc::clone(&slots[GROUP + 1])),
            now: Some(slot(GROUP + 1, "b")),
        };
        let next = owners.spliced(vec![succession]);
        let shared: Vec<bool> = (owners.groups.iter().zip(&next.groups))
            .map(|(one, other)| Arc::ptr_eq(&one.slots, &other.slots))
            .collect();
        assert_eq!(shared, [true, false, true]);
    }
}
