//! Resolves a path one component at a time: the folders on the way, and the symbolic links.
//!
//! A name is no proof of identity, because others can rename or replace the file. So device and
//! inode numbers are compared, and opened files stay open.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, readlinkat,
};
use rustix::io::Errno;

/// The maximum number of symbolic links to follow, as in the kernel.
const LINKS: usize = 40;
/// The maximum number of lookups while others rename folders on the way.
const TRIES: usize = 64;

const HELD: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// The identity of a file or folder, regardless of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::jail) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(in crate::jail) fn of(file: impl AsFd) -> Result<Self, Errno> {
        Ok(Self::from(&fstat(file)?))
    }
}

impl From<&Stat> for FileId {
    fn from(status: &Stat) -> Self {
        Self { device: status.st_dev, inode: status.st_ino }
    }
}

/// A file or folder that was found.
#[derive(Debug)]
pub(in crate::jail) struct FoundFile {
    /// The file, opened with `O_PATH`.
    pub(in crate::jail) file: OwnedFd,
    pub(in crate::jail) kind: FileType,
    pub(in crate::jail) way: PathTrace,
}

/// The part of a path that could be resolved.
#[derive(Debug, Default, Clone)]
pub(in crate::jail) struct PathTrace {
    /// The names from the root on, with links resolved.
    names: Vec<OsString>,
    /// The root, and the file or folder of each name.
    ids: Vec<FileId>,
    /// The links that were followed.
    links: Vec<FollowedLink>,
}

/// A symbolic link that was followed.
#[derive(Debug, Clone)]
struct FollowedLink {
    path: PathBuf,
    /// The folder that contains it, and all folders above.
    folders: Vec<FileId>,
}

/// The error for a path that does not exist.
#[derive(Debug)]
pub(in crate::jail) struct LookupError {
    pub(in crate::jail) error: Errno,
    /// The existing part of the path.
    pub(in crate::jail) way: PathTrace,
}

impl PathTrace {
    /// The root, the folders on the way, and last the target of the path.
    pub(in crate::jail) fn ids(&self) -> &[FileId] {
        &self.ids
    }

    /// The path of the item with this index in [`ids`](Self::ids), without links.
    pub(in crate::jail) fn path(&self, index: usize) -> PathBuf {
        let mut path = PathBuf::from("/");
        path.extend(self.names.iter().take(index));
        path
    }

    /// A link that was followed although a program that may change one of these folders can replace it.
    pub(in crate::jail) fn link_in(&self, folders: impl Fn(&FileId) -> bool) -> Option<&Path> {
        let link = self.links.iter().find(|link| link.folders.iter().any(&folders));
        link.map(|link| link.path.as_path())
    }

    fn child(&self, name: &OsStr, id: FileId) -> Self {
        let mut child = self.clone();
        child.names.push(name.to_owned());
        child.ids.push(id);
        child
    }
}

/// Opens a path that must not contain symbolic links.
pub(in crate::jail) fn open_without_links(path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        tries += 1;
        // With `O_NOFOLLOW`, a link at the end would itself be opened.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => {}
            // Some kernels, and the filters of some containers, lack this call.
            Err(Errno::NOSYS | Errno::PERM) => {
                let found = resolve_path(path).map_err(|lost| lost.error)?;
                let is_link = found.kind == FileType::Symlink || !found.way.links.is_empty();
                return if is_link { Err(Errno::LOOP) } else { Ok(found.file) };
            }
            opened => return opened,
        }
    }
}

/// Resolves an absolute path completely.
pub(in crate::jail) fn resolve_path(path: &Path) -> Result<FoundFile, LookupError> {
    let mut way = PathTrace::default();
    let mut folders = Vec::new();
    match walk(path, &mut way, &mut folders) {
        Ok((file, kind)) => Ok(FoundFile { file, kind, way }),
        Err(error) => Err(LookupError { error, way }),
    }
}

/// The file or folder of a name, unless it is a link.
pub(in crate::jail) fn child(folder: &FoundFile, name: &OsStr) -> Result<Option<FoundFile>, Errno> {
    let (file, status) = open(folder.file.as_fd(), name)?;
    let kind = FileType::from_raw_mode(status.st_mode);
    let way = folder.way.child(name, FileId::from(&status));
    Ok((kind != FileType::Symlink).then_some(FoundFile { file, kind, way }))
}

