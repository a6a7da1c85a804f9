//! Any sequence of operations on a registry, compared with a simple model.

use std::collections::BTreeSet;

use toolcrib_core::{Change, Registration, Registry, RegistrySnapshot, SourceUnit};
use toolcrib_tool::{Layer, Source, ToolEntry};

use super::registry_model::{RegistryModel, UnitKey, entry, rank_of};

/// The names; the last one may have a fallback.
pub(super) const NAMES: [&str; 4] = ["x", "y", "z", "new_task"];
const LAYERS: [Layer; 3] = [Layer::Host, Layer::Manifest, Layer::Upstream];
const UNITS: [&str; 4] = ["a", "b", "c", "d"];

/// The most operations of one input.
const OPERATIONS: usize = 64;

/// Any bytes as operations on a registry. Promises after each operation:
///
/// - Owners, reserved names and descriptions are the same as in the model.
/// - A live owner keeps its name as long as its unit declares it.
/// - The order of the changes in a set makes no difference.
/// - Every declared entry is an owner, a conflict, or a replaced fallback.
/// - The reported differences after a restart are those of a newly built registry.
pub fn registry_operations(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let mut model = RegistryModel::default();
    let setup = bytes.next().unwrap_or(0);
    if setup & 1 == 1 {
        model.register((Layer::Native, "core".to_owned()), "x", "native".to_owned());
    }
    if setup & 2 == 2 {
        model.register((Layer::Fallback, "system".to_owned()), "new_task", "fallback".to_owned());
    }
    if setup & 4 == 4 {
        model.allowed = vec!["b:new_task".to_owned()];
    }
    model.decide();
    let registry = Registry::new(model.fresh().build());
    check(&registry.snapshot(), &model);

    for version in 0..OPERATIONS {
        let Some(code) = bytes.next() else { return };
        let mut next = || bytes.next().unwrap_or(0);
        let before = model.clone();
        match code % 8 {
            0 => register(&registry, &mut model, next(), version),
            1 => unregister(&registry, &mut model, next()),
            2 => release(&registry, &mut model, next()),
            _ => {
                let changes: Vec<_> =
                    (0..=code / 8 % 3).map(|_| change(&mut next, version)).collect();
                apply(&registry, &mut model, &changes);
            }
        }
        let snapshot = registry.snapshot();
        check(&snapshot, &model);
        if code % 8 < 2 || code % 8 == 2 && before.reserved.is_empty() {
            assert_owners_stayed(&before, &model, &snapshot);
        }
    }
}

/// The name, as the model stores it.
pub(super) fn known(name: &str) -> &'static str {
    NAMES.into_iter().find(|known| *known == name).expect("one of the names")
}

fn pick<T: Copy>(items: &[T], code: u8) -> T {
    items[usize::from(code) % items.len()]
}

fn unit(code: u8) -> SourceUnit {
    // One in sixteen is a unit that nobody may change.
    let layer = if code >= 0xf0 { Layer::Native } else { pick(&LAYERS, code / 4) };
    let unit = SourceUnit::new(layer, pick(&UNITS, code));
    let rank = rank_of(&unit);
    unit.rank(rank)
}

fn change(next: &mut impl FnMut() -> u8, version: usize) -> Change {
    let kind = next();
    let unit = unit(next());
    match kind % 4 {
        0 => Change::Remove { unit },
        1 => {
            let code = next();
            // Mostly within the layer.
            let layer = if code < 0xf0 { unit.layer() } else { Layer::Upstream };
            let to = SourceUnit::new(layer, pick(&UNITS, code));
            let rank = rank_of(&to);
            Change::Rename { from: unit, to: to.rank(rank) }
        }
        _ => {
            let set = next();
            let declares = (0..5).filter(|bit| set >> bit & 1 == 1);
            let entries = declares.map(|bit| {
                let of = (unit.layer(), unit.name().to_owned());
                // The fifth has the same name as the first.
                entry(&of, NAMES[bit % 4], &format!("{bit} of {unit} at {version}"))
            });
            Change::Replace { entries: entries.collect(), unit }
        }
    }
}

fn apply(registry: &Registry, model: &mut RegistryModel, changes: &[Change]) {
    let snapshot = registry.snapshot();
    let reversed = snapshot.evolve(changes.iter().rev().cloned());
    let applied = registry.apply(changes.to_vec());
    assert_eq!(applied.is_ok(), reversed.is_ok(), "the order of {changes:?} matters");
    assert_eq!(applied.is_ok(), RegistryModel::accepts(changes), "{changes:?}: {applied:?}");
    let (Ok(applied), Ok((reversed, same))) = (applied, reversed) else {
        assert_eq!(registry.snapshot().generation(), snapshot.generation(), "nothing happened");
        return;
    };
    let now = registry.snapshot();
    assert_eq!(owners(&now), owners(&reversed), "the order of {changes:?} matters");
    assert_eq!(now.reserved(), reversed.reserved(), "the order of {changes:?} matters");
    assert_eq!(applied, same);
    for name in NAMES {
        let (before, after) = (snapshot.get(name).is_some(), now.get(name).is_some());
        assert_eq!(applied.added.iter().any(|added| added.as_str() == name), !before && after);
        assert_eq!(applied.removed.iter().any(|gone| gone.as_str() == name), before && !after);
    }

    let before = model.clone();
    model.change(changes);
    let renamed = model.clone();
    model.decide();
    // An owner keeps its name as long as its unit, under any name, declares it; but permission to replace a fallback
    // belongs to the old name.
    for name in before.owners.keys() {
        let holder = &renamed.owners[name];
        let mut declared = renamed.declared.iter();
        if declared.any(|d| d.name == *name && d.unit == *holder && renamed.may_have(d)) {
            let owner = now.get(name).expect("it is still declared");
            assert_eq!((owner.source.layer, &owner.source.unit), (holder.0, &holder.1));
        }
    }
}

