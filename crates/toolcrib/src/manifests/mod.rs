//! Tools from manifest files: read, checked, converted to entries, and kept up to date.

#[cfg(feature = "manifests")]
pub mod check;
#[cfg(feature = "manifests")]
pub mod lock;
#[cfg(all(feature = "manifests", feature = "mcp"))]
pub mod names;
#[cfg(all(feature = "manifests", feature = "mcp"))]
pub(crate) mod offerings;
#[cfg(feature = "manifests")]
pub mod tests_in_manifests;
#[cfg(feature = "manifests")]
pub mod trust;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_core::{Change, Executor, RegistryBuilder, SourceUnit};
use toolcrib_manifest::directory::{DirectoryLoad, load_dirs};
use toolcrib_manifest::live::{
    FileEvent, FileStatus, LiveManifests, ManifestWatcher, ScanReport, Subscriber, UnitChange,
};
use toolcrib_manifest::lock::LockMode;
#[cfg(feature = "mcp")]
use toolcrib_mcp::upstream::Upstream;
use toolcrib_runners::{RunnerHost, Trust, pin_files};
use toolcrib_tool::{Layer, ToolEntry};

use crate::control_plane::ControlPlaneKeeper;
use crate::crib::BuildError;
use crate::manifests::lock::LockKeeper;
#[cfg(feature = "mcp")]
use crate::manifests::names::{NameChanges, Names};
use crate::manifests::trust::TrustUnderLock;

/// The content of manifest files.
///
/// A broken file yields no tools, and [`files`](Manifests::files) says why; it does not affect
/// other files.
#[derive(Debug, Clone)]
pub struct Manifests {
    paths: Vec<PathBuf>,
    files: Arc<DirectoryLoad>,
    host: RunnerHost,
    /// Directories that may be missing, and were missing when the manifests were read.
    absent: Vec<PathBuf>,
}

impl Manifests {
    /// Reads the manifests of directories, in order; a path that is a file is read as one. `host`
    /// determines the default working directory of commands, and the secrets.
    pub fn load(paths: &[PathBuf], host: RunnerHost) -> Self {
        let mut files = load_dirs(paths);
        for file in &mut files.files {
            pin_files(&mut file.loaded, &host);
        }
        Self { paths: paths.to_vec(), files: Arc::new(files), host, absent: Vec::new() }
    }

    /// Sets the position in the config at which each of its directories that cannot be read is
    /// reported.
    #[must_use]
    pub fn located(mut self, config: &crate::settings::LoadedConfig) -> Self {
        if !self.files.unreadable.is_empty() {
            config.locate_directories(Arc::make_mut(&mut self.files));
        }
        self
    }

    /// Treats missing directories as directories without manifests.
    #[must_use]
    pub fn without_missing(mut self) -> Self {
        let missing = self.files.unreadable.iter().filter(|dir| !dir.path.exists());
        self.absent = missing.map(|dir| dir.path.clone()).collect();
        Arc::make_mut(&mut self.files).forgive_missing();
        self
    }

    /// The tools of all valid files, in the order that resolves names: directory, file, position.
    pub fn entries(&self) -> impl Iterator<Item = ToolEntry> + '_ {
        self.files
            .declarations()
            .map(|declaration| toolcrib_runners::entry(declaration, &self.host))
    }

    /// The other MCP servers that valid files name, in the same order, each with its secrets and
    /// its values of this program's environment.
    #[cfg(feature = "mcp")]
    pub fn upstreams(&self) -> impl Iterator<Item = Upstream> + '_ {
        self.files
            .upstreams()
            .map(|declaration| crate::upstreams::upstream(declaration, &self.host))
    }

    /// The working directory of their commands, their secrets, and which of them are trusted under
    /// this lock.
    pub(crate) fn host(&self, lock: Option<&Arc<LockKeeper>>) -> RunnerHost {
        under(lock, &self.host)
    }

    /// The directories and files that were read, as given.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The files, with their declarations and all findings about them.
    pub fn files(&self) -> &DirectoryLoad {
        &self.files
    }

    /// Declares every valid file as a unit, which can be replaced later.
    pub(crate) fn declare(
        &self,
        registry: &mut RegistryBuilder,
        lock: Option<&Arc<LockKeeper>>,
        keeper: &ControlPlaneKeeper,
    ) -> Result<(), BuildError> {
        let good = self.files.files.iter().filter(|file| !file.loaded.has_errors());
        let leases = keeper.load(
            good.map(|file| (file.rank, file.path.to_string_lossy().into_owned(), &file.loaded)),
        );
        let host = self.host(lock).with_leases(leases);
        // All entries are compared with the lock together, so that it is read once.
        let declarations: Vec<_> = self.files.declarations().collect();
        let mut entries = toolcrib_runners::entries(&declarations, &host);
        if let Some(lock) = lock {
            entries = lock.admit(entries)?;
        }
        let mut entries = entries.into_iter();
        for file in self.files.files.iter().filter(|file| !file.loaded.has_errors()) {
            let own = entries.by_ref().take(file.loaded.declarations.len()).collect();
            registry.declare(&unit(&file.path.to_string_lossy(), file.rank), own)?;
        }
        Ok(())
    }
}

