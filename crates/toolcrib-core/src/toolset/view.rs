//! A snapshot, seen through a toolset.

use std::sync::Arc;

use toolcrib_tool::{ToolDefinition, ToolEntry};

use crate::core_tools::search::{FoundTool, Match};
use crate::registry::{RegistrySnapshot, Selection, ToolSlot};

/// What a toolset allows of one snapshot. It holds no bodies, so that keeping it keeps nothing open.
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

/// A snapshot, seen through a [`Toolset`](crate::Toolset): what it does not allow is not there.
/// Made by [`Toolset::view`](crate::Toolset::view); cloning it is cheap.
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

    /// The definitions a model may be shown, sorted by name.
    pub fn definitions(&self) -> &[Arc<ToolDefinition>] {
        &self.chosen.definitions
    }

    /// The owner of a name, if it is allowed; it may be one that cannot run here.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.slot(name).map(|slot| &slot.entry)
    }

    /// What a call of that name resolves to.
    pub(crate) fn slot(&self, name: &str) -> Option<&Arc<ToolSlot>> {
        let position = self.snapshot.position(name)?;
        self.chosen.allowed.contains(position).then(|| self.snapshot.slot_at(position))?
    }

    /// The definition of an allowed tool that can run here.
    pub fn describe(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.get(name).filter(|entry| entry.unavailable_reason().is_none()).map(|e| &e.definition)
    }

    /// All allowed owners, sorted by name, unavailable ones included.
    pub fn entries(&self) -> impl Iterator<Item = &ToolEntry> {
        let all = self.snapshot.entries().enumerate();
        all.filter(|(position, _)| self.chosen.allowed.contains(*position)).map(|(_, entry)| entry)
    }

    /// The allowed names that may have been meant: [`RegistrySnapshot::near`].
    pub fn near(&self, name: &str) -> Vec<&str> {
        self.snapshot.near_at(name, |position| self.chosen.allowed.contains(position))
    }

    /// The allowed tools that a question's words fit: [`RegistrySnapshot::search`].
    pub fn search(&self, question: &str, limit: usize) -> Vec<FoundTool<'_>> {
        let allowed = |position| self.chosen.allowed.contains(position);
        self.snapshot.search_at(question, limit, allowed)
    }

    /// Which words of a question fit an allowed tool: [`RegistrySnapshot::matches`].
    pub fn matches(&self, question: &str, name: &str) -> Vec<Match> {
        match self.describe(name) {
            Some(_) => self.snapshot.matches(question, name),
            None => Vec::new(),
        }
    }
}
