//! Changes of a registry in use.

use hashbrown::{HashMap, HashSet};
use toolcrib_tool::{Layer, Source, ToolEntry};

use super::error::RegistryError;
use super::unit::{SourceUnit, UnitKey};

/// A change of what one unit declares. Changes are applied as a set, so their order does not
/// matter.
///
/// Linked-in and fallback tools never change; neither can be named here.
#[derive(Debug, Clone)]
pub enum Change {
    /// The unit, new or known, declares exactly these entries, in this order.
    Replace {
        /// The unit. Its rank may change.
        unit: SourceUnit,
        /// Its entries; their [`Source`] names the unit.
        entries: Vec<ToolEntry>,
    },
    /// The unit was removed. No effect on an unknown unit.
    Remove {
        /// The unit.
        unit: SourceUnit,
    },
    /// The unit was renamed and keeps the names it owns. Its declarations move with it, unless the
    /// set also replaces the unit under its new name. No effect if it declared nothing.
    ///
    /// All names in a set refer to the state before it: after `a → b` and `b → c`, the old `a` is
    /// `b` and the old `b` is `c`. The target's own declarations are lost, as with files.
    Rename {
        /// The old name.
        from: SourceUnit,
        /// The new name.
        to: SourceUnit,
    },
}

/// The new content of a unit.
#[derive(Debug)]
pub(super) enum UnitContent {
    Entries {
        rank: u32,
        entries: Vec<ToolEntry>,
    },
    /// What the unit with this key declared.
    MovedFrom {
        from: UnitKey,
        rank: u32,
    },
    Nothing,
    /// Its declarations plus this one.
    More(Box<ToolEntry>),
    /// Its declarations without this name.
    Less(String),
}

/// A checked set of changes.
#[derive(Debug, Default)]
pub(super) struct Edit {
    pub(super) contents: HashMap<UnitKey, UnitContent>,
    /// Old name → new name.
    pub(super) renames: HashMap<UnitKey, UnitKey>,
    pub(super) released: Option<String>,
}

impl Edit {
    /// Checks a set of changes.
    pub(super) fn of(changes: impl IntoIterator<Item = Change>) -> Result<Self, RegistryError> {
        let mut edit = Self::default();
        let mut moved = Vec::new();
        let mut targets = HashSet::new();
        for change in changes {
            match change {
                Change::Replace { unit, entries } => {
                    changeable(&unit.key)?;
                    check_entries(&unit, &entries)?;
                    let content = UnitContent::Entries { rank: unit.rank, entries };
                    if edit.contents.insert(unit.key.clone(), content).is_some() {
                        return Err(RegistryError::Repeated { unit });
                    }
                }
                Change::Remove { unit } => {
                    changeable(&unit.key)?;
                    if edit.contents.insert(unit.key.clone(), UnitContent::Nothing).is_some() {
                        return Err(RegistryError::Repeated { unit });
                    }
                }
                Change::Rename { from, to } => {
                    changeable(&from.key)?;
                    if from.key.layer != to.key.layer {
                        return Err(RegistryError::OtherLayer { from, to });
                    }
                    let repeated = !targets.insert(to.key.clone());
                    if repeated || edit.renames.insert(from.key.clone(), to.key.clone()).is_some() {
                        return Err(RegistryError::Repeated { unit: from });
                    }
                    moved.push((from, to));
                }
            }
        }
        // Last, so that the order of changes does not matter.
        for (from, to) in moved {
            let rank = to.rank;
            edit.contents
                .entry(to.key)
                .or_insert_with(|| UnitContent::MovedFrom { from: from.key.clone(), rank });
            if !targets.contains(&from.key) {
                edit.contents.entry(from.key).or_insert(UnitContent::Nothing);
            }
        }
        Ok(edit)
    }

    /// The unit declares exactly these, whatever its layer.
    pub(super) fn replace(
        unit: SourceUnit,
        entries: Vec<ToolEntry>,
    ) -> Result<Self, RegistryError> {
        check_entries(&unit, &entries)?;
        let content = UnitContent::Entries { rank: unit.rank, entries };
        Ok(Self { contents: HashMap::from_iter([(unit.key, content)]), ..Self::default() })
    }

    /// Host code registers an entry.
    pub(super) fn register(entry: ToolEntry) -> Result<Self, RegistryError> {
        let unit = UnitKey::of(&entry.source);
        host_only(&unit)?;
        Ok(Self::add(entry))
    }

    /// Adds an entry of any layer.
    pub(super) fn add(entry: ToolEntry) -> Self {
        let unit = UnitKey::of(&entry.source);
        Self {
            contents: HashMap::from_iter([(unit, UnitContent::More(Box::new(entry)))]),
            ..Self::default()
        }
    }

    /// Host code unregisters an entry.
    pub(super) fn unregister(source: &Source, name: &str) -> Result<Self, RegistryError> {
        let unit = UnitKey::of(source);
        host_only(&unit)?;
        Ok(Self {
            contents: HashMap::from_iter([(unit, UnitContent::Less(name.to_owned()))]),
            ..Self::default()
        })
    }

    /// Releases a reserved name.
    pub(super) fn release(name: &str) -> Self {
        Self { released: Some(name.to_owned()), ..Self::default() }
    }
}

/// Refuses entries whose source is not the unit.
pub(super) fn check_entries(unit: &SourceUnit, entries: &[ToolEntry]) -> Result<(), RegistryError> {
    match entries.iter().find(|entry| !unit.key.is_of(&entry.source)) {
        None => Ok(()),
        Some(entry) => Err(RegistryError::Foreign {
            tool: entry.name().to_owned(),
            source: Box::new(entry.source.clone()),
            unit: unit.clone(),
        }),
    }
}

fn changeable(unit: &UnitKey) -> Result<(), RegistryError> {
    match unit.layer {
        Layer::Native | Layer::Fallback => {
            Err(RegistryError::Fixed { unit: SourceUnit { key: unit.clone(), rank: 0 } })
        }
        _ => Ok(()),
    }
}

fn host_only(unit: &UnitKey) -> Result<(), RegistryError> {
    if unit.layer == Layer::Host {
        return Ok(());
    }
    Err(RegistryError::NotHost { unit: SourceUnit { key: unit.clone(), rank: 0 } })
}
