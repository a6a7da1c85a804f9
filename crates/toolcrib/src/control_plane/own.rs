//! The server's own part of the control plane: settings, state, programs.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolcrib_manifest::lock::LockMode;
use toolcrib_runners::{DecidingFiles, server_path};

use crate::settings::Config;
use crate::stores::SyslogAddress;

/// The names under which a config file is found.
pub(super) const CONFIG_NAMES: [&str; 3] = ["config.yml", "config.yaml", "config.toml"];

/// The maximum number of numbered audit log files to include, in addition to the log itself.
const ROTATED_MAX: u32 = 64;

/// Places outside of manifests that determine what a server runs, or that only the server may know.
/// Relative paths are relative to the current directory; missing files are included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnPlaces {
    /// Files and folders that no tool can read or change.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that no tool can change.
    pub read_only: Vec<PathBuf>,
    /// Places that no tool may create if they are missing: a program that could is unavailable.
    pub guarded: Vec<PathBuf>,
    /// Folders of manifests. What a symbolic link to a manifest in one of them leads to is read-only and
    /// guarded, also while it does not exist.
    pub manifest_folders: Vec<PathBuf>,
}

impl OwnPlaces {
    /// No places.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or folder that no tool can read or change.
    #[must_use]
    pub fn hide(mut self, place: impl Into<PathBuf>) -> Self {
        self.hidden.push(place.into());
        self
    }

    /// Adds a file or folder that no tool can change.
    #[must_use]
    pub fn read_only(mut self, place: impl Into<PathBuf>) -> Self {
        self.read_only.push(place.into());
        self
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.hidden.extend(other.hidden);
        self.read_only.extend(other.read_only);
        self.guarded.extend(other.guarded);
        self.manifest_folders.extend(other.manifest_folders);
    }
}

