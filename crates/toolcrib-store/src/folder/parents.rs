//! Checks who could replace a state folder: every user who may rename entries in a folder above it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How many symbolic links in one path are followed.
const LINKS: usize = 40;

/// Write permission of the group and of others, and the sticky bit, which allows only owners to rename.
const GROUP: u32 = 0o020;
const OTHERS: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Fails if anybody but the administrator, this user and `owner` may rename entries in a folder above this path,
/// including folders that symbolic links lead through. SQLite opens the database files by path, so such a user could
/// redirect it at any moment.
pub(crate) fn check(path: &Path, owner: u32) -> io::Result<()> {
    let trusted = [0, rustix::process::geteuid().as_raw(), owner];
    let mut ways = vec![std::path::absolute(path)?];
    let mut links = 0;
    while let Some(way) = ways.pop() {
        for (part, parent) in way.ancestors().zip(way.ancestors().skip(1)) {
            let found = parent.metadata()?;
            if let Some(problem) = problem(parent, &found, &trusted) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            if fs::symlink_metadata(part)?.is_symlink() {
                links += 1;
                if links > LINKS {
                    return Err(io::Error::other(
                        "the path of the state folder contains too many \
                                                 links",
                    ));
                }
                ways.push(target(part, parent)?);
            }
        }
    }
    Ok(())
}

fn target(link: &Path, parent: &Path) -> io::Result<PathBuf> {
    let target = parent.join(fs::read_link(link)?);
    // Resolve `..` as the system does.
    match (target.parent(), target.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => target.canonicalize(),
    }
}

/// Why a folder is not safe, and what to do.
fn problem(folder: &Path, found: &Metadata, trusted: &[u32]) -> Option<String> {
    let shown = folder.display();
    if !trusted.contains(&found.uid()) {
        return Some(format!(
            "{shown}, above the state folder, belongs to another user (ID {}), who could replace \
             the folder: name a state folder (`state.dir`) in folders of your own, or give \
             {shown} to root or to the user of the server",
            found.uid()
        ));
    }
    // A group with the same number as the owner is that user's private group.
    let group = found.mode() & GROUP != 0 && found.gid() != found.uid();
    let who = match found.mode() {
        mode if mode & STICKY != 0 => return None,
        mode if mode & OTHERS != 0 => "every user",
        _ if group => "a group of users",
        _ => return None,
    };
    Some(format!(
        "{shown}, above the state folder, is writable by {who}, who could replace the folder: \
         run `chmod go-w {shown}` (or `chmod +t {shown}`, where others need it), or name \
         another state folder in `state.dir`. In a container, a new volume (`emptyDir`) has mode 777, \
         which neither `fsGroup` nor a subfolder mends: run `chmod +t {shown}` as root before the server \
         starts, for example in an init container"
    ))
}
