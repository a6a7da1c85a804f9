//! The mount namespace of a program: which places are read-only or withheld in it.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
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
    for Mount { path, id, kind } in mounts {
        let failed = |error: io::Error| {
            let reason = format!("`{}` cannot be withheld from the program", shown(path));
            match error.raw_os_error() {
                // The path or the file no longer exists: nothing can be mounted on a deleted file.
                Some(libc::ENOENT | libc::ESTALE) => WithholdError::Replaced(reason),
                _ => WithholdError::Because(format!("{reason}: {error}")),
            }
        };
        let place = open_without_links(path).map_err(|error| failed(error.into()))?;
        if FileId::of(&place).map_err(|error| failed(error.into()))? != *id {
            return Err(failed(io::Error::from_raw_os_error(libc::ESTALE)));
        }
        cover(&place, *kind, &masks).map_err(failed)?;
    }
    Ok(masks.unmount().map_err(cannot("unmounting what is no longer needed"))?)
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
        Ok(Self { mount, root })
    }

    fn copy(&self, name: &str) -> io::Result<OwnedFd> {
        let part = open_tree(&self.mount, name, CLONE)?;
        sys::make_read_only(&part)?;
        Ok(part)
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
        MountKind::Pin => copy(place)?,
        MountKind::ReadOnly => {
            let cover = copy(place)?;
            sys::make_read_only(&cover)?;
            cover
        }
    };
    Ok(move_mount(&cover, "", place, "", EMPTY_PATHS)?)
}

/// This includes all mounts below it, because a user namespace may not separate them.
fn copy(place: &OwnedFd) -> io::Result<OwnedFd> {
    let whole = OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place, "", CLONE | whole)?)
}
