//! A state folder, opened once. Files in it are opened and created relative to its descriptor, never through a symbolic
//! link.

pub(crate) mod location;
pub(crate) mod parents;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// How many times a file is tried that others create and remove at the same time.
const TRIES: usize = 16;

/// An open folder in which one user keeps state. This process may run as another user.
///
/// The administrator runs commands in the state folders of servers that run as other users. Those users must not
/// redirect the administrator to other files: symbolic links, device files and hard links are refused, and only files
/// that this process creates are given to the folder's owner.
#[derive(Debug)]
pub struct StateFolder {
    descriptor: File,
    path: PathBuf,
    owner: (u32, u32),
}

impl StateFolder {
    /// Opens an existing folder. Fails if users other than its owner can write to it, if the path is a symbolic link
    /// that neither this user nor the administrator made, and if anybody but the administrator, this user and the
    /// folder's owner may rename entries in a folder above it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let named = fs::symlink_metadata(path)?;
        let own = rustix::process::geteuid().as_raw();
        if named.is_symlink() && named.uid() != own && named.uid() != 0 {
            return Err(refused(path, "is a link that another user made"));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let opened = Self::checked(folder, path.to_owned())?;
        parents::check(path, opened.owner.0)?;
        Ok(opened)
    }

    /// Fails if the path contains a symbolic link, because no database is opened through one. A folder that does not
    /// exist passes.
    pub fn refuse_links(path: &Path) -> io::Result<()> {
        let named = std::path::absolute(path)?;
        let is_link = |place: &Path| place.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let Some(link) = named.ancestors().find(|place| is_link(place)) else { return Ok(()) };
        let real = path.canonicalize().unwrap_or(named.clone());
        let problem = format!(
            "is behind the symbolic link {}, and databases are not opened through links: name {} \
             instead",
            link.display(),
            real.display()
        );
        Err(refused(path, &problem))
    }

