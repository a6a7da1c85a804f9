//! A folder of state, opened once: files in it are opened and made by their names below its descriptor,
//! never through a link.

pub(crate) mod parents;
pub(crate) mod place;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// How often a name is tried that others make and remove at the same time.
const TRIES: usize = 16;

/// An open folder in which one user keeps state, perhaps another user than the one of this process.
///
/// The system's administrator runs commands in the folders of servers that run as other users. Those
/// users must not direct the administrator to other files: links, device files and files with a second
/// name are refused, and only what this process makes is given to the folder's owner.
#[derive(Debug)]
pub struct StateFolder {
    descriptor: File,
    path: PathBuf,
    owner: (u32, u32),
}

impl StateFolder {
    /// Opens a folder that is there. Fails if others than its owner can write to it, if the path is a link
    /// that neither this user nor the administrator has made, and if somebody else than the administrator,
    /// this user and the folder's owner may rename in a folder above it.
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

    /// Fails if a folder is reached by a symbolic link, which the database in it is not opened through. A
    /// folder that is not there passes.
    pub fn refuse_links(path: &Path) -> io::Result<()> {
        let named = std::path::absolute(path)?;
        let is_link = |place: &Path| place.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let Some(link) = named.ancestors().find(|place| is_link(place)) else { return Ok(()) };
        let real = path.canonicalize().unwrap_or(named.clone());
        let problem = format!(
            "is reached by the symbolic link {}, and no database is opened through one: name {} instead",
            link.display(),
            real.display()
        );
        Err(refused(path, &problem))
    }

    /// Takes the rights of others on a folder away, if this user owns it and they have any. Says which
    /// mode it had.
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

    /// Opens a file to read and write, made (mode 0600) if it is not there. Fails if it is a link, has a
    /// second name, or belongs to somebody else.
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
        Err(refused(&self.path.join(name), "is made and removed again and again by others"))
    }

    /// Opens a file to read and write; `None` if there is none. Fails as [`file`](Self::file) does.
    pub fn existing(&self, name: &str) -> io::Result<Option<File>> {
        // A pipe is not waited for.
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

    /// Makes sure that a file is there and is one that [`file`](Self::file) would open, without opening one
    /// that is there: closing it would end the locks that this process has on it.
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

    /// Whether a file is there. Fails if it is one that [`file`](Self::file) would not open.
    pub fn is_there(&self, name: &str) -> io::Result<bool> {
        match statat(self.descriptor.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                let kind = FileType::from_raw_mode(found.st_mode);
                if kind == FileType::Symlink {
                    return Err(refused(&self.path.join(name), LINK));
                }
                #[allow(clippy::useless_conversion, reason = "how wide the field is differs")]
                let links = u64::from(found.st_nlink);
                self.check(name, kind == FileType::RegularFile, links, found.st_uid)?;
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the rights of others on a file of this folder away, if this user owns both and there are any.
    /// The file is not opened: closing it would end the locks that this process has on it. Says which mode
    /// it had. Fails if the file is another user's and others can write to it.
    pub fn make_file_private(&self, name: &str) -> io::Result<Option<u32>> {
        let folder = self.descriptor.as_fd();
        let found = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let own = rustix::process::geteuid().as_raw();
        #[allow(clippy::useless_conversion, reason = "how wide the field is differs")]
        let mode = u32::from(found.st_mode) & 0o7777;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let rights_of_others = mode & 0o077;
        if !is_file || rights_of_others == 0 {
            return Ok(None);
        }
        if found.st_uid == own && self.owner.0 == own {
            // Nobody else can put a link there meanwhile: the folder is this user's alone.
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
            "is not a plain file: remove it"
        } else if links > 1 {
            "has a second name elsewhere (a hard link): remove it"
        } else if ![own, self.owner.0, 0].contains(&user) {
            "belongs to another user: remove it"
        } else {
            return Ok(());
        };
        Err(refused(&self.path.join(name), problem))
    }

    /// Makes a file, in place of one of this name that was left unfinished.
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

    /// Opens a folder in this one, made (mode 0700) if it is not there. Fails if it is a link.
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

    /// Puts a file of this folder in the place of another.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let folder = self.descriptor.as_fd();
        Ok(renameat(folder, from, folder, to)?)
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(self.descriptor.as_fd(), name, AtFlags::empty())?)
    }

    /// Gives what the administrator has just made to the folder's owner, whose server has to use it.
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
