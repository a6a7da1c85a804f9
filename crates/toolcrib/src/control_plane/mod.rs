//! The control plane of a crib: everything that determines what it runs, derived from its settings
//! and manifests.
//!
//! One function, `ControlPlaneKeeper::resolve`, determines the places and stores them in the [`ControlPlane`], which
//! everything that accesses files consults.

mod own;
mod placeholders;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use toolcrib_manifest::Loaded;
use toolcrib_manifest::declaration::{SandboxProfile, SandboxSpec, UpstreamTransport};
use toolcrib_manifest::directory::ENDINGS;
use toolcrib_manifest::live::{ManifestUnit, UnitChange};
use toolcrib_runners::{ControlPlane, DecidingFiles, Lease, Places, RunnerHost};

pub use own::OwnPlaces;
pub use record::ExposedFiles;
pub use toolcrib_runners::ExposureRecord;

/// A manifest: the rank of its directory, and its name.
type ManifestKey = (u32, String);

/// The programs and files of one version of a manifest.
#[derive(Debug, Default)]
struct UnitPlaces {
    read_only: Vec<PathBuf>,
    /// Files that unconfined programs run: if they are missing, no tool may create them.
    guarded: Vec<PathBuf>,
}

/// Keeps the control plane of a crib up to date. Cloning it is cheap.
#[derive(Clone)]
pub(crate) struct ControlPlaneKeeper(Arc<KeeperInner>);

struct KeeperInner {
    plane: ControlPlane,
    host: RunnerHost,
    own: OwnPlaces,
    /// The working folders of programs.
    roots: Vec<PathBuf>,
    state: Mutex<KeeperState>,
}

#[derive(Default)]
struct KeeperState {
    /// Places of a config that a reload has read and that apply from the next start on.
    coming: OwnPlaces,
    units: BTreeMap<ManifestKey, Arc<UnitPlaces>>,
    /// Older versions that open turns may still run.
    earlier: Vec<Weak<UnitPlaces>>,
}

/// A set of changes whose places are already in the control plane, before the changes are applied.
pub(crate) struct PreparedChanges {
    units: BTreeMap<ManifestKey, Arc<UnitPlaces>>,
    leases: BTreeMap<String, Lease>,
}

impl PreparedChanges {
    /// What the tools of each changed file keep alive.
    pub(crate) fn leases(&self) -> BTreeMap<String, Lease> {
        self.leases.clone()
    }
}

impl ControlPlaneKeeper {
    /// Creates the keeper of a server without manifests so far. `roots` are the folders in which
    /// programs work besides the host's own.
    pub(crate) fn new(host: &RunnerHost, own: OwnPlaces, roots: Vec<PathBuf>) -> Self {
        let keeper = Self(Arc::new(KeeperInner {
            plane: host.control_plane.clone(),
            host: host.clone(),
            own,
            roots,
            state: Mutex::default(),
        }));
        keeper.publish(&keeper.state(), []);
        keeper
    }

    pub(crate) fn plane(&self) -> &ControlPlane {
        &self.0.plane
    }

    /// Adds the valid files of a load. Returns their leases by file.
    pub(crate) fn load<'l>(
        &self,
        files: impl IntoIterator<Item = (u32, String, &'l Loaded)>,
    ) -> BTreeMap<String, Lease> {
        let mut state = self.state();
        let mut leases = BTreeMap::new();
        for (rank, name, loaded) in files {
            let places = self.places_of(&name, loaded);
            leases.insert(name.clone(), Arc::clone(&places) as Lease);
            state.units.insert((rank, name), places);
        }
        self.publish(&state, []);
        leases
    }

    /// Adds the files that changed manifests will run to the control plane, before the changes are
    /// applied.
    pub(crate) fn prepare(&self, changes: &[UnitChange]) -> PreparedChanges {
        let state = self.state();
        let mut prepared = PreparedChanges { units: state.units.clone(), leases: BTreeMap::new() };
        let key = |unit: &ManifestUnit| (unit.rank, unit.name.clone());
        // All removals come first, because files may have exchanged their names.
        let moved: Vec<_> = changes
            .iter()
            .filter_map(|change| match change {
                UnitChange::Rename { from, to } => {
                    Some((key(to), prepared.units.remove(&key(from))))
                }
                _ => None,
            })
            .collect();
        for (to, places) in moved {
            match places {
                Some(places) => drop(prepared.units.insert(to, places)),
                None => drop(prepared.units.remove(&to)),
            }
        }
        for change in changes {
            match change {
                UnitChange::Remove { unit } => drop(prepared.units.remove(&key(unit))),
                UnitChange::Replace { unit, loaded } => {
                    let places = self.places_of(&unit.name, loaded);
                    prepared.leases.insert(unit.name.clone(), Arc::clone(&places) as Lease);
                    prepared.units.insert(key(unit), places);
                }
                UnitChange::Rename { .. } => {}
            }
        }
        self.publish(&state, prepared.units.values());
        prepared
    }

