//! The model for name ownership, written in the simplest way: all declarations in one list, every rule a scan over it.

use std::collections::{BTreeMap, BTreeSet};

use toolcrib_core::{Change, RegistryBuilder, SourceUnit};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};

/// A unit: its layer and its name.
pub(super) type UnitKey = (Layer, String);

/// One declaration of a tool.
#[derive(Debug, Clone)]
pub(super) struct Declaration {
    pub(super) unit: UnitKey,
    /// `None`: registered by itself.
    rank: Option<u32>,
    position: u64,
    pub(super) name: &'static str,
    /// Distinguishes the versions of a unit.
    pub(super) description: String,
}

/// Everything that was ever registered, and its consequences.
#[derive(Debug, Clone, Default)]
pub(super) struct RegistryModel {
    pub(super) declared: Vec<Declaration>,
    /// Owners, without fallbacks.
    pub(super) owners: BTreeMap<&'static str, UnitKey>,
    pub(super) reserved: BTreeMap<&'static str, Layer>,
    /// `unit:name` that may replace a fallback.
    pub(super) allowed: Vec<String>,
    registered: u64,
}

/// A tool with this name from this unit.
pub(super) fn entry(unit: &UnitKey, name: &str, description: &str) -> ToolEntry {
    let definition =
        ToolDefinition::builder(name).description(description).build().expect("a valid definition");
    let body = tool_fn(|_: serde_json::Value, _| std::future::ready("done"));
    ToolEntry::new(definition, std::sync::Arc::new(body), Source::new(unit.0, unit.1.clone()))
}

impl RegistryModel {
    pub(super) fn register(&mut self, unit: UnitKey, name: &'static str, description: String) {
        self.registered += 1;
        let position = self.registered;
        self.declared.push(Declaration { unit, rank: None, position, name, description });
    }

    pub(super) fn unregister(&mut self, unit: &UnitKey, name: &str) {
        self.declared.retain(|declared| declared.unit != *unit || declared.name != name);
    }

    /// Whether a set of changes is consistent.
    pub(super) fn accepts(changes: &[Change]) -> bool {
        let (mut units, mut from_units, mut to_units) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let key = |unit: &SourceUnit| (unit.layer(), unit.name().to_owned());
        changes.iter().all(|change| match change {
            Change::Replace { unit, .. } | Change::Remove { unit } => {
                unit.layer() != Layer::Native && units.insert(key(unit))
            }
            Change::Rename { from, to } => {
                from.layer() != Layer::Native
                    && from.layer() == to.layer()
                    && from_units.insert(key(from))
                    && to_units.insert(key(to))
            }
        })
    }

    /// Applies renames first, all at once; then replacements and removals.
    pub(super) fn change(&mut self, changes: &[Change]) {
        let before = self.declared.clone();
        let owners = self.owners.clone();
        let declares = |unit: &UnitKey| before.iter().any(|declared| declared.unit == *unit);
        let unit_of = |unit: &SourceUnit| (unit.layer(), unit.name().to_owned());
        for change in changes {
            let Change::Rename { from, to } = change else { continue };
            let (from, new) = (unit_of(from), unit_of(to));
            for (name, owner) in &owners {
                if *owner == from {
                    self.owners.insert(name, new.clone());
                }
            }
            let is_target = changes
                .iter()
                .any(|change| matches!(change, Change::Rename { to, .. } if unit_of(to) == from));
            if !is_target {
                self.declared.retain(|declared| declared.unit != from);
            }
            if declares(&from) {
                self.declared.retain(|declared| declared.unit != new);
                let mut moved: Vec<_> =
                    before.iter().filter(|declared| declared.unit == from).cloned().collect();
                moved.sort_by_key(|declared| (declared.rank, declared.position));
                for (position, mut declared) in (0..).zip(moved) {
                    declared.unit.clone_from(&new);
                    declared.rank = Some(rank_of(to));
                    declared.position = position;
                    self.declared.push(declared);
                }
            }
        }
        for change in changes {
            match change {
                Change::Rename { .. } => {}
                Change::Remove { unit } => {
                    self.declared.retain(|declared| declared.unit != unit_of(unit));
                }
                Change::Replace { unit, entries } => {
                    self.declared.retain(|declared| declared.unit != unit_of(unit));
                    for (position, entry) in (0..).zip(entries) {
                        self.declared.push(Declaration {
                            unit: unit_of(unit),
                            rank: Some(rank_of(unit)),
                            position,
                            name: super::registry_operations::known(entry.name()),
                            description: entry.definition.description().to_owned(),
                        });
                    }
                }
            }
        }
    }

