//! The folders in which tools, or programs of the service's user, can write.

use std::path::{Component, Path, PathBuf};

use super::file::{Setting, in_effect};
use super::words::words;

/// The workspace of the packages.
const WORKSPACE: &str = "/var/lib/toolcrib/workspace";
/// Where every program can write.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The folders that systemd makes for a service, and where.
const OWN_FOLDERS: [(&str, &str); 4] = [
    ("StateDirectory", "/var/lib"),
    ("CacheDirectory", "/var/cache"),
    ("LogsDirectory", "/var/log"),
    ("RuntimeDirectory", "/run"),
];
/// What systemd puts in the place of a specifier.
const SPECIFIERS: [(&str, &str); 6] = [
    ("%S", "/var/lib"),
    ("%C", "/var/cache"),
    ("%L", "/var/log"),
    ("%t", "/run"),
    ("%T", "/tmp"),
    ("%V", "/var/tmp"),
];

/// Who can change what is in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writers {
    /// Tools can write there, or every program of the machine.
    Tools,
    /// The service's user can, and so can trusted programs.
    Service,
}

/// The folders of a unit that somebody can write.
#[derive(Debug)]
pub(super) struct Places {
    folders: Vec<(PathBuf, Writers)>,
}

impl Places {
    /// The folders that the unit itself names, with `workspaces` that settings of the server name.
    pub(super) fn of(settings: &[Setting], workspaces: &[String]) -> Self {
        let shared = SHARED.into_iter().chain([WORKSPACE]).map(str::to_owned);
        let tools = shared.chain(workspaces.iter().cloned());
        let mut folders: Vec<_> = tools.map(|path| (plain(&path), Writers::Tools)).collect();
        for (key, base) in OWN_FOLDERS {
            for setting in in_effect(settings, key) {
                for name in words(&setting.value) {
                    // A name may be followed by that of a link.
                    let path = Path::new(base).join(name.split(':').next().unwrap_or(&name));
                    let is_workspace = path.ends_with("workspace");
                    let writers = if is_workspace { Writers::Tools } else { Writers::Service };
                    folders.push((path, writers));
                }
            }
        }
        for setting in in_effect(settings, "ReadWritePaths") {
            let paths = words(&setting.value);
            let paths = paths.iter().map(|path| plain(path.trim_start_matches(['-', '+'])));
            folders.extend(paths.map(|path| (path, Writers::Service)));
        }
        Self { folders }
    }

    /// Who can change the file or folder with this path.
    pub(super) fn writers(&self, path: &str) -> Option<Writers> {
        let path = plain(path);
        let mut found = self.folders.iter().filter(|(folder, _)| path.starts_with(folder));
        let writers = found.clone().map(|(_, writers)| *writers);
        if writers.clone().any(|writers| writers == Writers::Tools) {
            return Some(Writers::Tools);
        }
        found.next().map(|(_, writers)| *writers)
    }
}

/// A path as systemd sees it, without `..` and doubled slashes.
fn plain(path: &str) -> PathBuf {
    let mut path = path.to_owned();
    for (specifier, folder) in SPECIFIERS {
        path = path.replace(specifier, folder);
    }
    let mut plain = PathBuf::new();
    for component in Path::new(&path).components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::super::file::settings;
    use super::*;

    #[test]
    fn folders_of_the_unit_are_told_from_what_only_its_operator_writes() {
        let unit = "[Service]\nStateDirectory=other other/workspace\nReadWritePaths=-/srv/data\n";
        let places = Places::of(&settings("x", unit), &["/srv/work".to_owned()]);
        for (path, writers) in [
            ("/etc/toolcrib/env", None),
            ("/var/lib/toolcrib/workspace/env", Some(Writers::Tools)),
            ("/etc/../var//lib/./toolcrib/workspace", Some(Writers::Tools)),
            ("%S/other/workspace/x", Some(Writers::Tools)),
            ("/var/lib/other/env", Some(Writers::Service)),
            ("/srv/data/x", Some(Writers::Service)),
            ("/srv/work/x", Some(Writers::Tools)),
            ("/tmpfs", None),
            ("/tmp/x", Some(Writers::Tools)),
        ] {
            assert_eq!(places.writers(path), writers, "{path}");
        }
    }
}
