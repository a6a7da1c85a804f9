//! The registry in use: lock-free reads of the current snapshot, one writer at a time.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use toolcrib_tool::{Layer, Source, ToolEntry};

use super::builder::Registration;
use super::change::{Change, Edit};
use super::changes::RegistryChanges;
use super::duplicates::{self, OnDuplicate};
use super::error::RegistryError;
use super::evolve::Applied;
use super::snapshot::RegistrySnapshot;
use super::unit::SourceUnit;
use crate::arguments::validators::SchemaCache;
use crate::lifecycle::{Bodies, LiveBody};

/// The live registry, whose current snapshot is read without a lock.
///
/// A writer holds the lock from reading the snapshot to publishing the next, so that no change is
/// lost. Readers are never blocked.
///
/// ```
/// use toolcrib_core::{Change, Mock, Registry, SourceUnit};
/// use toolcrib_tool::{Layer, ToolDefinition};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::scratch().build()?;
/// let unit = SourceUnit::new(Layer::Manifest, "tools.d/a.yaml");
/// let definition = ToolDefinition::builder("ping").description("Answer.").build()?;
/// let entry = Mock::tool(definition).answers("pong").entry_of(&unit);
///
/// let applied = registry.apply([Change::Replace { unit: unit.clone(), entries: vec![entry] }])?;
/// assert_eq!(applied.added[0].as_str(), "ping");
///
/// // No other unit declares the name, so it stays reserved for manifests.
/// registry.apply([Change::Remove { unit }])?;
/// assert_eq!(registry.snapshot().reserved()[0].name.as_str(), "ping");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Registry {
    current: ArcSwap<RegistrySnapshot>,
    writer: Mutex<()>,
    on_duplicate: OnDuplicate,
    schemas: SchemaCache,
    bodies: Bodies,
    generation: watch::Sender<u64>,
}

impl Registry {
    /// A registry that starts with this snapshot.
    pub fn new(snapshot: RegistrySnapshot) -> Self {
        Self::with_bodies(snapshot, Bodies::default())
    }

    /// As [`new`](Self::new), with a grace period for which removed tools stay open for turns that
    /// still hold them. Default: 30 s.
    pub fn with_grace(snapshot: RegistrySnapshot, grace: Duration) -> Self {
        Self::with_bodies(snapshot, Bodies::with_grace(grace))
    }

    fn with_bodies(snapshot: RegistrySnapshot, bodies: Bodies) -> Self {
        bodies.replace([], snapshot.bodies());
        let (generation, _) = watch::channel(snapshot.generation());
        Self {
            current: ArcSwap::from_pointee(snapshot),
            writer: Mutex::new(()),
            on_duplicate: OnDuplicate::default(),
            schemas: SchemaCache::default(),
            bodies,
            generation,
        }
    }

    /// Sets how changes handle duplicate names. Default: the first declaration wins.
    #[must_use]
    pub fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<RegistrySnapshot> {
        self.current.load_full()
    }

    /// Reports changes from now on.
    pub fn changes(&self) -> RegistryChanges {
        RegistryChanges(self.generation.subscribe())
    }

    /// Replaces the snapshot. Holders of the old one keep it.
    pub fn publish(&self, snapshot: RegistrySnapshot) {
        self.update(|_| snapshot);
    }

    /// Creates the next snapshot from the current one and publishes it, under the writer's lock.
    /// `next` must not change the registry itself: that would deadlock.
    pub fn update(
        &self,
        next: impl FnOnce(&RegistrySnapshot) -> RegistrySnapshot,
    ) -> Arc<RegistrySnapshot> {
        let Ok(snapshot) =
            self.write(|current| Ok::<_, std::convert::Infallible>((next(current), ())));
        snapshot.0
    }

    /// As [`update`](Self::update); `None` changes nothing. Returns whether there was a change.
    pub(crate) fn try_update(
        &self,
        next: impl FnOnce(&RegistrySnapshot) -> Option<RegistrySnapshot>,
    ) -> bool {
        self.write(|current| next(current).map(|next| (next, ())).ok_or(())).is_ok()
    }

