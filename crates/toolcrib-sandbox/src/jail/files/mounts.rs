//! The mount namespace of a program: what is read-only there, and what is withheld.

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

use super::resolve::{Id, open_without_links};
use super::withheld::{Mount, MountKind, NotWithheld, shown};
use crate::jail::helper::tree::UserMap;
use crate::process::sys;

/// Why a machine cannot withhold anything, as the beginning of a reason.
const CANNOT: &str = "this machine cannot hide files from a program that was granted their folder";

/// Whether this process is in a mount namespace of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::jail) enum Entered {
    Yes,
    No,
}

/// Leaves the mount namespace for one of its own if this process may do that without a further user
/// namespace. Nothing that was opened before may be used afterwards: it leads past the mounts.
pub(in crate::jail) fn try_to_enter() -> Entered {
    if sys::unshare(UnshareFlags::NEWNS).is_ok() && sys::make_mounts_private().is_ok() {
        Entered::Yes
    } else {
        Entered::No
    }
}

/// The same, also with a user namespace.
///
/// # Errors
///
/// Why this machine cannot withhold anything. This process is of no further use then.
pub(in crate::jail) fn enter() -> Result<(), String> {
    enter_namespace().map_err(cannot("making a mount namespace"))?;
    // Nothing of what follows may be seen outside, and nothing mounted outside may uncover it.
    sys::make_mounts_private().map_err(cannot("separating the mounts"))
}

/// Makes everything but these files and folders read-only. Landlock has no rule for modes, owners,
/// times and attributes; a mount that is read-only keeps them as they are.
///
/// # Errors
///
/// Why the program cannot be started: what it may write has become read-only, too. Where nothing could
/// be made read-only there is no error, as the rest of the jail does not depend on it.
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

/// Mounts all of these, in a mount namespace of this process's own.
///
/// # Errors
///
/// Why the program cannot be started.
pub(in crate::jail) fn withhold(mounts: &[Mount]) -> Result<(), NotWithheld> {
    let masks = Masks::new().map_err(cannot("making the file that hides others"))?;
    for Mount { path, id, kind } in mounts {
        let failed = |error: io::Error| {
            let reason = format!("`{}` cannot be withheld from the program", shown(path));
            match error.raw_os_error() {
                // The path or the file is gone: nothing can be mounted on a deleted file.
                Some(libc::ENOENT | libc::ESTALE) => NotWithheld::Replaced(reason),
                _ => NotWithheld::Because(format!("{reason}: {error}")),
            }
        };
        let place = open_without_links(path).map_err(|error| failed(error.into()))?;
        if Id::of(&place).map_err(|error| failed(error.into()))? != *id {
            return Err(failed(io::Error::from_raw_os_error(libc::ESTALE)));
        }
        cover(&place, *kind, &masks).map_err(failed)?;
    }
    Ok(masks.unmount().map_err(cannot("unmounting what is no longer needed"))?)
}

/// Whether this process could [withhold] anything. It is of no other use afterwards.
pub(in crate::jail) fn probe() -> Result<(), String> {
    enter()?;
    let masks = Masks::new().map_err(cannot("making the file that hides others"))?;
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

/// With a user namespace where this user may not make a mount namespace alone.
fn enter_namespace() -> io::Result<()> {
    match sys::unshare(UnshareFlags::NEWNS) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
        done => return done,
    }
    let users = UserMap::of_this_process();
    sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    users.write()
}

/// A file system with an empty file and an empty folder without any rights, which hide others.
struct Masks {
    mount: OwnedFd,
    root: OwnedFd,
}

impl Masks {
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
        // A part of a mount can be copied only while that is mounted somewhere. Over the root it is in
        // nobody's way: this process has the root below it open, and starts each path there.
        move_mount(&mount, "", &root, "", EMPTY_PATHS)?;
        Ok(Self { mount, root })
    }

    fn copy(&self, name: &str) -> io::Result<OwnedFd> {
        let part = open_tree(&self.mount, name, CLONE)?;
        sys::make_read_only(&part)?;
        Ok(part)
    }

    /// Takes the file system away; what was copied of it stays.
    fn unmount(self) -> io::Result<()> {
        fchdir(&self.mount)?;
        unmount(".", UnmountFlags::DETACH)?;
        Ok(fchdir(&self.root)?)
    }
}

const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC);
const EMPTY_PATHS: MoveMountFlags =
    MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH.union(MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH);

fn cover(place: &OwnedFd, kind: MountKind, masks: &Masks) -> io::Result<()> {
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

/// With all that is mounted below it, which a user namespace does not let go of.
fn copy(place: &OwnedFd) -> io::Result<OwnedFd> {
    let whole = OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place, "", CLONE | whole)?)
}
