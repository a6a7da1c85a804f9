//! Registry snapshots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use toolcrib_search::{Fingerprints, near_names_among};
use toolcrib_search::{Index, Match};
use toolcrib_tool::{Availability, Body, Layer, ToolDefinition, ToolEntry};

use super::conflict::{Conflict, Divergence, Reservation};
use super::owners::Owners;
use super::rules::Rules;
use super::slot::ToolSlot;
use crate::core_tools::search::FoundTool;
use crate::identity::fingerprint;
use crate::lifecycle::LiveBody;

/// Registry snapshots. Never changes.
#[derive(Debug)]
pub struct RegistrySnapshot {
    generation: u64,
    owners: Owners,
    /// The definitions of available owners; computed lazily.
    callable: OnceLock<Vec<Arc<ToolDefinition>>>,
    /// Fingerprints by position, for similar names; computed lazily.
    fingerprints: OnceLock<Fingerprints>,
    /// The search index by position; computed lazily, from the documents that slots keep across
    /// snapshots.
    words: OnceLock<Index>,
    /// Entries that did not get their name, by name and precedence.
    waiting: Vec<Arc<ToolSlot>>,
    /// Sorted by name.
    reserved: Vec<Reservation>,
    conflicts: Vec<Conflict>,
    rules: Arc<Rules>,
    registered: u64,
    /// Whether some owners are only for toolsets that name them for that.
    has_opt_in: bool,
}

/// The parts from which a snapshot is built.
#[derive(Debug)]
pub(super) struct SnapshotParts {
    pub(super) owners: Owners,
    pub(super) waiting: Vec<Arc<ToolSlot>>,
    pub(super) reserved: Vec<Reservation>,
    pub(super) rules: Arc<Rules>,
    /// How many entries were registered individually so far.
    pub(super) registered: u64,
}

impl RegistrySnapshot {
    pub(super) fn assemble(parts: SnapshotParts) -> Self {
        static GENERATION: AtomicU64 = AtomicU64::new(1);

        let SnapshotParts { owners, waiting, reserved, rules, registered } = parts;
        let mut snapshot = Self {
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            owners,
            callable: OnceLock::new(),
            fingerprints: OnceLock::new(),
            words: OnceLock::new(),
            waiting,
            reserved,
            conflicts: Vec::new(),
            rules,
            registered,
            has_opt_in: false,
        };
        let has_opt_in = snapshot.entries().any(|entry| entry.opt_in);
        snapshot.has_opt_in = has_opt_in;
        snapshot.conflicts =
            snapshot.waiting.iter().filter_map(|slot| snapshot.conflict(slot)).collect();
        snapshot
    }

    fn conflict(&self, waiting: &ToolSlot) -> Option<Conflict> {
        // An overridden fallback is not a conflict.
        if waiting.is_fallback() {
            return None;
        }
        let owner = self.slot(waiting.name()).map(|slot| slot.entry.source.clone());
        let reserved = owner.is_none();
        let winner = owner.or_else(|| Some(self.reservation(waiting.name())?.owner.clone()))?;
        Some(Conflict { loser: waiting.entry.clone(), winner, reserved })
    }

    /// Its unique number in this process; later snapshots have larger numbers.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether some owners are only for toolsets that name them for that.
    pub(crate) fn has_opt_in(&self) -> bool {
        self.has_opt_in
    }

