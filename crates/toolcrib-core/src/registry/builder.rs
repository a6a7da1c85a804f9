//! The builder of the first snapshot.

use std::future::Future;
use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolcrib_tool::{
    CallContext, DefinitionError, IntoOutcome, Layer, Source, ToolEntry, ToolName,
};

use super::change::check_entries;
use super::duplicates;
use super::error::RegistryError;
use super::owners::Owners;
use super::rules::{OVERRIDABLE, Rules};
use super::slot::ToolSlot;
use super::snapshot::{RegistrySnapshot, SnapshotParts};
use super::unit::{EntryPosition, SourceUnit};

/// Collects entries and decides who owns which name.
///
/// The layer decides first (host, native, manifest, upstream), then the position within it:
/// individually registered entries in the order of registration, then those of declared units by
/// the unit's rank and name and the entry's position. Later entries never take over a name; they
/// are listed as [`Conflict`](crate::Conflict)s.
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
/// assert!(matches!(builder.register(entry(Layer::Native, "a")?), Registration::Registered));
/// assert!(matches!(builder.register(entry(Layer::Manifest, "b.yaml")?), Registration::Shadowed { .. }));
/// let snapshot = builder.build();
/// assert_eq!(snapshot.conflicts().len(), 1);
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
#[derive(Debug, Default)]
pub struct RegistryBuilder {
    slots: Vec<Arc<ToolSlot>>,
    /// Name → the entry that currently wins it.
    owners: HashMap<ToolName, usize>,
    rules: Rules,
    registered: u64,
}

/// The result of registering an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a shadowed or refused tool is not callable: report it"]
pub enum Registration {
    /// The entry owns the name, unless an entry with precedence is added to the builder later.
    Registered,
    /// Another entry owns the name.
    Shadowed {
        /// The owner, or the last owner if the name is reserved.
        by: Source,
    },
    /// The entry was refused.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
}

impl RegistryBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which manifest and upstream tools may override a fallback, as `unit:name`, for example
    /// `tools.d/own.yaml:new_task`. Host and linked-in tools always may.
    ///
    /// Call it before registering the tools concerned, because [`register`](Self::register) depends
    /// on it.
    #[must_use]
    pub fn allow_override<S: Into<String>>(mut self, entries: impl IntoIterator<Item = S>) -> Self {
        self.rules.allow_override.extend(entries.into_iter().map(Into::into));
        self
    }

    /// Adds a host tool from an async closure. The type of its first parameter defines the schema
    /// of the arguments. To describe a tool further, use [`ToolEntry::from_fn_with`] with
    /// [`register`](Self::register).
    ///
    /// Fails if the name or the description is refused, or if the arguments are not an object. A name
    /// that is declared twice is listed by [`conflicts`](RegistrySnapshot::conflicts).
    ///
    /// ```
    /// use toolcrib_core::RegistryBuilder;
    /// use toolcrib_tool::NoArguments;
    ///
    /// let mut builder = RegistryBuilder::new();
    /// builder.tool("ping", "Answer.", |_: NoArguments, _| async { "pong" })?;
    /// assert!(builder.build().get("ping").is_some());
    /// # Ok::<(), toolcrib_tool::DefinitionError>(())
    /// ```
    pub fn tool<T, F, R, O>(
        &mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Result<&mut Self, DefinitionError>
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(T, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoOutcome,
    {
        // The snapshot lists the conflicts.
        let _ = self.register(ToolEntry::from_fn(name, description, function)?);
        Ok(self)
    }

    /// Adds an entry. Fallbacks are refused except for the system's own names.
    pub fn register(&mut self, entry: ToolEntry) -> Registration {
        if entry.source.layer == Layer::Fallback && !OVERRIDABLE.contains(&entry.name()) {
            let error = RegistryError::NoFallback { tool: entry.name().to_owned() };
            return Registration::Refused { reason: error.to_string() };
        }
        self.registered += 1;
        self.add(ToolSlot::new(entry, EntryPosition::Registered(self.registered)))
    }

    /// Adds all entries of a unit, in their order: those of a manifest file, for example. Such a unit
    /// can be replaced later ([`Change`](crate::Change)).
    ///
    /// Entries that lose their name are listed by the snapshot's
    /// [`conflicts`](RegistrySnapshot::conflicts). Fails, without adding anything, if an entry's
    /// source is not the unit, and for the fallback layer.
    pub fn declare(
        &mut self,
        unit: &SourceUnit,
        entries: Vec<ToolEntry>,
    ) -> Result<(), RegistryError> {
        if unit.layer() == Layer::Fallback {
            return Err(RegistryError::Fixed { unit: unit.clone() });
        }
        check_entries(unit, &entries)?;
        for (position, entry) in (0..).zip(entries) {
            let _ = self
                .add(ToolSlot::new(entry, EntryPosition::Declared { rank: unit.rank, position }));
        }
        Ok(())
    }

    fn add(&mut self, slot: ToolSlot) -> Registration {
        let position = self.slots.len();
        let registration = match self.owners.entry(slot.entry.definition.tool_name().clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(position);
                Registration::Registered
            }
            Entry::Occupied(mut occupied) => {
                let owner = &self.slots[*occupied.get()];
                if owner.precedence(&self.rules) <= slot.precedence(&self.rules) {
                    Registration::Shadowed { by: owner.entry.source.clone() }
                } else {
                    occupied.insert(position);
                    Registration::Registered
                }
            }
        };
        self.slots.push(Arc::new(slot));
        registration
    }

    /// Decides every name: the first entry wins, and conflicts are logged and listed. Whether they
    /// are an error is up to [`OnDuplicate::check`](crate::OnDuplicate::check).
    pub fn build(self) -> RegistrySnapshot {
        let Self { slots, owners, rules, registered } = self;
        let mut owned = Vec::with_capacity(owners.len());
        let mut waiting = Vec::with_capacity(slots.len() - owners.len());
        for (position, slot) in slots.into_iter().enumerate() {
            if owners.get(slot.name()) == Some(&position) {
                owned.push(slot);
            } else {
                waiting.push(slot);
            }
        }
        owned.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        waiting.sort_by(|a, b| {
            (a.name(), a.precedence(&rules)).cmp(&(b.name(), b.precedence(&rules)))
        });
        let snapshot = RegistrySnapshot::assemble(SnapshotParts {
            owners: Owners::new(owned),
            waiting,
            reserved: Vec::new(),
            rules: Arc::new(rules),
            registered,
        });
        duplicates::log(snapshot.conflicts(), &[]);
        snapshot
    }
}
