//! Who owns which name: entries in, an immutable snapshot out, the first one wins.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use toolcrib_tool::{
    Body, DefinitionError, Source, ToolDefinition, ToolEntry, ToolError, ToolName, native_tools,
};

use crate::admission;
use crate::answers::Callee;
use crate::arguments::prepare::Preparation;
use crate::lifecycle::{Bodies, LiveBody};
use crate::schema::{InputValidator, OutputValidator, SchemaCache};
use crate::statistics::{Counter, Statistics};

/// Collects entries and decides who owns which name.
///
/// The layer decides first (host, native, manifest, upstream), then the order of registration.
/// Later and lower entries never take a name over; they stay visible as [`Conflict`]s.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_core::{Registration, RegistryBuilder};
/// use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};
///
/// let entry = |layer, unit: &str| -> Result<ToolEntry, toolcrib_tool::DefinitionError> {
///     let definition = ToolDefinition::builder("ping").description("Answer.").build()?;
///     let body = tool_fn(|_: serde_json::Value, _| async { "pong" });
///     Ok(ToolEntry::new(definition, Arc::new(body), Source::new(layer, unit)))
/// };
///
/// let mut builder = RegistryBuilder::new();
/// assert_eq!(builder.register(entry(Layer::Native, "a")?), Registration::Registered);
/// assert!(matches!(builder.register(entry(Layer::Manifest, "b.yaml")?), Registration::Shadowed { .. }));
/// let snapshot = builder.build();
/// assert_eq!(snapshot.conflicts().len(), 1);
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
#[derive(Debug, Default)]
pub struct RegistryBuilder {
    entries: Vec<ToolEntry>,
    /// Name → the entry that would own it if nothing more came.
    owners: HashMap<ToolName, usize>,
}

/// What became of an entry when it was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a shadowed tool is not callable: say so to somebody"]
pub enum Registration {
    /// The name is the entry's, unless an entry of a higher layer is still to come.
    Registered,
    /// Another entry owns the name.
    Shadowed {
        /// The owner.
        by: Source,
    },
}

/// A name two entries asked for.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// The entry that lost.
    pub loser: ToolEntry,
    /// Where the owner comes from.
    pub winner: Source,
}

impl RegistryBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry.
    pub fn register(&mut self, entry: ToolEntry) -> Registration {
        let position = self.entries.len();
        let registration = match self.owners.entry(entry.definition.tool_name().clone()) {
            hashbrown::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(position);
                Registration::Registered
            }
            hashbrown::hash_map::Entry::Occupied(mut occupied) => {
                let owner = &self.entries[*occupied.get()].source;
                if owner.layer <= entry.source.layer {
                    Registration::Shadowed { by: owner.clone() }
                } else {
                    occupied.insert(position);
                    Registration::Registered
                }
            }
        };
        self.entries.push(entry);
        registration
    }

    /// Adds every tool linked into this binary, in an order that does not depend on the linker.
    pub fn register_native(&mut self) -> Result<(), DefinitionError> {
        for tool in native_tools() {
            // Losers are listed by the snapshot's `conflicts`.
            let _ = self.register(tool.entry()?);
        }
        Ok(())
    }

    /// Decides every name.
    pub fn build(self) -> RegistrySnapshot {
        static GENERATION: AtomicU64 = AtomicU64::new(1);

        let mut entries = self.entries;
        // Stable: within a layer the order of registration stays.
        entries.sort_by_key(|entry| entry.source.layer);
        let mut slots: Vec<Slot> = Vec::with_capacity(entries.len());
        let mut index: HashMap<ToolName, usize> = HashMap::with_capacity(entries.len());
        let mut conflicts = Vec::new();
        for entry in entries {
            if let Some(&owner) = index.get(entry.name()) {
                let winner = slots[owner].entry.source.clone();
                tracing::warn!(
                    tool = entry.name(),
                    kept = %winner,
                    shadowed = %entry.source,
                    "two sources declare one name; the first keeps it"
                );
                conflicts.push(Conflict { loser: entry, winner });
                continue;
            }
            index.insert(entry.definition.tool_name().clone(), slots.len());
            slots.push(Slot::new(entry));
        }
        slots.sort_unstable_by(|a, b| a.entry.name().cmp(b.entry.name()));
        for (position, slot) in slots.iter().enumerate() {
            index.insert(slot.entry.definition.tool_name().clone(), position);
        }
        let callable = slots
            .iter()
            .filter(|slot| slot.entry.unavailable_reason().is_none())
            .map(|slot| Arc::clone(&slot.entry.definition))
            .collect();
        let losers = conflicts.iter().filter_map(|conflict| live(&conflict.loser));
        RegistrySnapshot {
            shadowed: losers.collect(),
            generation: GENERATION.fetch_add(1, Ordering::Relaxed),
            slots,
            index,
            callable,
            conflicts,
        }
    }
}

/// Who owns which name at one moment. Never changes.
#[derive(Debug)]
pub struct RegistrySnapshot {
    generation: u64,
    slots: Vec<Slot>,
    index: HashMap<ToolName, usize>,
    callable: Vec<Arc<ToolDefinition>>,
    conflicts: Vec<Conflict>,
    /// Those of the losers, which hold resources as well and may win another day.
    shadowed: Vec<Arc<LiveBody>>,
}

