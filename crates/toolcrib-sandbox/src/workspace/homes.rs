//! The places of keys and credentials in the home folders of a machine.

use std::path::{Path, PathBuf};

/// Paths in a home folder that are never accessed.
const IN_HOMES: [&str; 6] = [".ssh", ".aws", ".kube", ".gnupg", ".netrc", ".config/gcloud"];

/// The places of keys and credentials of everybody with a home folder on this machine: the server's user according to
/// its environment, and all users in `/etc/passwd` or with a folder in `/Users` (macOS), because a server that runs as
/// root can access them all.
pub fn sensitive_places() -> Vec<PathBuf> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let users = std::fs::read_dir("/Users").into_iter();
    let mut homes: Vec<PathBuf> = passwd
        .lines()
        .filter_map(|line| line.split(':').nth(5))
        .map(PathBuf::from)
        .chain(std::env::home_dir())
        .chain(users.flatten().flatten().map(|home| home.path()))
        .filter(|home| home.is_absolute() && home != Path::new("/"))
        .collect();
    homes.sort();
    homes.dedup();
    homes.iter().flat_map(|home| IN_HOMES.map(|place| home.join(place))).collect()
}