/// The host as tools under this lock see it. If the lock is enforced, accepted declarations are
/// trusted, and exactly the accepted files run: a script that changes behind a loaded manifest does
/// not.
fn under(lock: Option<&Arc<LockKeeper>>, host: &RunnerHost) -> RunnerHost {
    match lock.filter(|lock| lock.mode() == LockMode::Enforce) {
        None => host.clone(),
        Some(lock) => {
            let (own, lock) = (Arc::clone(&host.trust), Arc::clone(lock));
            host.clone().with_pinned_scripts(true).with_trust(TrustUnderLock { own, lock })
        }
    }
}

fn unit(name: &str, rank: u32) -> SourceUnit {
    SourceUnit::new(Layer::Manifest, name).rank(rank)
}

/// The manifests of a crib, which follow their files. Cloning it is cheap.
#[derive(Clone)]
pub struct Reloader(Arc<ReloaderInner>);

struct ReloaderInner {
    live: Arc<LiveManifests>,
    /// The operator's trust decisions.
    trust: Arc<dyn Trust>,
    keeper: ControlPlaneKeeper,
    /// Directories that may be missing, and were missing at the start.
    absent: Vec<PathBuf>,
    watch: Mutex<Option<ManifestWatcher>>,
}

impl Reloader {
    pub(crate) fn new(
        manifests: &Manifests,
        executor: &Executor,
        lock: Option<Arc<LockKeeper>>,
        keeper: ControlPlaneKeeper,
        #[cfg(feature = "mcp")] names: Names,
    ) -> Self {
        let registry = ManifestRegistry {
            keeper: keeper.clone(),
            executor: executor.clone(),
            host: manifests.host(lock.as_ref()),
            lock,
            #[cfg(feature = "mcp")]
            names,
        };
        let lock = registry.lock.iter().filter(|lock| lock.mode() != LockMode::Off);
        let mut auxiliary: Vec<_> = lock.map(|lock| lock.path().to_owned()).collect();
        auxiliary.extend(manifests.host.trust.files());
        let live = LiveManifests::new(&manifests.files, registry).with_auxiliary_files(&auxiliary);
        let live = Arc::new(live);
        let trust = Arc::clone(&manifests.host.trust);
        let absent = manifests.absent.clone();
        Self(Arc::new(ReloaderInner { live, trust, keeper, absent, watch: Mutex::new(None) }))
    }

    /// Follows the files and the lock from now on: a saved file is live a moment later. Does nothing if they are
    /// followed already. Ends with the crib.
    ///
    /// Fails only if no thread can be started. Files that cannot be watched are polled every two
    /// seconds, which is logged.
    pub fn watch(&self) -> io::Result<()> {
        let mut watch = self.0.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.is_none() {
            *watch = Some(ManifestWatcher::start(&self.0.live, |text| tracing::warn!("{text}"))?);
        }
        Ok(())
    }

    /// Reads every file again now, and applies all changes as one set.
    ///
    /// Running calls and open turns keep their version. MCP servers that files no longer name, or name with changes,
    /// are ended with the calls that they run; other servers are not affected. After the crib has connected to servers,
    /// this happens in the background.
    pub fn reload(&self) -> ScanReport {
        self.reload_and_review().0
    }

    /// Like [`reload`](Self::reload). Also returns the files that programs of this server could have created or
    /// changed, and that count as reviewed from now on; each is logged.
    pub(crate) fn reload_and_review(&self) -> (ScanReport, Vec<PathBuf>) {
        let mut reviewed = self.0.keeper.look_again();
        let report = self.0.live.reload();
        // The operator has also reviewed what these manifests add.
        reviewed.extend(self.0.keeper.plane().reviewed());
        reviewed.sort();
        reviewed.dedup();
        for file in &reviewed {
            tracing::warn!(
                "`{}` counts as reviewed by this reload: programs of this server could have created or changed it",
                file.display()
            );
        }
        (report, reviewed)
    }

    /// Applies the trusted names of a reloaded config. They take effect with the next
    /// [`reload`](Self::reload).
    #[cfg(unix)]
    pub(crate) fn trust(&self, named: &[String]) {
        self.0.trust.take_over(named);
    }

    /// Every file with its state, in the order that resolves names.
    pub fn files(&self) -> Vec<FileStatus> {
        self.0.live.files()
    }

