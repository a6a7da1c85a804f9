//! Views of snapshots through toolsets.

use std::sync::Arc;

use toolcrib_tool::{ToolDefinition, ToolEntry};

use crate::core_tools::search::{FoundTool, Match};
use crate::registry::{RegistrySnapshot, Selection, ToolSlot};

/// The selection of a toolset for one snapshot. It holds no bodies, so it keeps no tools open.
#[derive(Debug)]
pub(super) struct Chosen {
    generation: u64,
    allowed: Selection,
    definitions: Vec<Arc<ToolDefinition>>,
}

impl Chosen {
    pub(super) fn of(snapshot: &RegistrySnapshot, allows: impl Fn(&ToolEntry) -> bool) -> Self {
        let entries: Vec<_> = snapshot.entries().collect();
        let allowed = Selection::of(entries.len(), |position| allows(entries[position]));
        let definitions = entries
            .iter()
            .enumerate()
            .filter(|(position, entry)| {
                allowed.contains(*position) && entry.unavailable_reason().is_none()
            })
            .map(|(_, entry)| Arc::clone(&entry.definition))
            .collect();
        Self { generation: snapshot.generation(), allowed, definitions }
    }

    pub(super) fn is_of(&self, snapshot: &RegistrySnapshot) -> bool {
        self.generation == snapshot.generation()
    }
}

/// A snapshot limited to a [`Toolset`](crate::Toolset), created by
/// [`Toolset::view`](crate::Toolset::view). Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct ToolsetView {
    snapshot: Arc<RegistrySnapshot>,
    chosen: Arc<Chosen>,
}

impl ToolsetView {
    pub(super) fn new(snapshot: Arc<RegistrySnapshot>, chosen: Arc<Chosen>) -> Self {
        Self { snapshot, chosen }
    }

    /// The whole snapshot.
    pub fn snapshot(&self) -> &Arc<RegistrySnapshot> {
        &self.snapshot
    }

    /// The definitions that a model may see, sorted by name.
    pub fn definitions(&self) -> &[Arc<ToolDefinition>] {
        &self.chosen.definitions
    }

    /// The owner of a name, if it is included; it may be unavailable.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.slot(name).map(|slot| &slot.entry)
    }

    /// What a call of that name resolves to.
    pub(crate) fn slot(&self, name: &str) -> Option<&Arc<ToolSlot>> {
        let position = self.snapshot.position(name)?;
        self.chosen.allowed.contains(position).then(|| self.snapshot.slot_at(position))?
    }

    /// The definition of an included, available tool.
    pub fn describe(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.get(name).filter(|entry| entry.unavailable_reason().is_none()).map(|e| &e.definition)
    }

    /// All included owners, sorted by name, including unavailable ones.
    pub fn entries(&self) -> impl Iterator<Item = &ToolEntry> {
        let all = self.snapshot.entries().enumerate();
        all.filter(|(position, _)| self.chosen.allowed.contains(*position)).map(|(_, entry)| entry)
    }

    /// Similar names among the included tools: [`RegistrySnapshot::near`].
    pub fn near(&self, name: &str) -> Vec<&str> {
        self.snapshot.near_at(name, |position| self.chosen.allowed.contains(position))
    }

    /// Searches the included tools: [`RegistrySnapshot::search`].
    pub fn search(&self, question: &str, limit: usize) -> Vec<FoundTool<'_>> {
        let allowed = |position| self.chosen.allowed.contains(position);
        self.snapshot.search_at(question, limit, allowed)
    }

    /// Which words of a question match an included tool: [`RegistrySnapshot::matches`].
    pub fn matches(&self, question: &str, name: &str) -> Vec<Match> {
        match self.describe(name) {
            Some(_) => self.snapshot.matches(question, name),
            None => Vec::new(),
        }
    }
}