    /// The owner of a name: one hash probe, no lock, no allocation.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.slot(name).map(|slot| &slot.entry)
    }

    /// The fingerprint of a name's owner, as used in suspended calls, approvals and the audit log.
    pub fn fingerprint(&self, name: &str) -> Option<fingerprint::Fingerprint> {
        self.slot(name).map(|slot| slot.fingerprint())
    }

    #[inline]
    pub(crate) fn slot(&self, name: &str) -> Option<&Arc<ToolSlot>> {
        self.owners.get(self.owners.position(name)?)
    }

    #[inline]
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.owners.position(name)
    }

    #[inline]
    pub(crate) fn slot_at(&self, position: usize) -> Option<&Arc<ToolSlot>> {
        self.owners.get(position)
    }

    /// The definition of an available tool, which a model may see; [`get`](Self::get) also finds
    /// unavailable ones.
    #[inline]
    pub fn describe(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        let slot = self.slot(name).filter(|slot| slot.is_available())?;
        Some(&slot.entry.definition)
    }

    /// All owners, sorted by name, including unavailable ones.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &ToolEntry> {
        self.owners.iter().map(|slot| &slot.entry)
    }

    /// The definitions of available tools, which a model may see, sorted by name.
    pub fn definitions(&self) -> &[Arc<ToolDefinition>] {
        self.callable.get_or_init(|| {
            let available = self.owners.iter().filter(|slot| slot.is_available());
            available.map(|slot| Arc::clone(&slot.entry.definition)).collect()
        })
    }

    /// The names of available tools that are similar to an unknown name, best match first, at most
    /// three, among those that pass `filter`.
    ///
    /// ```
    /// use toolcrib_core::Registry;
    /// let registry = Registry::scratch().tool("read_file", |_, _| async { "text" }).build()?;
    /// assert_eq!(registry.snapshot().near("readfile", |_| true), ["read_file"]);
    /// assert!(registry.snapshot().near("readfile", |tool| tool.name() == "x").is_empty());
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    pub fn near(&self, name: &str, filter: impl Fn(&ToolEntry) -> bool) -> Vec<&str> {
        self.near_at(name, |position| {
            self.owners.get(position).is_some_and(|slot| filter(&slot.entry))
        })
    }

    pub(crate) fn near_at(&self, name: &str, wanted: impl Fn(usize) -> bool) -> Vec<&str> {
        let fingerprints = self.fingerprints.get_or_init(|| {
            Fingerprints::of((0..self.owners.len()).map(|at| self.owners.name(at)))
        });
        near_names_among(name, fingerprints, |position| {
            let is_candidate = self.owners.is_available(position) && wanted(position);
            is_candidate.then(|| self.owners.name(position))
        })
    }

    /// Searches the available tools by the words of a question, best match first, at most `limit`,
    /// among those that pass `filter`.
    ///
    /// The first search of a snapshot builds its index, which takes some milliseconds for ten
    /// thousand tools; only new tools are read.
    pub fn search(
        &self,
        question: &str,
        limit: usize,
        filter: impl Fn(&ToolEntry) -> bool,
    ) -> Vec<FoundTool<'_>> {
        self.search_at(question, limit, |position| {
            self.owners.get(position).is_some_and(|slot| filter(&slot.entry))
        })
    }

    pub(crate) fn search_at(
        &self,
        question: &str,
        limit: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<FoundTool<'_>> {
        let wanted = |position| self.owners.is_available(position) && wanted(position);
        let hits = self.words().search_among(question, limit, wanted);
        let found = hits.into_iter().filter_map(|hit| {
            let definition = &self.owners.get(hit.position)?.entry.definition;
            Some(FoundTool { definition, score: hit.score })
        });
        found.collect()
    }

    /// Which words of a question match a tool, and where.
    pub fn matches(&self, question: &str, name: &str) -> Vec<Match> {
        let position = self.owners.position(name);
        position.map_or_else(Vec::new, |position| self.words().matches(question, position))
    }

    fn words(&self) -> &Index {
        self.words.get_or_init(|| Index::of(self.owners.iter().map(|slot| slot.document())))
    }

    /// Every entry that did not get its name, with the owner's source, sorted by name.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// The fallbacks that other tools have overridden. These are not conflicts.
    pub fn overridden(&self) -> impl Iterator<Item = &ToolEntry> {
        self.waiting.iter().filter(|slot| slot.is_fallback()).map(|slot| &slot.entry)
    }

    /// Names that are reserved for their last owner's layer, sorted.
    pub fn reserved(&self) -> &[Reservation] {
        &self.reserved
    }

    /// Names that would have another owner if the same declarations were loaded afresh, sorted.
    pub fn would_differ(&self) -> Vec<Divergence> {
        let of_one_name = self.waiting.chunk_by(|a, b| a.name() == b.name());
        of_one_name
            .filter_map(|waiting| {
                let first = waiting.first()?;
                let live = self.slot(first.name());
                let fresh = live.into_iter().chain([first]);
                let fresh = fresh.min_by_key(|slot| slot.precedence(&self.rules))?;
                let same = live.is_some_and(|live| Arc::ptr_eq(live, fresh));
                (!same).then(|| Divergence {
                    name: first.entry.definition.tool_name().clone(),
                    live: live.map(|slot| slot.entry.source.clone()),
                    fresh: fresh.entry.source.clone(),
                })
            })
            .collect()
    }

    /// A copy in which some tools have new definitions. Unknown names are ignored. For the
    /// definitions that [`Tool::refresh`](toolcrib_tool::Tool::refresh) returns.
    #[must_use]
    pub fn refreshed(&self, definitions: impl IntoIterator<Item = Arc<ToolDefinition>>) -> Self {
        let others = definitions.into_iter().filter_map(|definition| {
            let position = self.owners.position(definition.name())?;
            let ToolSlot { entry, place, .. } = &**self.owners.get(position)?;
            let entry = ToolEntry { definition, ..entry.clone() };
            Some((position, Arc::new(ToolSlot::new(entry, *place))))
        });
        self.with_owners(self.owners.with(others))
    }

    /// A copy for a separate registry, in which tools run other bodies if `replace` returns one.
    /// Such a tool is always available. Definitions and names stay the same. For tests that record
    /// or replace what tools do.
    #[must_use]
    pub fn with_bodies(&self, replace: impl Fn(&ToolEntry) -> Option<Body>) -> Self {
        let slots = self.owners.iter().map(|slot| {
            let mut entry = slot.entry.clone();
            if let Some(body) = replace(&entry) {
                entry.body = body;
                entry.availability = Availability::Available;
            }
            Arc::new(ToolSlot::new(entry, slot.place))
        });
        self.with_owners(self.owners.with(slots.enumerate()))
    }

    /// A copy with other owners of the same names.
    fn with_owners(&self, owners: Owners) -> Self {
        let parts = SnapshotParts {
            owners,
            waiting: self.waiting.clone(),
            reserved: self.reserved.clone(),
            rules: Arc::clone(&self.rules),
            registered: self.registered,
        };
        Self::assemble(parts)
    }

    /// The bodies of all entries, including those that wait for a name.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Arc<LiveBody>> {
        self.owners.iter().chain(&self.waiting).filter_map(|slot| slot.live())
    }

    pub(super) fn owners(&self) -> &Owners {
        &self.owners
    }

    pub(super) fn waiting(&self) -> &[Arc<ToolSlot>] {
        &self.waiting
    }

    pub(super) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    pub(super) fn registered(&self) -> u64 {
        self.registered
    }

    pub(super) fn reservation(&self, name: &str) -> Option<&Reservation> {
        let found = self.reserved.binary_search_by(|held| held.name.as_str().cmp(name)).ok()?;
        self.reserved.get(found)
    }

    /// The layer for which a name is reserved.
    pub(super) fn reserved_for(&self, name: &str) -> Option<Layer> {
        self.reservation(name).map(Reservation::layer)
    }
}