fn register(registry: &Registry, model: &mut RegistryModel, code: u8, version: usize) {
    let unit = (pick(&LAYERS, code / 16), pick(&UNITS, code / 4).to_owned());
    let name = pick(&NAMES, code);
    let description = format!("registered at {version}");
    let registration = registry.register(entry(&unit, name, &description));
    assert_eq!(registration.is_ok(), unit.0 == Layer::Host);
    let Ok(registration) = registration else { return };
    model.register(unit.clone(), name, description);
    model.decide();
    let owns = model.owners.get(name) == Some(&unit);
    assert_eq!(registration == Registration::Registered, owns, "{registration:?}");
}

fn unregister(registry: &Registry, model: &mut RegistryModel, code: u8) {
    let unit: UnitKey = (pick(&LAYERS, code / 16), pick(&UNITS, code / 4).to_owned());
    let name = pick(&NAMES, code);
    let found = registry.unregister(&Source::new(unit.0, unit.1.clone()), name);
    assert_eq!(found.is_ok(), unit.0 == Layer::Host);
    let Ok(found) = found else { return };
    let declares = model.declared.iter().any(|d| d.unit == unit && d.name == name);
    assert_eq!(found, declares);
    model.unregister(&unit, name);
    model.decide();
}

fn release(registry: &Registry, model: &mut RegistryModel, code: u8) {
    let name = pick(&NAMES, code);
    let released = registry.release(name).expect("duplicates are no error here");
    assert_eq!(released, model.reserved.remove(name).is_some());
    model.decide();
}

fn owners(snapshot: &RegistrySnapshot) -> Vec<(String, Source, String)> {
    let say = |entry: &ToolEntry| entry.definition.description().to_owned();
    snapshot.entries().map(|e| (e.name().to_owned(), e.source.clone(), say(e))).collect()
}

fn assert_owners_stayed(
    before: &RegistryModel,
    after: &RegistryModel,
    snapshot: &RegistrySnapshot,
) {
    for (name, owner) in &before.owners {
        if after.declared.iter().any(|d| d.name == *name && d.unit == *owner) {
            let found = snapshot.get(name).expect("it is still declared");
            assert_eq!((found.source.layer, &found.source.unit), (owner.0, &owner.1));
        }
    }
}

/// The snapshot agrees with the model.
fn check(snapshot: &RegistrySnapshot, model: &RegistryModel) {
    for name in NAMES {
        let found = snapshot
            .get(name)
            .map(|e| (e.source.layer, e.source.unit.clone(), e.definition.description()));
        let expected =
            model.answering(name).map(|d| (d.unit.0, d.unit.1.clone(), d.description.as_str()));
        assert_eq!(found, expected, "the owner of {name}");
    }
    let reserved: Vec<_> =
        snapshot.reserved().iter().map(|held| (held.name.as_str(), held.owner.layer)).collect();
    let mut expected: Vec<_> = model.reserved.iter().map(|(name, layer)| (*name, *layer)).collect();
    expected.sort_unstable();
    assert_eq!(reserved, expected);

    // Every declared entry is visible, and nothing else is.
    let conflicts = snapshot.conflicts().iter().map(|conflict| &conflict.loser);
    let seen = snapshot.entries().chain(conflicts).chain(snapshot.overridden());
    let mut seen: Vec<_> = seen
        .map(|e| (e.source.layer, e.source.unit.clone(), e.name(), e.definition.description()))
        .collect();
    let mut declared: Vec<_> = model
        .declared
        .iter()
        .map(|d| (d.unit.0, d.unit.1.clone(), d.name, d.description.as_str()))
        .collect();
    seen.sort_unstable();
    declared.sort_unstable();
    assert_eq!(seen, declared);
    for conflict in snapshot.conflicts() {
        let owner = snapshot.get(conflict.loser.name()).map(|entry| &entry.source);
        assert_eq!(conflict.reserved, owner.is_none());
        assert!(owner.is_none_or(|owner| *owner == conflict.winner));
    }

    let definitions: Vec<_> = snapshot.definitions().iter().map(|d| d.name()).collect();
    assert!(definitions.is_sorted() && definitions.len() == snapshot.entries().len());

    let fresh = model.fresh().build();
    let differing: BTreeSet<_> = snapshot
        .would_differ()
        .into_iter()
        .map(|differs| {
            let entry = fresh.get(differs.name.as_str()).expect("somebody would own it");
            assert_eq!(entry.source, differs.fresh);
            differs.name.to_string()
        })
        .collect();
    let say = |snapshot: &RegistrySnapshot, name: &str| {
        snapshot.get(name).map(|e| (e.source.clone(), e.definition.description().to_owned()))
    };
    let really: BTreeSet<_> = NAMES
        .into_iter()
        .filter(|name| say(snapshot, name) != say(&fresh, name))
        .map(str::to_owned)
        .collect();
    assert_eq!(differing, really);
}