impl Config {
    /// The places of this config that belong to the [control
    /// plane](crate::Toolcrib::control_plane).
    ///
    /// Hidden: every config file in the folder of the config, `state.dir`, the audit log with its
    /// numbered files, the kept HOMEs of upstreams, secret files and secret folders. Read-only: the
    /// directories of manifests, the lock, and the files that the commands of secrets run.
    pub fn own_places(&self) -> OwnPlaces {
        let mut own = OwnPlaces::new();
        for file in &self.own_files {
            let folder = file.parent().unwrap_or(Path::new(""));
            own.hidden.push(file.clone());
            own.hidden.extend(CONFIG_NAMES.map(|name| folder.join(name)));
        }
        own.hidden.extend(self.state.dir.clone());
        own.hidden.extend(self.state.users_default.clone());
        own.hidden.extend(self.state_root());
        // What stands there runs when the upstream that it belongs to starts again.
        own.hidden.extend(self.homes_folder().ok());
        if let Some(log) = &self.audit.file {
            own.hidden.push(log.clone());
            own.hidden.extend(self.audit_folder().filter(|folder| !self.holds_work(folder)));
            own.hidden.extend((1..=self.audit.keep.min(ROTATED_MAX)).map(|number| {
                let mut name = log.clone().into_os_string();
                name.push(format!(".{number}"));
                PathBuf::from(name)
            }));
        }
        // The machine's own sockets are out of every tool's reach already.
        let is_own = |path: &&PathBuf| !path.starts_with("/dev") && !path.starts_with("/run");
        let socket = self.audit.syslog.as_ref().and_then(SyslogAddress::path);
        own.hidden.extend(socket.filter(is_own).cloned());
        let secrets = self.secrets.values().filter_map(|source| source.file());
        for place in secrets.chain(&self.secret_folders) {
            own.hidden.push(place.clone());
            // A tool that could create it would choose the secret.
            own.guarded.push(place.clone());
        }
        own.hidden.extend(std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from));
        own.read_only.extend(self.manifests.dirs.iter().cloned());
        own.guarded.extend(self.manifests.dirs.iter().cloned());
        own.manifest_folders.extend(self.manifests.dirs.iter().cloned());
        own.guarded.extend(self.configs_to_come());
        own.guarded.extend(self.present());
        if self.registry.lock == LockMode::Enforce {
            own.guarded.push(self.registry.lock_file.clone());
        }
        own.read_only.push(self.registry.lock_file.clone());
        for (argv, cwd) in self.secrets.values().filter_map(|source| source.command()) {
            own.read_only.extend(DecidingFiles::of_command(argv, cwd).protected());
        }
        own
    }

    /// The folder in which every config of this user has its default state folder, with what its servers trust, and the
    /// kept HOMEs of its upstreams.
    fn state_root(&self) -> Option<PathBuf> {
        let root = self.state.users_default.as_ref()?.parent()?;
        root.ends_with("toolcrib").then(|| root.to_owned())
    }

    /// Existing files that determine what this server does, and its records. If one of them disappears, whoever creates
    /// it again would determine that.
    fn present(&self) -> impl Iterator<Item = PathBuf> {
        let named = [&self.state.dir, &self.audit.file].into_iter().flatten();
        let all = self.own_files.iter().chain([&self.registry.lock_file]).chain(named);
        all.filter(|place| place.symlink_metadata().is_ok()).cloned()
    }

    /// The folder of an audit log that this server rotates. In programs that run during a rotation, the new file is not
    /// covered; only a folder is covered as a whole.
    fn audit_folder(&self) -> Option<PathBuf> {
        self.audit.rotates().then_some(())?;
        let log = std::path::absolute(self.audit.file.as_ref()?).ok()?;
        let folder = log.parent()?;
        Some(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
    }

    /// Whether one of the working folders of programs is this one or inside it.
    fn holds_work(&self, folder: &Path) -> bool {
        self.working_folders().iter().any(|work| {
            let work = work.canonicalize().or_else(|_| std::path::absolute(work));
            work.is_ok_and(|work| work.starts_with(folder))
        })
    }

    /// The problem of a rotated audit log inside a working folder of programs: its folder cannot be withheld from them.
    pub(crate) fn misplaced_audit_log(&self) -> Option<&'static str> {
        let folder = self.audit_folder()?;
        let is_work = self.working_folders().iter().any(|work| {
            let work = work.canonicalize().or_else(|_| std::path::absolute(work));
            work.is_ok_and(|work| folder.starts_with(work))
        });
        (is_work && self.holds_work(&folder)).then_some(
            "with `audit.max_bytes` or `audit.max_age` it has to be in a folder of its own, such as audit/audit.jsonl: here tools \
             could reach the file that is begun when it is full",
        )
    }

    /// The working folders of programs.
    pub(crate) fn working_folders(&self) -> Vec<PathBuf> {
        #[cfg_attr(
            not(feature = "builtins"),
            expect(unused_mut, reason = "only the built-in tools have projects")
        )]
        let mut folders = vec![self.workspace.root.clone()];
        #[cfg(feature = "builtins")]
        folders.extend(self.projects.values().cloned());
        folders
    }
}

/// The server's own programs, and the absolute folders in which it looks for others; it ignores relative ones.
pub(super) fn programs() -> Vec<PathBuf> {
    let search = server_path();
    let mut places: Vec<PathBuf> = std::env::split_paths(&search)
        .filter(|folder| folder.is_absolute() && folder.is_dir())
        .collect();
    let Ok(own) = std::env::current_exe() else { return places };
    let Some(folder) = own.parent() else { return places };
    for program in [own.clone(), folder.join("toolcrib-jail")] {
        let Ok(found) = program.metadata() else { continue };
        if found.nlink() > 1 {
            // Cargo keeps its build results under a second name in `deps`.
            places.extend(same_file(&folder.join("deps"), (found.dev(), found.ino())));
        }
        places.push(program);
    }
    places
}

/// Other names of this file in a folder.
fn same_file(folder: &Path, (device, inode): (u64, u64)) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let same = entries.filter(|entry| {
        entry.metadata().is_ok_and(|found| (found.dev(), found.ino()) == (device, inode))
    });
    same.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folders_of_other_configs_are_hidden() {
        let hidden = |own_folder: &str| {
            let mut config = Config::default();
            config.state.users_default = Some(own_folder.into());
            config.own_places().hidden
        };
        let places = hidden("/home/ada/.local/state/toolcrib/site-0123456789ab");
        assert!(places.contains(&PathBuf::from("/home/ada/.local/state/toolcrib")), "{places:?}");
        let places = hidden("/srv/states/site");
        assert!(!places.contains(&PathBuf::from("/srv/states")), "{places:?}");
    }
}
