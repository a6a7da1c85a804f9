//! The location of the sockets of the servers of one config: in its state directory, or in the
//! user's runtime directory.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolcrib_core::fingerprint::Fingerprint;

use crate::settings::{Config, ConfigError, ConfigLayers, LoadedConfig};

/// The variable that names the user's runtime directory.
const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// The number of digits of a config's fingerprint: paths of sockets must be short.
const DIGITS: usize = 16;

/// A directory for the sockets of all servers of one config.
///
/// ```
/// use toolcrib::settings::ConfigLayers;
/// use toolcrib::servers::{SocketFolder, running_servers};
///
/// # let dir = tempfile::tempdir()?;
/// # let state = dir.path().join("state");
/// let loaded = ConfigLayers::new().value("test", &["state", "dir"], state.to_str().into()).load()?;
/// assert!(running_servers(&SocketFolder::of(&loaded)?)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketFolder {
    /// The directory and its parents that are created if missing, outermost first.
    pub(super) folders: Vec<PathBuf>,
    /// Other folders that belong to the config, each with its parents, outermost first. Servers with another state
    /// folder leave a link to their socket in them.
    pub(super) links: Vec<Vec<PathBuf>>,
}

/// Why there is no folder for the sockets of a config's servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSocketFolder(String);

impl fmt::Display for NoSocketFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoSocketFolder {}

impl SocketFolder {
    /// The socket folder of a config: `control` in its `state.dir`. Without a state directory, it is a directory in
    /// `$XDG_RUNTIME_DIR/toolcrib` that belongs to the config file, or to the current directory if there is no file.
    /// That variable must name a directory that belongs to this user and that nobody else can access.
    pub fn of(loaded: &LoadedConfig) -> Result<Self, NoSocketFolder> {
        Self::of_config(loaded.config(), loaded.file(), std::env::var_os(RUNTIME_DIR))
    }

    /// The socket folder of a config that may be invalid: running servers use an earlier version of it. The error then
    /// says what is wrong.
    pub fn find(layers: &ConfigLayers) -> (Result<Self, NoSocketFolder>, Option<ConfigError>) {
        match layers.clone().load() {
            Ok(loaded) => (Self::of(&loaded), None),
            Err(error) => {
                let (config, file) = layers.clone().salvage();
                let runtime_dir = std::env::var_os(RUNTIME_DIR);
                (Self::of_config(&config, file.as_deref(), runtime_dir), Some(error))
            }
        }
    }

    fn of_config(
        config: &Config,
        file: Option<&Path>,
        runtime_dir: Option<OsString>,
    ) -> Result<Self, NoSocketFolder> {
        let runtime = Self::in_runtime_dir(file, runtime_dir);
        // A default folder that does not exist yet is searched only if there is no other one.
        let state = config.state.dir.as_ref();
        if let Some(state) = state.filter(|dir| !config.state.is_default || dir.is_dir()) {
            let users = config.state.users_default.as_ref().filter(|folder| *folder != state);
            let users = users.map(|folder| vec![folder.clone(), folder.join("control")]);
            let links = runtime.ok().into_iter().chain(users).collect();
            return Ok(Self { folders: vec![state.join("control")], links });
        }
        let users = config.state.users_default.as_ref();
        // A server with all state in memory leaves nothing in a default folder.
        let users = users.filter(|folder| folder.is_dir());
        let links = users.map(|folder| vec![folder.clone(), folder.join("control")]);
        let folders = match (runtime, state) {
            (Ok(folders), _) => folders,
            // The first server creates its default folder and is found there.
            (Err(_), Some(state)) => vec![state.join("control")],
            (Err(why), None) => return Err(why),
        };
        Ok(Self { folders, links: links.into_iter().collect() })
    }

    /// The config's folder and its parent in the user's runtime directory.
    fn in_runtime_dir(
        file: Option<&Path>,
        runtime_dir: Option<OsString>,
    ) -> Result<Vec<PathBuf>, NoSocketFolder> {
        let Some(dir) = runtime_dir.filter(|dir| !dir.is_empty()) else {
            return Err(NoSocketFolder(format!(
                "`state.dir` is `none`, and {RUNTIME_DIR} is not set"
            )));
        };
        let unusable = |why: String| {
            let dir = Path::new(&dir).display();
            NoSocketFolder(format!(
                "`state.dir` is `none`, and {dir}, which {RUNTIME_DIR} names, {why}"
            ))
        };
        let own = own_dir(Path::new(&dir)).map_err(unusable)?.join("toolcrib");
        let config = identity(file).map_err(|error| {
            NoSocketFolder(format!("the location of the config cannot be determined: {error}"))
        })?;
        let name = Fingerprint::of_json(&json!(config.to_string_lossy())).to_string();
        let servers = own.join(name.get(..DIGITS).unwrap_or(&name));
        Ok(vec![own, servers])
    }

