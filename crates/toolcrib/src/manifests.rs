//! Tools from manifest files: read, checked, turned into entries.

use std::path::PathBuf;

use toolcrib_manifest::directory::{DirectoryLoad, load_dirs, load_file};
use toolcrib_runners::RunnerHost;
use toolcrib_tool::ToolEntry;

/// What was found in manifest files.
///
/// A broken file yields no tools and says why in [`files`](Manifests::files); the other files are
/// not touched by it.
#[derive(Debug)]
pub struct Manifests {
    files: DirectoryLoad,
    host: RunnerHost,
}

impl Manifests {
    /// Reads the manifests of directories, in order; a path that is a file is read as one.
    /// `host` says where commands run unless they say so, and which secrets there are.
    pub fn load(paths: &[PathBuf], host: RunnerHost) -> Self {
        let mut files = DirectoryLoad::default();
        for path in paths {
            if path.is_file() {
                files.files.push(load_file(path));
            } else {
                let load = load_dirs(std::slice::from_ref(path));
                files.files.extend(load.files);
                files.unreadable.extend(load.unreadable);
            }
        }
        Self { files, host }
    }

    /// The tools of all good files, in the order that decides names: directory, file, place.
    pub fn entries(&self) -> impl Iterator<Item = ToolEntry> + '_ {
        self.files
            .declarations()
            .map(|declaration| toolcrib_runners::entry(declaration, &self.host))
    }

    /// The files, with their declarations and everything worth saying about them.
    pub fn files(&self) -> &DirectoryLoad {
        &self.files
    }
}
