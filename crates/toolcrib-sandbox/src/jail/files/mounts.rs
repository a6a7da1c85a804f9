//! The mount namespace of a program: which places are read-only or withheld in it.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use rustix::process::fchdir;
use rustix::thread::UnshareFlags;

use super::resolve::{FileId, open_without_links};
use super::withheld::{Mount, MountKind, WithholdError, shown};
use crate::jail::helper::tree::UserMap;
use crate::process::sys;

/// Why a machine cannot withhold places, as the beginning of a reason.
const CANNOT: &str = "this machine cannot hide files from a program that was granted their folder";

/// Whether this process has its own mount namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::jail) enum MountNamespace {
    Yes,
    No,
}

/// Enters a new mount namespace if this process may do so without a user namespace. Do not use
/// anything that was opened before: it bypasses the mounts.
pub(in crate::jail) fn try_to_enter() -> MountNamespace {
    if sys::unshare(UnshareFlags::NEWNS).is_ok() && sys::make_mounts_private().is_ok() {
        MountNamespace::Yes
    } else {
        MountNamespace::No
    }
}

/// Enters a new mount namespace, together with a user namespace.
///
/// # Errors
///
/// Why this machine cannot withhold places. The process cannot be used for anything else after
/// this.
pub(in crate::jail) fn enter() -> Result<(), String> {
    enter_namespace().map_err(cannot("making a mount namespace"))?;
    // The following mounts must stay invisible outside, and nothing mounted outside may uncover a
    // withheld place.
    sys::make_mounts_private().map_err(cannot("separating the mounts"))
}

/// Makes everything but these files and folders read-only. Landlock has no rule for modes, owners,
/// times and attributes; a read-only mount protects them.
///
/// # Errors
///
/// Fails if the places that the program may write have become read-only too. If nothing could be made read-only, it
/// does not fail, because the rest of the jail does not depend on it.
pub(in crate::jail) fn write_only_in(places: &[PathBuf]) -> Result<(), String> {
    let mounted = |path: &PathBuf| -> io::Result<_> {
        let place = open_without_links(path)?;
        Ok((copy(&place)?, place))
    };
    let Ok(copies) = places.iter().map(mounted).collect::<io::Result<Vec<_>>>() else {
        return Ok(());
    };
    if sys::make_all_mounts_read_only().is_err() {
        return Ok(());
    }
    for ((copy, place), path) in copies.iter().zip(places) {
        move_mount(copy, "", place, "", EMPTY_PATHS)
            .map_err(|error| format!("`{}` cannot be made writable: {error}", shown(path)))?;
    }
    Ok(())
}

/// Mounts all of these in the mount namespace of this process.
///
/// # Errors
///
/// Why the program cannot be started.
pub(in crate::jail) fn withhold(mounts: &[Mount]) -> Result<(), WithholdError> {
    let masks = EmptyFileSystem::new().map_err(cannot("making the file that hides others"))?;
    let is_own = |mount: &&Mount| mount.kind == MountKind::Own;
    // They are copied before they are hidden.
    let mut own = Vec::new();
    for mount in mounts.iter().filter(is_own) {
        own.push(
            open(mount).and_then(|place| copy(&place)).map_err(|error| failed(mount, &error))?,
        );
    }
    let mut own = own.into_iter();
    for mount in mounts {
        let done = match mount.kind {
            MountKind::Own => show(mount, own.next()),
            MountKind::HiddenFolder => {
                let inside = mounts.iter().filter(is_own);
                let inside = inside.filter_map(|own| own.path.strip_prefix(&mount.path).ok());
                open(mount).and_then(|place| move_to(&masks.folder_with(inside)?, &place))
            }
            kind => open(mount).and_then(|place| cover(&place, kind, &masks)),
        };
        done.map_err(|error| failed(mount, &error))?;
    }
    Ok(masks.unmount().map_err(cannot("unmounting what is no longer needed"))?)
}