    /// The directory, which may not exist.
    pub fn path(&self) -> &Path {
        self.folders.last().map_or(Path::new(""), PathBuf::as_path)
    }

    /// All directories in which to look for servers of the config, the [`path`](Self::path) first.
    pub fn searched(&self) -> impl Iterator<Item = &Path> {
        let links = self.links.iter().filter_map(|folders| folders.last());
        std::iter::once(self.path()).chain(links.map(PathBuf::as_path))
    }
}

/// Whether only this user can change the content of the directory. The system's administrator, who can change
/// everything, may use the directories of others.
pub(super) fn is_private(dir: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(dir).is_ok_and(|found| {
        found.is_dir() && (own == 0 || found.uid() == own) && found.mode() & 0o022 == 0
    })
}

/// Opens the directory if it belongs to this user alone; otherwise returns the reason, as a clause.
/// Anyone who could write there could impersonate a server.
fn own_dir(dir: &Path) -> Result<PathBuf, String> {
    if dir.is_relative() {
        return Err("is relative".to_owned());
    }
    // The opened directory is the one that is checked, even if somebody replaces a link on the way.
    let dir = fs::canonicalize(dir).map_err(|error| format!("cannot be used: {error}"))?;
    let found = fs::metadata(&dir).map_err(|error| format!("cannot be used: {error}"))?;
    if !found.is_dir() {
        Err("is not a directory".to_owned())
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        Err("belongs to another user".to_owned())
    } else if found.mode() & 0o077 != 0 {
        Err(format!("is open to others (mode {:03o})", found.mode() & 0o777))
    } else {
        Ok(dir)
    }
}

/// Identifies a config: the resolved path of the file, or the current directory. A file that is
/// itself a link keeps its own name, because deployments swap the targets of such links.
fn identity(file: Option<&Path>) -> io::Result<PathBuf> {
    let Some(file) = file else { return std::env::current_dir() };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
    Ok(folder.join(file.file_name().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn place(file: &Path, runtime: &Path) -> Result<SocketFolder, NoSocketFolder> {
        SocketFolder::of_config(&Config::default(), Some(file), Some(runtime.into()))
    }

    fn folder_with_mode(mode: u32) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        dir
    }

    #[test]
    fn a_runtime_directory_that_is_not_the_users_alone_is_no_place() {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("config.yml");
        let open = folder_with_mode(0o777);
        let readable = folder_with_mode(0o750);
        fs::write(home.path().join("file"), "").unwrap();
        for (dir, why) in [
            (open.path().to_owned(), "is open to others (mode 777)"),
            (readable.path().to_owned(), "is open to others (mode 750)"),
            (home.path().join("file"), "is not a directory"),
            (home.path().join("nowhere"), "cannot be used"),
            (PathBuf::from("run"), "is relative"),
        ] {
            let said = place(&config, &dir).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("state.dir"), "{said}");
        }
        let unset = SocketFolder::of_config(&Config::default(), Some(&config), None);
        assert!(unset.unwrap_err().to_string().contains("is not set"));
    }

    #[test]
    fn one_config_file_has_one_place_however_it_is_named() {
        let runtime = folder_with_mode(0o700);
        let home = tempfile::tempdir().unwrap();
        let sub = home.path().join("sub");
        fs::create_dir(&sub).unwrap();
        let config = home.path().join("config.yml");
        let own = place(&config, runtime.path()).unwrap();
        assert_eq!(place(&sub.join("../config.yml"), runtime.path()).unwrap(), own);
        assert_ne!(place(&sub.join("config.yml"), runtime.path()).unwrap(), own);
        // A deployment that replaces the target of the name is the same config.
        symlink(sub.join("first"), &config).unwrap();
        assert_eq!(place(&config, runtime.path()).unwrap(), own);
        assert!(own.path().starts_with(fs::canonicalize(runtime.path()).unwrap()));
    }

    #[test]
    fn a_default_folder_that_no_server_has_made_yet_is_the_place_where_there_is_no_other() {
        let mut config = Config::default();
        config.state.dir = Some(PathBuf::from("/nowhere/state"));
        config.state.is_default = true;
        let place = SocketFolder::of_config(&config, None, None).unwrap();
        assert_eq!(place.path(), Path::new("/nowhere/state/control"));
        let runtime = folder_with_mode(0o700);
        let place = SocketFolder::of_config(&config, None, Some(runtime.path().into())).unwrap();
        assert!(place.path().starts_with(fs::canonicalize(runtime.path()).unwrap()));
    }

    #[test]
    fn a_state_directory_is_the_place_whatever_else_there_is() {
        let runtime = folder_with_mode(0o700);
        let mut config = Config::default();
        config.state.dir = Some(PathBuf::from("/srv/state"));
        let place = SocketFolder::of_config(&config, None, Some(runtime.path().into())).unwrap();
        assert_eq!(place.path(), Path::new("/srv/state/control"));
    }
}