    /// Removes the rights of other users on a folder, if this user owns it and they have any. Returns the old mode.
    pub fn make_private(path: &Path) -> io::Result<Option<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let found = folder.metadata()?;
        let own = rustix::process::geteuid().as_raw();
        if found.uid() == own && found.mode() & 0o077 != 0 {
            rustix::fs::fchmod(&folder, Mode::RWXU)?;
            return Ok(Some(found.mode() & 0o7777));
        }
        Ok(None)
    }

    fn checked(descriptor: File, path: PathBuf) -> io::Result<Self> {
        let found = descriptor.metadata()?;
        if found.mode() & 0o022 != 0 {
            return Err(refused(&path, "can be changed by others: run `chmod 700` on it"));
        }
        Ok(Self { descriptor, path, owner: (found.uid(), found.gid()) })
    }

    /// Opens a file for reading and writing, creating it (mode 0600) if necessary. Fails if it is a symbolic link, has
    /// hard links, or belongs to another user.
    pub fn file(&self, name: &str) -> io::Result<File> {
        for _ in 0..TRIES {
            if let Some(file) = self.existing(name)? {
                return Ok(file);
            }
            match self.make(name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(refused(&self.path.join(name), "is created and removed repeatedly by another process"))
    }

    /// Opens a file for reading and writing; `None` if there is none. Fails as [`file`](Self::file) does.
    pub fn existing(&self, name: &str) -> io::Result<Option<File>> {
        // Do not wait for the other end of a pipe.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(self.descriptor.as_fd(), name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refused(&self.path.join(name), LINK)),
            Err(error) => return Err(error.into()),
        };
        let found = file.metadata()?;
        self.check(name, found.is_file(), found.nlink(), found.uid())?;
        Ok(Some(file))
    }

    /// Makes sure that a file exists that [`file`](Self::file) would open. An existing file is not opened, because
    /// closing it would release this process's locks on it.
    pub fn ensure(&self, name: &str) -> io::Result<()> {
        if self.is_there(name)? {
            return Ok(());
        }
        match self.make(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.is_there(name).map(drop)
            }
            made => made.map(drop),
        }
    }

    /// Whether a file exists. Fails if [`file`](Self::file) would refuse it.
    pub fn is_there(&self, name: &str) -> io::Result<bool> {
        match statat(self.descriptor.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                let kind = FileType::from_raw_mode(found.st_mode);
                if kind == FileType::Symlink {
                    return Err(refused(&self.path.join(name), LINK));
                }
                #[allow(
                    clippy::useless_conversion,
                    reason = "the width of the field differs \
                     between machines"
                )]
                let links = u64::from(found.st_nlink);
                self.check(name, kind == FileType::RegularFile, links, found.st_uid)?;
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the rights of other users on a file of this folder, if this user owns both and there are any. The file
    /// is not opened, because closing it would release this process's locks on it. Returns the old mode. Fails if the
    /// file belongs to another user and others can write to it.
    pub fn make_file_private(&self, name: &str) -> io::Result<Option<u32>> {
        let folder = self.descriptor.as_fd();
        let found = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let own = rustix::process::geteuid().as_raw();
        #[allow(
            clippy::useless_conversion,
            reason = "the width of the field differs between \
             machines"
        )]
        let mode = u32::from(found.st_mode) & 0o7777;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let rights_of_others = mode & 0o077;
        if !is_file || rights_of_others == 0 {
            return Ok(None);
        }
        if found.st_uid == own && self.owner.0 == own {
            // Nobody else can put a link there in between: only this user can write to the folder.
            chmodat(folder, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
            return Ok(Some(mode));
        }
        if mode & 0o022 != 0 {
            let problem = "can be changed by others: run `chmod 600` on it";
            return Err(refused(&self.path.join(name), problem));
        }
        Ok(None)
    }

    fn check(&self, name: &str, is_file: bool, links: u64, user: u32) -> io::Result<()> {
        let own = rustix::process::geteuid().as_raw();
        let problem = if !is_file {
            "is not a regular file: remove it"
        } else if links > 1 {
            "has a hard link elsewhere: remove it"
        } else if ![own, self.owner.0, 0].contains(&user) {
            "belongs to another user: remove it"
        } else {
            return Ok(());
        };
        Err(refused(&self.path.join(name), problem))
    }

    /// Creates a file, replacing an unfinished one of this name.
    pub fn new_file(&self, name: &str) -> io::Result<File> {
        match unlinkat(self.descriptor.as_fd(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => self.make(name),
            Err(error) => Err(error.into()),
        }
    }

    fn make(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = File::from(openat(self.descriptor.as_fd(), name, flags, mode)?);
        self.give_to_owner(&file)?;
        Ok(file)
    }

    /// Opens a folder in this one, creating it (mode 0700) if necessary. Fails if it is a symbolic link.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        let path = self.path.join(name);
        let is_new = match mkdirat(self.descriptor.as_fd(), name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match openat(self.descriptor.as_fd(), name, flags, Mode::empty()) {
            Ok(folder) => File::from(folder),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(refused(&path, LINK)),
            Err(error) => return Err(error.into()),
        };
        if is_new {
            self.give_to_owner(&folder)?;
        }
        Self::checked(folder, path)
    }

    /// Renames a file of this folder, replacing the target.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let folder = self.descriptor.as_fd();
        Ok(renameat(folder, from, folder, to)?)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self.descriptor.as_fd(), name, AtFlags::empty())?)
    }

    /// Gives a new file made by the administrator to the folder's owner, whose server has to use it.
    fn give_to_owner(&self, made: &File) -> io::Result<()> {
        let (user, group) = self.owner;
        let found = made.metadata()?;
        if rustix::process::geteuid().is_root() && (found.uid(), found.gid()) != (user, group) {
            fchown(made, Some(user), Some(group))?;
        }
        Ok(())
    }
}

const LINK: &str = "is a link: remove it, or put the file itself there";

fn refused(path: &Path, problem: &str) -> io::Error {
    let message = format!("{} {problem}", path.display());
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