/// Opens the file or folder that a mount is for, if it is still the same.
fn open(mount: &Mount) -> io::Result<OwnedFd> {
    let place = open_without_links(&mount.path)?;
    if FileId::of(&place)? != mount.id {
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    Ok(place)
}

/// Mounts the program's own folder on its path again, where an empty folder is now.
fn show(mount: &Mount, own: Option<OwnedFd>) -> io::Result<()> {
    let own = own.ok_or(io::ErrorKind::NotFound)?;
    move_to(&own, &open_without_links(&mount.path)?)
}

fn failed(mount: &Mount, error: &io::Error) -> WithholdError {
    let path = shown(&mount.path);
    let reason = if mount.kind == MountKind::Own {
        format!("the program's own folder `{path}` cannot be shown to it")
    } else {
        format!("`{path}` cannot be withheld from the program")
    };
    match error.raw_os_error() {
        // The path or the file no longer exists: nothing can be mounted on a deleted file.
        Some(libc::ENOENT | libc::ESTALE) => WithholdError::Replaced(reason),
        _ => WithholdError::Because(format!("{reason}: {error}")),
    }
}

/// Whether this process could [withhold] places. The process cannot be used for anything else after
/// this.
pub(in crate::jail) fn probe() -> Result<(), String> {
    enter()?;
    let masks = EmptyFileSystem::new().map_err(cannot("making the file that hides others"))?;
    let root = open_without_links("/".as_ref()).map_err(cannot("opening `/`"))?;
    for kind in [MountKind::ReadOnly, MountKind::HiddenFolder] {
        cover(&root, kind, &masks).map_err(cannot("mounting"))?;
    }
    masks.unmount().map_err(cannot("unmounting"))
}

/// The reason on a machine without namespaces.
pub(in crate::jail) fn without_namespaces() -> String {
    cannot("making a mount namespace")(io::Error::from(rustix::io::Errno::NOSYS))
}

fn cannot<E: fmt::Display>(step: &str) -> impl Fn(E) -> String {
    move |error| {
        format!(
            "{CANNOT}: {step} fails ({error}). Grant a folder without the server's own files, or run \
             the server where it may make mount namespaces"
        )
    }
}

/// Adds a user namespace if this user may not create a mount namespace alone.
fn enter_namespace() -> io::Result<()> {
    match sys::unshare(UnshareFlags::NEWNS) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
        done => return done,
    }
    let users = UserMap::of_this_process();
    sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    users.write()
}

/// A file system with an empty file and an empty folder, both without permissions, which are
/// mounted over hidden places.
struct EmptyFileSystem {
    mount: OwnedFd,
    root: OwnedFd,
    /// The number of folders with other folders in them.
    folders: Cell<u32>,
}

impl EmptyFileSystem {
    fn new() -> io::Result<Self> {
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(context.as_fd(), "mode", "0700")?;
        fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(openat(&mount, "file", flags, Mode::empty())?);
        mkdirat(&mount, "folder", Mode::empty())?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, "/", flags, Mode::empty())?;
        // Part of a mount can be copied only while it is mounted. Mounting it over the root is safe: this process holds
        // the root below it open and resolves each path from there.
        move_mount(&mount, "", &root, "", EMPTY_PATHS)?;
        Ok(Self { mount, root, folders: Cell::new(0) })
    }

    fn copy(&self, name: &str) -> io::Result<OwnedFd> {
        let part = open_tree(&self.mount, name, CLONE)?;
        sys::make_read_only(&part)?;
        Ok(part)
    }

    /// An empty folder, or one with empty folders at these relative paths, on which others are to be mounted.
    fn folder_with<'p>(&self, paths: impl Iterator<Item = &'p Path>) -> io::Result<OwnedFd> {
        let mut paths = paths.peekable();
        if paths.peek().is_none() {
            return self.copy("folder");
        }
        // Each hidden folder has a folder of its own.
        let name = format!("own-{}", self.folders.get());
        self.folders.set(self.folders.get() + 1);
        let mode = Mode::from_raw_mode(0o755);
        mkdirat(&self.mount, &name, mode)?;
        for path in paths {
            let mut folder = PathBuf::from(&name);
            for part in path.components() {
                folder.push(part);
                match mkdirat(&self.mount, &folder, mode) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.copy(&name)
    }

    /// Unmounts the file system; the copies stay mounted.
    fn unmount(self) -> io::Result<()> {
        fchdir(&self.mount)?;
        unmount(".", UnmountFlags::DETACH)?;
        Ok(fchdir(&self.root)?)
    }
}

const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC);
const EMPTY_PATHS: MoveMountFlags =
    MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH.union(MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH);

fn cover(place: &OwnedFd, kind: MountKind, masks: &EmptyFileSystem) -> io::Result<()> {
    let cover = match kind {
        MountKind::HiddenFile => masks.copy("file")?,
        MountKind::HiddenFolder => masks.copy("folder")?,
        MountKind::Pin | MountKind::Own => copy(place)?,
        MountKind::ReadOnly => {
            let cover = copy(place)?;
            sys::make_read_only(&cover)?;
            cover
        }
    };
    move_to(&cover, place)
}

fn move_to(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    Ok(move_mount(mount, "", place, "", EMPTY_PATHS)?)
}

/// This includes all mounts below it, because a user namespace may not separate them.
fn copy(place: &OwnedFd) -> io::Result<OwnedFd> {
    let whole = OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place, "", CLONE | whole)?)
}