impl RegistrySnapshot {
    /// A number no other snapshot of this process has; later snapshots have larger ones.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The owner of a name: one hash probe, no lock, no allocation.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.slot(name).map(|slot| &slot.entry)
    }

    pub(crate) fn slot(&self, name: &str) -> Option<&Slot> {
        self.index.get(name).map(|&position| &self.slots[position])
    }

    /// The bodies of all entries that have one, owners and losers.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Arc<LiveBody>> {
        self.slots.iter().filter_map(Slot::live).chain(&self.shadowed)
    }

    /// All owners, sorted by name, unavailable ones included.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &ToolEntry> {
        self.slots.iter().map(|slot| &slot.entry)
    }

    /// The definitions a model may be shown, sorted by name: those of available tools.
    pub fn definitions(&self) -> &[Arc<ToolDefinition>] {
        &self.callable
    }

    /// Every entry that did not get its name, with the owner's origin.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }
}

/// An owner and what is derived from its definition at its first call.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) entry: ToolEntry,
    live: Option<Arc<LiveBody>>,
    counter: OnceLock<Counter>,
    compiled: OnceLock<Result<Compiled, ToolError>>,
}

/// What a call needs beyond the entry.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Which tool it is, for answers that are kept.
    pub(crate) callee: Callee,
    /// Changes with everything a definition says.
    pub(crate) fingerprint: u64,
    pub(crate) preparation: Preparation,
    pub(crate) input: Arc<InputValidator>,
    pub(crate) output: Option<Arc<OutputValidator>>,
}

impl Slot {
    fn new(entry: ToolEntry) -> Self {
        let live = live(&entry);
        Self { entry, live, counter: OnceLock::new(), compiled: OnceLock::new() }
    }

    /// The instance that answers the tool's calls, where all calls share one.
    pub(crate) fn live(&self) -> Option<&Arc<LiveBody>> {
        self.live.as_ref()
    }

    /// The definition's fingerprint, where a call has been made.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        let compiled = self.compiled.get()?.as_ref().ok()?;
        Some(format!("{:016x}", compiled.fingerprint))
    }

    /// Where the tool's calls are counted.
    pub(crate) fn counter(&self, statistics: &Statistics) -> &Counter {
        self.counter.get_or_init(|| statistics.counter(&self.entry.definition))
    }

    /// Compiles at the first call; a schema that cannot be compiled fails every call alike.
    pub(crate) fn compiled(&self, schemas: &SchemaCache) -> Result<&Compiled, ToolError> {
        let compile = || {
            let definition = &self.entry.definition;
            // Another instance may do something else under the same definition.
            let instance = match &self.entry.body {
                Body::Shared(tool) => format!("{:p}", Arc::as_ptr(tool)),
                Body::PerUse(factory) => format!("{:p}", Arc::as_ptr(factory)),
                _ => String::new(),
            };
            Ok(Compiled {
                callee: Callee::of(&self.entry, instance),
                fingerprint: admission::fingerprint(definition),
                preparation: Preparation::of(definition),
                input: schemas.input(definition.input_schema())?,
                output: definition
                    .output_schema()
                    .map(|schema| schemas.output(schema))
                    .transpose()?,
            })
        };
        self.compiled.get_or_init(compile).as_ref().map_err(Clone::clone)
    }
}

fn live(entry: &ToolEntry) -> Option<Arc<LiveBody>> {
    let Body::Shared(tool) = &entry.body else { return None };
    Some(LiveBody::of(tool, entry.definition.tool_name()))
}

/// The live registry: one snapshot at a time, read without a lock.
#[derive(Debug)]
pub struct Registry {
    current: ArcSwap<RegistrySnapshot>,
    schemas: SchemaCache,
    bodies: Bodies,
    /// Held from reading the current snapshot to putting the next in place.
    writer: Mutex<()>,
}

impl Registry {
    /// A registry that starts with this snapshot.
    pub fn new(snapshot: RegistrySnapshot) -> Self {
        Self::with_bodies(snapshot, Bodies::default())
    }

    fn with_bodies(snapshot: RegistrySnapshot, bodies: Bodies) -> Self {
        bodies.replace([], snapshot.bodies());
        Self {
            current: ArcSwap::from_pointee(snapshot),
            schemas: SchemaCache::default(),
            bodies,
            writer: Mutex::default(),
        }
    }

    /// As [`new`](Self::new); a tool that is removed stays open for `grace` for turns that still
    /// hold it. Default: 30 s.
    pub fn with_grace(snapshot: RegistrySnapshot, grace: Duration) -> Self {
        Self::with_bodies(snapshot, Bodies::with_grace(grace))
    }

    /// The current snapshot, to keep as long as needed.
    pub fn snapshot(&self) -> Arc<RegistrySnapshot> {
        self.current.load_full()
    }

    /// Puts another snapshot in place at once. Whoever holds the old one keeps it.
    pub fn publish(&self, snapshot: RegistrySnapshot) {
        self.update(|_| Some(snapshot));
    }

    /// Puts the snapshot in place that is made of the current one; no other change comes between.
    pub(crate) fn update(
        &self,
        make: impl FnOnce(&RegistrySnapshot) -> Option<RegistrySnapshot>,
    ) -> bool {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load_full();
        let Some(next) = make(&current) else { return false };
        self.bodies.replace(current.bodies(), next.bodies());
        self.current.store(Arc::new(next));
        true
    }

    /// Closes all bodies that no other registry has; what calls them then is `unavailable`.
    pub(crate) async fn close(&self) {
        self.bodies.close_all(self.current.load().bodies());
        Bodies::settled().await;
    }

    pub(crate) fn schemas(&self) -> &SchemaCache {
        &self.schemas
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.bodies.withdraw(self.current.load().bodies());
    }
}