    /// Whether a declaration can own its name at all.
    pub(super) fn may_have(&self, declared: &Declaration) -> bool {
        let has_fallback = self
            .declared
            .iter()
            .any(|other| other.unit.0 == Layer::Fallback && other.name == declared.name);
        declared.unit.0 != Layer::Fallback && (!has_fallback || self.may_override(declared))
    }

    fn may_override(&self, declared: &Declaration) -> bool {
        matches!(declared.unit.0, Layer::Host | Layer::Native)
            || self.allowed.contains(&format!("{}:{}", declared.unit.1, declared.name))
    }

    /// The first declaration of a name that satisfies `wanted`.
    fn first(&self, name: &str, wanted: impl Fn(&Declaration) -> bool) -> Option<UnitKey> {
        let all = self.declared.iter().filter(|declared| declared.name == name);
        let able = all.filter(|declared| self.may_have(declared) && wanted(declared));
        able.min_by_key(|declared| {
            let overrides = name != "new_task" || self.may_override(declared);
            let unit = declared.rank.map(|_| declared.unit.1.clone());
            (!overrides, declared.unit.0, declared.rank, unit, declared.position)
        })
        .map(|declared| declared.unit.clone())
    }

    /// Decides the owner of every name again, from the previous owners.
    pub(super) fn decide(&mut self) {
        for name in super::registry_operations::NAMES {
            let holder = self.owners.remove(name);
            let layer = match &holder {
                Some(holder) => Some(holder.0),
                None => self.reserved.get(name).copied(),
            };
            self.reserved.remove(name);
            let owner = match layer {
                None => self.first(name, |_| true),
                Some(layer) => self
                    .first(name, |declared| Some(&declared.unit) == holder.as_ref())
                    .or_else(|| self.first(name, |declared| declared.unit.0 == layer)),
            };
            match (owner, layer) {
                (Some(owner), _) => drop(self.owners.insert(name, owner)),
                (None, Some(layer)) => drop(self.reserved.insert(name, layer)),
                (None, None) => {}
            }
        }
    }

    /// The declaration that owns a name.
    pub(super) fn answering(&self, name: &str) -> Option<&Declaration> {
        let of = |unit: &UnitKey| {
            let mine = self.declared.iter().filter(|d| d.name == name && d.unit == *unit);
            mine.min_by_key(|declared| (declared.rank, declared.position)).cloned()
        };
        let unit = match self.owners.get(name) {
            Some(unit) => unit.clone(),
            None => (Layer::Fallback, "system".to_owned()),
        };
        let found = of(&unit)?;
        self.declared.iter().find(|d| {
            d.name == name && d.unit == unit && d.position == found.position && d.rank == found.rank
        })
    }

    /// A registry with the same declarations, built from scratch.
    pub(super) fn fresh(&self) -> RegistryBuilder {
        let mut builder = RegistryBuilder::new().allow_override(self.allowed.clone());
        let entry =
            |declared: &Declaration| entry(&declared.unit, declared.name, &declared.description);
        let mut alone: Vec<_> = self.declared.iter().filter(|d| d.rank.is_none()).collect();
        alone.sort_by_key(|declared| declared.position);
        for declared in alone {
            let _ = builder.register(entry(declared));
        }
        let units: BTreeSet<_> = self
            .declared
            .iter()
            .filter_map(|declared| Some((declared.unit.clone(), declared.rank?)))
            .collect();
        for (unit, rank) in units {
            let mut of_unit: Vec<_> = self
                .declared
                .iter()
                .filter(|declared| declared.unit == unit && declared.rank == Some(rank))
                .collect();
            of_unit.sort_by_key(|declared| declared.position);
            let source = SourceUnit::new(unit.0, unit.1).rank(rank);
            let entries = of_unit.into_iter().map(entry).collect();
            builder.declare(&source, entries).expect("entries of the unit");
        }
        builder
    }
}

/// The rank is a function of the name here, so it need not be stored.
pub(super) fn rank_of(unit: &SourceUnit) -> u32 {
    u32::from(unit.name() < "c")
}