    /// Directories that cannot be read, with the reason; without those that may be missing
    /// ([`Manifests::without_missing`]) and were missing from the start.
    pub fn unreadable(&self) -> Vec<(PathBuf, String)> {
        let mut unreadable = self.0.live.unreadable();
        unreadable.retain(|(dir, _)| !self.0.absent.contains(dir) || dir.exists());
        unreadable
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reloader").field(&self.0.live).finish()
    }
}

/// The registry that manifests are applied to.
struct ManifestRegistry {
    keeper: ControlPlaneKeeper,
    executor: Executor,
    host: RunnerHost,
    lock: Option<Arc<LockKeeper>>,
    #[cfg(feature = "mcp")]
    names: Names,
}

impl Subscriber for ManifestRegistry {
    fn apply(&self, mut changes: Vec<UnitChange>) -> Result<(), String> {
        if changes.iter().any(|change| matches!(change, UnitChange::Replace { .. })) {
            self.refresh_secrets();
        }
        // No tool can change the files any more, before they can run.
        let prepared = self.keeper.prepare(&changes);
        for change in &mut changes {
            if let UnitChange::Replace { loaded, .. } = change {
                pin_files(loaded, &self.host);
            }
        }
        let host = self.host.clone().with_leases(prepared.leases());
        #[cfg(feature = "mcp")]
        let named = NameChanges::of(&changes, &self.host, self.lock.as_deref());
        let changes: Result<Vec<_>, _> =
            changes.into_iter().map(|change| self.change(change, &host)).collect();
        let applied = changes.and_then(|changes| {
            self.executor.registry().apply(changes).map_err(|error| error.to_string())
        });
        let applied = match applied {
            Ok(applied) => applied,
            Err(error) => {
                self.keeper.refused(prepared);
                return Err(error);
            }
        };
        self.keeper.applied(prepared);
        if !applied.is_empty() {
            tracing::info!(
                added = applied.added.len(),
                changed = applied.changed.len(),
                removed = applied.removed.len(),
                generation = self.executor.registry().snapshot().generation(),
                "the tools have changed"
            );
        }
        // This comes after the registry has accepted the set: a refused file keeps its other names
        // too.
        #[cfg(feature = "mcp")]
        self.names.apply(named);
        Ok(())
    }

    fn objection(&self, path: &Path) -> Option<String> {
        let file = self.keeper.plane().exposed([path])?;
        Some(format!("the server would read {file}: {}", file.remedy()))
    }

    fn report(&self, report: &ScanReport) {
        for event in &report.events {
            log(event);
        }
    }
}

impl ManifestRegistry {
    fn change(&self, change: UnitChange, host: &RunnerHost) -> Result<Change, String> {
        Ok(match change {
            UnitChange::Replace { unit: file, loaded } => {
                let declarations: Vec<_> = loaded.declarations.iter().collect();
                let mut entries = toolcrib_runners::entries(&declarations, host);
                if let Some(lock) = &self.lock {
                    entries = lock.admit(entries).map_err(|error| error.to_string())?;
                }
                Change::Replace { unit: unit(&file.name, file.rank), entries }
            }
            UnitChange::Remove { unit: file } => {
                Change::Remove { unit: unit(&file.name, file.rank) }
            }
            UnitChange::Rename { from, to } => {
                Change::Rename { from: unit(&from.name, from.rank), to: unit(&to.name, to.rank) }
            }
        })
    }

    /// A secret may have been added together with the manifest that uses it. New values are masked before a tool can
    /// use them.
    fn refresh_secrets(&self) {
        self.host.secrets.refresh(|secrets| {
            if let Err(error) = self.executor.mask_also(crate::settings::setup::values(secrets)) {
                tracing::warn!("secrets: {error}");
            }
        });
    }
}

fn log(event: &FileEvent) {
    match event {
        // As loud as what it puts an end to.
        FileEvent::Loaded { unit, tools, mended: true, .. } => {
            tracing::warn!(file = %unit, tools, "a manifest can be used again");
        }
        FileEvent::Loaded { unit, from: Some(from), tools, .. } => {
            tracing::info!(file = %unit, %from, tools, "a manifest was renamed");
        }
        FileEvent::Loaded { unit, from: None, tools, .. } => {
            tracing::info!(file = %unit, tools, "a manifest was loaded");
        }
        FileEvent::Removed { unit } => tracing::info!(file = %unit, "a manifest is gone"),
        FileEvent::Stale { unit, reason, tools, .. } => tracing::warn!(
            file = %unit, tools, reason, "a manifest cannot be used; its last good tools stay"
        ),
        FileEvent::Broken { unit, reason, .. } => {
            tracing::warn!(file = %unit, reason, "a manifest cannot be used");
        }
    }
}