    /// Applies a set of changes ([`RegistrySnapshot::evolve`]) and publishes the result. New
    /// conflicts are logged.
    ///
    /// Fails without effect if `evolve` fails, or if a name is declared twice and
    /// [`OnDuplicate::Error`] is set.
    pub fn apply(
        &self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<Applied, RegistryError> {
        self.edit(Edit::of(changes)?).map(|(_, applied)| applied)
    }

    /// Replaces the tools of one crate that are linked in ([`Layer::Native`]): the host offers others of
    /// them than before. Calls that run and turns that are open keep what they have. The name of a tool that
    /// is gone is reserved, as after any change.
    ///
    /// Fails if an entry is not of that crate, or as [`apply`](Self::apply) does.
    pub fn replace_native(
        &self,
        krate: &str,
        entries: Vec<ToolEntry>,
    ) -> Result<Applied, RegistryError> {
        let unit = SourceUnit::new(Layer::Native, krate);
        self.edit(Edit::replace(unit, entries)?).map(|(_, applied)| applied)
    }

    /// Registers a host tool while the registry is in use. An existing owner keeps the name.
    pub fn register(&self, entry: ToolEntry) -> Result<Registration, RegistryError> {
        let (name, unit) = (entry.definition.tool_name().clone(), entry.source.unit.clone());
        let (snapshot, _) = self.edit(Edit::register(entry)?)?;
        let owner = snapshot.get(name.as_str()).map(|owner| &owner.source);
        let last = || snapshot.reservation(name.as_str()).map(|held| &held.owner);
        Ok(match owner.or_else(last) {
            Some(by) if by.unit != unit || by.layer != Layer::Host => {
                Registration::Shadowed { by: by.clone() }
            }
            _ => Registration::Registered,
        })
    }

    /// Unregisters a host tool; returns whether there was one. Only layer and unit of the source
    /// count.
    ///
    /// The name goes to the next host entry that declares it. Without one it is reserved;
    /// [`release`](Self::release) opens it to other layers.
    pub fn unregister(&self, source: &Source, name: &str) -> Result<bool, RegistryError> {
        let edit = Edit::unregister(source, name)?;
        let declares = |entry: &ToolEntry| {
            entry.name() == name
                && entry.source.layer == source.layer
                && entry.source.unit == source.unit
        };
        let outcome = self.write(|current| {
            let mut entries = current.owners().iter().chain(current.waiting());
            if entries.any(|slot| declares(&slot.entry)) {
                self.checked(current, edit).map_err(Some)
            } else {
                Err(None)
            }
        });
        match outcome {
            Ok(_) => Ok(true),
            Err(None) => Ok(false),
            Err(Some(error)) => Err(error),
        }
    }

    /// Ends the reservation of a name: the first entry of any layer that declares it becomes its
    /// owner. Returns whether the name was reserved.
    pub fn release(&self, name: &str) -> Result<bool, RegistryError> {
        let edit = Edit::release(name);
        let (_, reserved) = self.write(|current| {
            let reserved = current.reservation(name).is_some();
            self.checked(current, edit).map(|(next, _)| (next, reserved))
        })?;
        Ok(reserved)
    }

    fn edit(&self, edit: Edit) -> Result<(Arc<RegistrySnapshot>, Applied), RegistryError> {
        self.write(|current| self.checked(current, edit))
    }

    fn checked(
        &self,
        current: &RegistrySnapshot,
        edit: Edit,
    ) -> Result<(RegistrySnapshot, Applied), RegistryError> {
        let (next, applied) = current.edited(edit);
        self.on_duplicate.check(&next)?;
        duplicates::log(next.conflicts(), current.conflicts());
        Ok((next, applied))
    }

    fn write<T, E>(
        &self,
        next: impl FnOnce(&RegistrySnapshot) -> Result<(RegistrySnapshot, T), E>,
    ) -> Result<(Arc<RegistrySnapshot>, T), E> {
        // A writer that panicked has changed nothing.
        let _writing = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load();
        let (snapshot, outcome) = next(&current)?;
        let snapshot = Arc::new(snapshot);
        let (gone, come) = changed(&current, &snapshot);
        self.bodies.replace(gone, come);
        self.current.store(Arc::clone(&snapshot));
        self.generation.send_replace(snapshot.generation());
        Ok((snapshot, outcome))
    }

    /// Closes all bodies that no other registry has; later calls are `unavailable`.
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
        self.bodies.end(self.current.load().bodies());
    }
}

/// The bodies of slots that only one of two snapshots has. Both lists are sorted by name, so common
/// slots are skipped in one pass.
fn changed<'a>(
    old: &'a RegistrySnapshot,
    new: &'a RegistrySnapshot,
) -> (Vec<&'a Arc<LiveBody>>, Vec<&'a Arc<LiveBody>>) {
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    let (mut before, mut after) = (old.owners().iter().peekable(), new.owners().iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) if Arc::ptr_eq(one, other) => {
                before.next();
                after.next();
                continue;
            }
            (Some(one), Some(other)) => one.name().cmp(other.name()),
        };
        if order.is_le() {
            gone.extend(before.next().and_then(|slot| slot.live()));
        }
        if order.is_ge() {
            come.extend(after.next().and_then(|slot| slot.live()));
        }
    }
    gone.extend(old.waiting().iter().filter_map(|slot| slot.live()));
    come.extend(new.waiting().iter().filter_map(|slot| slot.live()));
    (gone, come)
}
