//! Placeholders: files and folders that are created before anything runs, so that tools cannot
//! create them.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::own::CONFIG_NAMES;
use crate::settings::Config;

/// The content of an empty config file.
const CONFIG: &str = "# Settings of toolcrib: every one has its default.\n";

/// The content of a lock without pins.
const LOCK: &str = "# Nothing is pinned yet: run `toolcrib lock`.\n";

impl Config {
    /// Creates the workspace, with mode 0755, if it does not exist. Returns whether it was created.
    ///
    /// # Errors
    ///
    /// Its parent folder does not exist or is not writable.
    pub fn make_workspace(&self) -> io::Result<bool> {
        let root = &self.workspace.root;
        match DirBuilder::new().mode(0o755).create(root) {
            Ok(()) => {
                tracing::info!(folder = %root.display(), "made the workspace");
                Ok(true)
            }
            Err(_) if root.is_dir() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates missing files and folders that tools could otherwise create and that determine what the server does: the
    /// directories of manifests, a lock without pins, and, if there is no config file, an empty one. Each is logged. A
    /// failure is logged too; programs that could create the file are unavailable then.
    pub fn make_placeholders(&self) {
        let roots: Vec<_> =
            self.working_folders().iter().filter_map(|root| root.canonicalize().ok()).collect();
        let is_open = |place: &Path| {
            let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
            let folder = place.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
            let inside = |folder: PathBuf| roots.iter().any(|root| folder.starts_with(root));
            place.symlink_metadata().is_err() && folder.is_some_and(inside)
        };
        for folder in self.manifests.dirs.iter().filter(|folder| is_open(folder)) {
            // A path that names a file is not a directory to create.
            if folder.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "toml")
            {
                continue;
            }
            said(folder, DirBuilder::new().mode(0o755).recursive(true).create(folder));
        }
        if is_open(&self.registry.lock_file) {
            said(&self.registry.lock_file, file(&self.registry.lock_file, LOCK));
        }
        for config in self.configs_to_come().iter().filter(|config| is_open(config)) {
            said(config, file(config, CONFIG));
        }
    }

    /// The config files that a later start would find if somebody created them: one for each searched folder without a
    /// config.
    pub(crate) fn configs_to_come(&self) -> Vec<PathBuf> {
        let is_default = |file: &&PathBuf| {
            file.file_name().is_some_and(|name| CONFIG_NAMES.iter().any(|known| name == *known))
        };
        let folders = self
            .own_files
            .iter()
            .filter(is_default)
            .map(|file| file.parent().unwrap_or(Path::new("")).to_owned());
        let mut folders: Vec<_> = folders.collect();
        folders.sort();
        folders.dedup();
        folders.retain(|folder| {
            CONFIG_NAMES.iter().all(|name| folder.join(name).symlink_metadata().is_err())
        });
        folders.into_iter().map(|folder| folder.join(CONFIG_NAMES[0])).collect()
    }
}

fn file(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?
        .write_all(text.as_bytes())
}

fn said(path: &Path, made: io::Result<()>) {
    let path = path.display();
    match made {
        Ok(()) => tracing::info!(%path, "made, so that no tool can"),
        Err(error) => tracing::warn!(%path, %error, "cannot be made; a tool could make it"),
    }
}