    /// Confirms that the changes were applied: replaced versions count only while a turn may run
    /// them.
    pub(crate) fn applied(&self, prepared: PreparedChanges) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.units, prepared.units);
        let is_kept =
            |unit: &Arc<UnitPlaces>| state.units.values().any(|now| Arc::ptr_eq(now, unit));
        let replaced: Vec<_> =
            before.values().filter(|unit| !is_kept(unit)).map(Arc::downgrade).collect();
        drop(before);
        state.earlier.extend(replaced);
        state.earlier.retain(|unit| unit.strong_count() > 0);
        self.publish(&state, []);
    }

    /// Withdraws the changes because they were refused.
    pub(crate) fn refused(&self, prepared: PreparedChanges) {
        drop(prepared);
        self.publish(&self.state(), []);
    }

    /// Adds the places of a changed config to the control plane before they take effect at the next start.
    pub(crate) fn expect(&self, coming: OwnPlaces) {
        let mut state = self.state();
        state.coming = coming;
        self.publish(&state, []);
    }

    /// Resolves the places again on the operator's request. The operator takes responsibility for
    /// files that were added in the meantime, which are returned.
    pub(crate) fn look_again(&self) -> Vec<PathBuf> {
        let reviewed = self.0.plane.reviewed();
        self.publish(&self.state(), []);
        reviewed
    }

    fn places_of(&self, name: &str, loaded: &Loaded) -> Arc<UnitPlaces> {
        Arc::new(places_of(name, loaded, &self.0.host))
    }

    fn publish<'u>(
        &self,
        state: &KeeperState,
        more: impl IntoIterator<Item = &'u Arc<UnitPlaces>>,
    ) {
        let mut places = UnitPlaces::default();
        let mut add = |unit: &UnitPlaces| {
            places.read_only.extend(unit.read_only.iter().cloned());
            places.guarded.extend(unit.guarded.iter().cloned());
        };
        state.units.values().for_each(|unit| add(unit));
        state.earlier.iter().filter_map(Weak::upgrade).for_each(|unit| add(&unit));
        more.into_iter().for_each(|unit| add(unit));
        self.0.plane.set(self.resolve(&state.coming, places));
    }

    /// All current places: the server's own, and those of manifests.
    fn resolve(&self, coming: &OwnPlaces, of_manifests: UnitPlaces) -> Places {
        let KeeperInner { host, roots, .. } = &*self.0;
        let mut own = self.0.own.clone();
        own.extend(coming.clone());
        own.guarded.extend(of_manifests.guarded);
        let mut read_only: Vec<PathBuf> = own.read_only.clone();
        read_only.extend(own::programs());
        read_only.extend(of_manifests.read_only);
        let resolved = |own: &OwnPlaces, read_only: &[PathBuf]| {
            Places::resolve(&own.hidden, read_only)
                .guarded(&own.guarded)
                .with_links_in(&own.manifest_folders, &ENDINGS)
        };
        let places = resolved(&own, &read_only);
        // A link can be replaced unless its folder is withheld, which is possible for every folder
        // except the workspace.
        let roots: Vec<_> = roots
            .iter()
            .chain([&host.workspace_root])
            .filter_map(|root| root.canonicalize().ok())
            .collect();
        let withheld = |folder: &&Path| {
            let inside = roots.iter().any(|root| folder.starts_with(root));
            inside && !roots.iter().any(|root| root.starts_with(folder))
        };
        let folders: Vec<_> =
            places.links.iter().filter_map(|link| link.parent()).filter(withheld).collect();
        if folders.is_empty() {
            return places;
        }
        read_only.extend(folders.into_iter().map(Path::to_owned));
        resolved(&own, &read_only)
    }

    fn state(&self) -> MutexGuard<'_, KeeperState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ControlPlaneKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControlPlaneKeeper").field(&self.0.plane.places()).finish()
    }
}

/// The places of a manifest: the file itself, and the files that determine what its declarations
/// run.
fn places_of(name: &str, loaded: &Loaded, host: &RunnerHost) -> UnitPlaces {
    let mut places = UnitPlaces { read_only: vec![PathBuf::from(name)], guarded: Vec::new() };
    let mut add = |found: DecidingFiles, sandbox: Option<&SandboxSpec>| {
        if sandbox.is_some_and(|sandbox| sandbox.profile == SandboxProfile::Trusted) {
            places.guarded.extend(found.missing.iter().cloned());
        }
        places.read_only.extend(found.protected());
    };
    for declaration in &loaded.declarations {
        add(DecidingFiles::of_tool(declaration, host), Some(&declaration.sandbox));
    }
    for upstream in &loaded.upstreams {
        if let UpstreamTransport::Stdio(stdio) = &upstream.transport {
            let found = DecidingFiles::of_upstream(stdio, &upstream.origin.file, host);
            add(found, Some(&stdio.sandbox));
        }
    }
    for resource in &loaded.resources {
        add(DecidingFiles::of_resource(resource), None);
    }
    places
}