fn open(folder: BorrowedFd<'_>, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let file = openat(folder, name, HELD, Mode::empty())?;
    let status = fstat(&file)?;
    Ok((file, status))
}

/// Resolves the components; `folders` are the open folders of `way`.
fn walk(
    path: &Path,
    way: &mut PathTrace,
    folders: &mut Vec<OwnedFd>,
) -> Result<(OwnedFd, FileType), Errno> {
    let (root, status) = open(CWD, OsStr::new("/"))?;
    way.ids.push(FileId::from(&status));
    folders.push(root);
    let mut kind = FileType::Directory;
    let mut left: VecDeque<OsString> = components(path.as_os_str());
    while let Some(name) = left.pop_front() {
        if kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        if name == ".." {
            // The parent of the root is the root.
            if folders.len() > 1 {
                folders.pop();
                way.ids.pop();
                way.names.pop();
            }
            continue;
        }
        let folder = folders.last().ok_or(Errno::NOENT)?;
        let (file, status) = open(folder.as_fd(), &name)?;
        let found = FileType::from_raw_mode(status.st_mode);
        if found == FileType::Symlink {
            if way.links.len() == LINKS {
                return Err(Errno::LOOP);
            }
            let target = readlinkat(&file, c"", Vec::with_capacity(256))?;
            let path = way.path(way.names.len()).join(&name);
            way.links.push(FollowedLink { path, folders: way.ids.clone() });
            let target = OsStr::from_bytes(target.as_bytes());
            if target.as_bytes().starts_with(b"/") {
                folders.truncate(1);
                way.ids.truncate(1);
                way.names.clear();
            }
            for name in components(target).into_iter().rev() {
                left.push_front(name);
            }
            continue;
        }
        kind = found;
        way.ids.push(FileId::from(&status));
        way.names.push(name);
        folders.push(file);
    }
    folders.pop().map(|file| (file, kind)).ok_or(Errno::NOENT)
}

fn components(path: &OsStr) -> VecDeque<OsString> {
    let names = path.as_bytes().split(|byte| *byte == b'/');
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    names.map(|name| OsStr::from_bytes(name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), "text").unwrap();
        (folder, path)
    }

    #[test]
    fn a_path_is_found_as_the_kernel_finds_it() {
        let (_folder, path) = folder();
        symlink("a/b", path.join("relative")).unwrap();
        symlink(path.join("a"), path.join("absolute")).unwrap();
        symlink("../../absolute/b/../b/file", path.join("a/b/link")).unwrap();
        for name in ["a/b/file", "relative/file", "absolute/./b/file", "a//b/../b/file", "a/b/link"]
        {
            let found = resolve_path(&path.join(name)).unwrap();
            assert_eq!(
                FileId::of(&found.file),
                FileId::of(fs::File::open(path.join(name)).unwrap())
            );
            let real = path.join(name).canonicalize().unwrap();
            assert_eq!(found.way.path(found.way.ids().len() - 1), real, "{name}");
            let linked = name.contains("link") || !name.starts_with("a/");
            let linked = linked && !name.starts_with("a//");
            let own = FileId::of(fs::File::open(&path).unwrap()).unwrap();
            assert_eq!(found.way.link_in(|id| *id == own).is_some(), linked, "{name}");
            assert_eq!(open_without_links(&path.join(name)).is_err(), linked, "{name}");
        }
        assert_eq!(resolve_path(Path::new("/../..")).unwrap().way.ids().len(), 1);
    }

    #[test]
    fn a_path_that_leads_nowhere_says_how_far_it_leads() {
        let (_folder, path) = folder();
        let own = FileId::of(fs::File::open(path.join("a")).unwrap()).unwrap();
        for (name, error, last) in [
            ("a/none/x", Errno::NOENT, "a"),
            ("a/b/file/x", Errno::NOTDIR, "a/b/file"),
            ("a/b/none", Errno::NOENT, "a/b"),
        ] {
            let lost = resolve_path(&path.join(name)).unwrap_err();
            assert_eq!(lost.error, error, "{name}");
            assert!(lost.way.ids().contains(&own));
            assert_eq!(lost.way.path(lost.way.ids().len() - 1), path.join(last), "{name}");
        }
        symlink("loop", path.join("loop")).unwrap();
        assert_eq!(resolve_path(&path.join("loop")).unwrap_err().error, Errno::LOOP);
    }
}
